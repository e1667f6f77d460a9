// What survives a hard kill of the runtime: everything that was answered.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Lab, assertNumbered, serverForTests, until } from "./support.mjs";

const holder = serverForTests();

test("SIGKILL, start again: same lab, same token, same log, same tables", async () => {
  const { server } = holder;
  const lab = await Lab.create(server);
  await lab.acquire({ holder: "A" });
  await lab.ask("leases/orders/release", { token: 1 });
  const granted = await lab.acquire({ holder: "B" });
  await lab.ask("resources/ledger/claim", { lease: "orders", token: granted.token });
  const write = { lease: "orders", token: granted.token, key: "balance", value: 95, write_id: "w1" };
  await lab.ask("resources/ledger/write", write);
  await lab.ask("shards/7/apply", { op: { type: "add", key: "a", amount: 2 }, op_id: "o1" });
  await lab.rules("lease/orders", { keep_token: false });
  const seen = async () => ({
    log: await lab.log(),
    lease: await lab.inspect("leases/orders"),
    resource: await lab.tables("resource/ledger"),
    shard: await lab.tables("shard/7"),
    objects: (await lab.inspect()).objects,
  });
  const before = await seen();

  await server.kill();
  await server.restart();

  assert.deepEqual(await seen(), before);
  assertNumbered(before.log);
  // It was the runtime that died, not an injected crash: the objects take no note.
  assert.equal((await lab.inspect("leases/orders")).incarnation, 1);
  assert.equal((await lab.ask("resources/ledger/write", write)).outcome, "duplicate");
  await lab.ask("leases/orders/renew", { holder: "B", token: granted.token, ttl_ms: 60_000 });
  const log = await lab.log();
  assertNumbered(log);
  assert.ok(log.length > before.log.length);
});

test("SIGKILL in the middle of load: what was answered is there, numbers have no gap", async () => {
  const { server } = holder;
  const lab = await Lab.create(server);
  const applied = new Set();
  const apply = async (n) => {
    const body = { op: { type: "put", key: "a", value: n }, op_id: `o${n}` };
    const answer = await lab.call("POST", "/shards/7/apply", body).catch(() => null);
    if (answer?.status === 200) applied.add(n);
  };
  let stop = false;
  const worker = async (first) => {
    for (let n = first; !stop; n += 4) await apply(n);
  };
  const workers = [1, 2, 3, 4].map(worker);
  await until(() => applied.size > 40, "forty operations");
  await server.kill();
  stop = true;
  await Promise.all(workers);
  await server.restart();

  // The next request brings what had not reached the lab.
  await lab.ask("shards/7/apply", { op: { type: "put", key: "b", value: 1 } });
  const log = await lab.log();
  assertNumbered(log);
  const ids = log.filter((event) => event.kind === "operation_applied").map((event) => event.op_id);
  assert.equal(new Set(ids).size, ids.length, "no operation twice");
  for (const n of applied) assert.ok(ids.includes(`o${n}`), `operation ${n} was answered`);
  const seqs = log.filter((event) => event.node === "shard/7").map((event) => event.local_seq);
  assert.deepEqual(seqs, seqs.map((_, index) => index + 1), "no event of the shard is missing");
});

test("an alarm that was set before a kill rings after it", async () => {
  const { server } = holder;
  const lab = await Lab.create(server);
  await lab.acquire({ holder: "A", ttl_ms: 1500 });
  await server.kill();
  await server.restart();
  const socket = await lab.socket();
  await until(() => socket.events.some((event) => event.kind === "lease_expired"), "the expiry");
  await socket.close();
});
