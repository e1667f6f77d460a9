// The log: order, pages, what clients report, what is dropped, and tracing off.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Lab, assertNumbered, assertProblem, serverForTests } from "./support.mjs";

const holder = serverForTests();
const newLab = (body) => Lab.create(holder.server, body);

test("a lab's log starts with the lab and says when objects come to be", async () => {
  const lab = await newLab();
  await lab.acquire({ holder: "A" });
  await lab.acquire({ holder: "B" });
  const log = await lab.log();
  assertNumbered(log);
  assert.deepEqual(
    log.map((event) => `${event.node} ${event.kind}`),
    ["lab lab_created", "lab object_added", "lease/orders lease_granted", "lease/orders lease_refused"],
  );
  const granted = log[2];
  assert.equal(granted.record.lease.token, 1);
  assert.match(granted.decision.file, /^worker\/protocol\/src\/lease\.rs$/);
  assert.ok(Math.abs(granted.at_ms - Date.now()) < 5000);
});

test("a client's own events come before what they caused", async () => {
  const lab = await newLab();
  const client = new Client("A");
  client.note("client_paused");
  client.note("client_resumed", { paused_ms: 5 });
  const { request, headers } = client.header("lease/orders", "acquire");
  const answer = await lab.call("POST", "/leases/orders/acquire", { holder: "A", ttl_ms: 1000 }, headers);
  const lamport = Number(answer.headers.get("fencepost-lamport"));
  assert.ok(lamport > client.lamport);

  const kinds = (await lab.log()).slice(2).map((event) => event.kind);
  assert.deepEqual(kinds, ["client_paused", "client_resumed", "request_sent", "lease_granted"]);
  const [sent, granted] = (await lab.log()).slice(-2);
  assert.deepEqual([sent.request, granted.request], [request, request]);
  assert.ok(sent.lamport < granted.lamport);
  assert.equal(granted.lamport, lamport);
});

test("what is reported twice is in the log once", async () => {
  const lab = await newLab();
  const client = new Client("A");
  const report = () => lab.call("POST", "/events", { events: client.unreported });
  client.note("client_paused");
  assert.deepEqual((await report()).body, { outcome: "recorded", last_seq: 2 });
  client.note("client_resumed", { paused_ms: 1 });
  assert.equal((await report()).body.last_seq, 3);
  assert.equal((await report()).body.last_seq, 3);
  // The same again through an object, which forwards it.
  const { headers } = client.header("lease/orders", "acquire");
  await lab.call("POST", "/leases/orders/acquire", { holder: "A", ttl_ms: 1000 }, headers);
  await lab.call("POST", "/leases/orders/acquire", { holder: "A", ttl_ms: 1000 }, headers);
  const kinds = await lab.kinds("client/A");
  assert.deepEqual(kinds, ["client_paused", "client_resumed", "request_sent"]);
});

test("remarks of several pages stand side by side at the lab's node", async () => {
  const lab = await newLab();
  const note = (local_seq, text) => ({
    events: [{ at_ms: Date.now(), node: "lab", lamport: 1, local_seq, kind: "noted", text }],
  });
  await lab.call("POST", "/events", note(9_000_000, "step: one"));
  await lab.call("POST", "/events", note(5, "step: two"));
  await lab.call("POST", "/events", note(5, "step: two"));
  await lab.acquire({ holder: "A" });
  const own = (await lab.log()).filter((event) => event.node === "lab");
  assert.deepEqual(own.map((event) => event.text ?? event.kind), ["lab_created", "step: one", "step: two", "object_added"]);
  assert.deepEqual(own.map((event) => event.local_seq), [1, 2, 3, 4]);
});

