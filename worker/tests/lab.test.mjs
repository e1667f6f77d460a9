// A lab from its creation to its end, and its limits.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Client, Lab, assertNumbered, assertProblem, call, serverForTests, until } from "./support.mjs";

const IDLE_MS = 2_000;

const holder = serverForTests();
const shortLived = serverForTests({ LAB_IDLE_MS: String(IDLE_MS) });

/** Every file of the runtime's state in which a text still stands. */
function filesWith(persist, text) {
  const files = readdirSync(join(persist, "do"), { recursive: true, withFileTypes: true });
  return files
    .filter((file) => file.isFile())
    .map((file) => join(file.parentPath ?? file.path, file.name))
    .filter((file) => readFileSync(file).includes(text));
}

test("a lab is created with its defaults, and says what it is", async () => {
  const answer = await call(holder.server, "POST", "/api/labs");
  assert.equal(answer.status, 201);
  assert.match(answer.body.lab, /^[a-z2-7]{26}$/);
  const day = answer.body.expires_at_ms - answer.body.now_ms;
  assert.equal(day, 86_400_000);
  const lab = new Lab(holder.server, answer.body.lab);
  await lab.acquire({ holder: "A" });
  await lab.ask("resources/ledger/claim", { lease: "orders", token: 1 });
  const about = await lab.inspect();
  assert.deepEqual(about.objects, [{ kind: "lease", name: "orders" }, { kind: "resource", name: "ledger" }]);
  assert.equal(about.last_seq, 5);
  assert.equal(about.usage.events, 5);
  assert.ok(about.usage.requests >= 5 && about.usage.rows_written >= 5);
  assert.ok(about.usage.share_of_free_day > 0 && about.usage.share_of_free_day < 0.01);
  assert.ok(about.expires_at_ms > about.now_ms + 86_000_000);
});

test("labs are worlds of their own", async () => {
  const [one, two] = [await Lab.create(holder.server), await Lab.create(holder.server)];
  await one.acquire({ holder: "A" });
  assert.equal((await two.acquire({ holder: "B" })).token, 1);
  assert.equal((await one.log()).length, 3);
  assert.notEqual(one.id, two.id);
});

test("a lab that was never made has nothing and stores nothing", async () => {
  const lab = new Lab(holder.server, "q".repeat(26));
  for (const [method, path, body] of [
    ["GET", "", undefined],
    ["DELETE", "", undefined],
    ["GET", "/events", undefined],
    ["POST", "/events", { events: [] }],
    ["POST", "/leases/orders/acquire", { holder: "A", ttl_ms: 1000 }],
    ["POST", "/objects/lease/orders/crash", { at: "now" }],
    ["GET", "/leases/orders", undefined],
    ["GET", "/objects/lease/orders/tables", undefined],
  ]) {
    assertProblem(await lab.call(method, path, body), 404, /POST \/api\/labs/);
  }
  assert.deepEqual(filesWith(holder.server.persist, lab.id), []);
});

test("an object that was never used is unknown, and looking at it does not make it", async () => {
  const lab = await Lab.create(holder.server);
  assertProblem(await lab.call("GET", "/leases/orders"), 404, /no lease\/orders/);
  assertProblem(await lab.call("GET", "/objects/shard/7/tables"), 404, /no shard\/7/);
  assertProblem(await lab.call("POST", "/leases/orders/acquire", { holder: "A" }), 400);
  assertProblem(await lab.call("GET", "/leases/orders"), 404);
  assert.deepEqual((await lab.inspect()).objects, []);
});

test("after DELETE nothing of the lab is left, on no disk, and its sockets are closed", async () => {
  const { server } = holder;
  const lab = await Lab.create(server);
  const socket = await lab.socket();
  // A word that can be found again in any file.
  const word = `needle-${lab.id.slice(0, 12)}`;
  await lab.acquire({ holder: word, ttl_ms: 500 });
  await lab.ask("resources/ledger/claim", { lease: "orders", token: 1 });
  await lab.ask("resources/ledger/write", { lease: "orders", token: 1, key: word, value: 1 });
  await lab.ask("shards/7/apply", { op: { type: "add", key: word, amount: 1 } });
  await lab.acquire({ holder: word, ttl_ms: 60_000 }, "held");
  await lab.control("lease/held", "crash", { at: "now", stay_down: true });
  await until(async () => (await lab.call("GET", "/leases/held")).body.down);

  const gone = await lab.call("DELETE", "");
  assert.deepEqual([gone.status, gone.body], [200, { outcome: "forgotten" }]);
  assert.equal((await socket.closed).code, 4404);
  for (const path of ["", "/events", "/leases/orders", "/leases/held", "/resources/ledger", "/objects/shard/7/tables"]) {
    assertProblem(await lab.call("GET", path), 404, /POST \/api\/labs/);
  }
  assertProblem(await lab.call("DELETE", ""), 404);
  assertProblem(await lab.call("POST", "/leases/orders/acquire", { holder: "A", ttl_ms: 1000 }), 404);
  await assert.rejects(lab.socket(), /404/);

  // After a restart every database is as it is on disk: the word stands in none of them,
  // and no alarm brings anything back.
  await server.kill();
  await server.restart();
  assertProblem(await lab.call("GET", "/leases/orders"), 404);
  assert.deepEqual(filesWith(server.persist, word), []);
});