test("pages: limit, after, more", async () => {
  const lab = await newLab();
  for (let n = 0; n < 7; n += 1) await lab.acquire({ holder: `H${n}` });
  const page = async (query) => (await lab.call("GET", `/events?${query}`)).body;
  const first = await page("limit=4");
  assertNumbered(first.events);
  assert.deepEqual([first.events.length, first.next_after, first.more], [4, 4, true]);
  const second = await page("after=4&limit=4");
  assertNumbered(second.events, 5);
  assert.deepEqual([second.events.length, second.next_after, second.more], [4, 8, true]);
  const last = await page("after=8");
  assert.deepEqual([last.events.length, last.next_after, last.more], [1, 9, false]);
  assert.deepEqual(await page("after=9"), { events: [], next_after: 9, more: false });
  assert.deepEqual(await page("after=1000"), { events: [], next_after: 1000, more: false });
});

test("a client speaks for nobody else", async () => {
  const lab = await newLab();
  const event = { at_ms: 1, node: "client/A", lamport: 1, local_seq: 1, kind: "client_paused" };
  for (const [change, detail] of [
    [{ node: "lease/orders" }, /objects report for themselves/],
    [{ node: "lab" }, /noted/],
    [{ kind: "restarted", incarnation: 5 }, /happens to clients/],
    [{ kind: "nonsense" }, /unknown variant/],
    [{ local_seq: -1 }, /./],
    [{ local_seq: 2 ** 53 }, /end at/],
    [{ lamport: 2 ** 53 - 1 }, /end at/],
    [{ node: "client/a b" }, /is not a name/],
  ]) {
    const events = [{ ...event, ...change }];
    assertProblem(await lab.call("POST", "/events", { events }), 400, detail);
    const headers = { "fencepost-trace": JSON.stringify({ events }) };
    const body = { holder: "A", ttl_ms: 1000 };
    assertProblem(await lab.call("POST", "/leases/orders/acquire", body, headers), 400, /fencepost-trace/);
  }
  assert.equal((await lab.log()).length, 1, "nothing was taken, and no object was made");
});

test("a number that a client makes up does not become the log's", async () => {
  const lab = await newLab();
  const events = [{ seq: 900, at_ms: 1, node: "client/A", lamport: 1, local_seq: 1, kind: "client_paused" }];
  await lab.call("POST", "/events", { events });
  assertNumbered(await lab.log());
});

test("a request to an object that is down still reaches the log", async () => {
  const lab = await newLab();
  await lab.control("lease/orders", "faults", [{ message: "*", action: "unreachable" }]);
  const client = new Client("A");
  const { headers } = client.header("lease/orders", "acquire");
  await lab.call("POST", "/leases/orders/acquire", { holder: "A", ttl_ms: 1000 }, headers);
  assert.deepEqual(await lab.kinds("client/A"), ["request_sent"]);
});

test("many at once: every event once, each object's in its own order", async () => {
  const lab = await newLab();
  await Promise.all(
    Array.from({ length: 120 }, (_, n) =>
      lab.ask(`shards/${n % 3}/apply`, { op: { type: "add", key: "a", amount: 1 } }),
    ),
  );
  const log = await lab.log();
  assertNumbered(log);
  for (const shard of ["shard/0", "shard/1", "shard/2"]) {
    const seqs = log.filter((event) => event.node === shard).map((event) => event.local_seq);
    assert.deepEqual(seqs, Array.from({ length: 40 }, (_, index) => index + 1));
  }
});

test("with tracing off there are no events at all", async () => {
  const lab = await newLab({ tracing: false });
  await lab.acquire({ holder: "A" });
  const client = new Client("A");
  const { headers } = client.header("lease/orders", "acquire");
  await lab.call("POST", "/leases/orders/acquire", { holder: "B", ttl_ms: 1000 }, headers);
  await lab.control("lease/orders", "clock", { offset_ms: 5 });
  const reported = await lab.call("POST", "/events", { events: client.unreported });
  assert.deepEqual(reported.body, { outcome: "not_recorded", last_seq: 0 });
  assert.deepEqual(await lab.log(), []);
  assert.equal((await lab.inspect()).usage.events, 0);
});