test("deleting a lab under load leaves nothing behind", async () => {
  const lab = await Lab.create(holder.server);
  let stop = false;
  const statuses = new Set();
  const load = [1, 2, 3, 4].map(async (n) => {
    while (!stop) {
      const op = { type: "add", key: "a", amount: 1 };
      statuses.add((await lab.call("POST", `/shards/${n}/apply`, { op })).status);
    }
  });
  await until(() => statuses.has(200));
  await lab.call("DELETE", "");
  await until(() => statuses.has(404));
  stop = true;
  await Promise.all(load);
  assert.deepEqual([...statuses].sort(), [200, 404]);
  for (const n of [1, 2, 3, 4]) assertProblem(await lab.call("GET", `/shards/${n}`), 404);
});

test("a lab that nobody uses is deleted by its alarm, with its objects", async () => {
  const lab = await Lab.create(shortLived.server);
  const socket = await lab.socket();
  await lab.acquire({ holder: "A" });
  const { code, reason } = await socket.closed;
  assert.equal(code, 4404);
  assert.match(reason, /expired/);
  assertProblem(await lab.call("GET", ""), 404);
  assertProblem(await lab.call("GET", "/leases/orders"), 404);
});

for (const tracing of [true, false]) {
  test(`a lab in use lives on, tracing ${tracing ? "on" : "off"}`, async () => {
    const lab = await Lab.create(shortLived.server, { tracing });
    const { created_at_ms } = await lab.inspect();
    let n = 0;
    await until(async () => {
      n += 1;
      await lab.ask("shards/7/apply", { op: { type: "put", key: "a", value: n } });
      return Date.now() > created_at_ms + 2.5 * IDLE_MS;
    });
    assert.equal((await lab.inspect()).created_at_ms, created_at_ms);
  });
}

test("a lab has 64 objects at most", async () => {
  const lab = await Lab.create(holder.server);
  const acquire = (name) => lab.call("POST", `/leases/${name}/acquire`, { holder: "A", ttl_ms: 60_000 });
  const made = await Promise.all(Array.from({ length: 64 }, (_, n) => acquire(`l${n}`)));
  assert.ok(made.every((answer) => answer.status === 200));
  assertProblem(await acquire("one-more"), 429, /64 objects.*POST \/api\/labs/);
  assert.equal((await acquire("l0")).status, 200);
  assertProblem(await lab.call("GET", "/leases/one-more"), 404);
  assert.equal((await lab.call("DELETE", "")).status, 200);
});

test("a log has 20,000 events, then everything that adds to it is refused", { timeout: 120_000 }, async () => {
  const lab = await Lab.create(holder.server);
  await lab.acquire({ holder: "A" });
  const client = new Client("A");
  let answer;
  do {
    client.unreported = [];
    for (let n = 0; n < 400; n += 1) client.note("client_paused");
    answer = await lab.call("POST", "/events", { events: client.unreported });
  } while (answer.status === 200);
  assertProblem(answer, 429, /as many events.*POST \/api\/labs/);
  // The object learns it with the first request, which still counts.
  assert.equal((await lab.acquire({ holder: "B" })).outcome, "refused");
  const refused = await lab.call("POST", "/leases/orders/acquire", { holder: "B", ttl_ms: 1000 });
  assertProblem(refused, 429, /as many events/);
  assertProblem(await lab.call("POST", "/objects/lease/orders/crash", { at: "now" }), 429);
  // Looking is still possible.
  assert.equal((await lab.inspect("leases/orders")).record.lease.token, 1);
  const log = await lab.log();
  assertNumbered(log);
  assert.ok(log.length >= 20_000 && log.length < 22_000);
  const socket = await lab.socket(log.length - 10);
  await socket.reaches(log.length);
  await socket.close();
  assert.equal((await lab.call("DELETE", "")).status, 200);
});
