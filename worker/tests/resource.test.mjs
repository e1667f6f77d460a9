// Every outcome and every refusal of a fenced resource and of a shard, over HTTP.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Lab, serverForTests } from "./support.mjs";

const holder = serverForTests();
const newLab = (body) => Lab.create(holder.server, body);

const claim = (lab, token) => lab.ask("resources/ledger/claim", { lease: "orders", token });
const write = (lab, token, more = {}) =>
  lab.ask("resources/ledger/write", { lease: "orders", token, key: "balance", value: 1, ...more });
const read = (lab, more = {}) => lab.ask("resources/ledger/read", { key: "balance", ...more });

test("claim, write, read", async () => {
  const lab = await newLab();
  assert.deepEqual(await write(lab, 1), { outcome: "not_claimed", presented: 1, claimed: 0 });
  assert.deepEqual(await claim(lab, 1), { outcome: "claimed", token: 1 });
  assert.deepEqual(await write(lab, 1, { value: 95 }), { outcome: "applied", version: 1 });
  assert.deepEqual(await read(lab), { outcome: "value", value: 95, version: 1, token: 1 });
  assert.deepEqual(await read(lab, { key: "other" }), {
    outcome: "value",
    value: null,
    version: 0,
    token: 0,
  });
});

test("a stale token is fenced with both numbers, on every operation", async () => {
  const lab = await newLab();
  await claim(lab, 2);
  const fenced = { outcome: "fenced", presented: 1, high_water_mark: 2 };
  assert.deepEqual(await claim(lab, 1), fenced);
  assert.deepEqual(await write(lab, 1), fenced);
  assert.deepEqual(await read(lab, { lease: "orders", token: 1 }), fenced);
  assert.deepEqual((await lab.tables("resource/ledger")).stored, []);
});

test("a write id answers duplicate with the first result, or conflict", async () => {
  const lab = await newLab();
  await claim(lab, 1);
  await write(lab, 1, { write_id: "w1" });
  const duplicate = { outcome: "duplicate", first: { version: 1, token: 1 } };
  assert.deepEqual(await write(lab, 1, { write_id: "w1" }), duplicate);
  const conflict = { outcome: "conflict", write_id: "w1" };
  assert.deepEqual(await write(lab, 1, { write_id: "w1", value: 2 }), conflict);
  assert.equal((await read(lab)).version, 1);
});

test("writes of one grant keep their order", async () => {
  const lab = await newLab();
  await claim(lab, 1);
  assert.deepEqual(await write(lab, 1, { seq: 2 }), { outcome: "gap", expected: 1 });
  assert.equal((await write(lab, 1, { seq: 1 })).outcome, "applied");
  assert.deepEqual(await write(lab, 1, { seq: 1 }), { outcome: "gap", expected: 2 });
});

test("a resource holds 64 keys", async () => {
  const lab = await newLab();
  await claim(lab, 1);
  for (let n = 0; n < 64; n += 1) await write(lab, 1, { key: `k${n}` });
  assert.deepEqual(await write(lab, 1, { key: "one-more" }), { outcome: "full", keys_max: 64 });
  assert.equal((await write(lab, 1, { key: "k0" })).outcome, "applied");
  assert.equal((await lab.tables("resource/ledger")).stored.length, 64);
});

for (const [guard, outcomes] of [
  ["none", ["applied", "applied", "applied"]],
  ["at_least", ["applied", "applied", "fenced"]],
  ["strict", ["applied", "fenced", "fenced"]],
]) {
  test(`guard ${guard}: first write, same token, older token`, async () => {
    const lab = await newLab();
    await lab.rules("resource/ledger", { guard });
    const replies = [await write(lab, 2), await write(lab, 2), await write(lab, 1)];
    assert.deepEqual(replies.map((reply) => reply.outcome), outcomes);
  });
}

test("with atomic_write off an older value lands under a newer mark (C4)", async () => {
  const lab = await newLab({ preset: "published" });
  const slow = { message: "write", from: "A", action: "slow_store", delay_ms: 400 };
  await lab.control("resource/ledger", "faults", [slow]);
  const trace = (name) => ({ "fencepost-trace": JSON.stringify({ from: name, lamport: 0 }) });
  const send = (name, token, value) =>
    lab.ask(
      "resources/ledger/write",
      { lease: "orders", token, key: "balance", value },
      trace(name),
    );
  const older = send("A", 1, 100);
  // A's mark is stored before B's write is sent.
  for (;;) {
    const marks = (await lab.tables("resource/ledger")).fence;
    if (marks.length > 0) break;
  }
  assert.equal((await send("B", 2, 200)).outcome, "applied");
  assert.equal((await read(lab)).value, 200);
  assert.equal((await older).outcome, "applied");
  const last = await read(lab);
  assert.deepEqual([last.value, last.token], [100, 1]);
  const tables = await lab.tables("resource/ledger");
  assert.equal(tables.fence[0][2], 2, "the mark is the newer token");

  // The same schedule with the rule on: one commit, nothing gets in between.
  await lab.rules("resource/ledger", { atomic_write: true });
  const replies = await Promise.all([send("A", 3, 300), send("B", 4, 400)]);
  assert.ok(replies.some((reply) => reply.outcome === "applied"));
  assert.equal((await read(lab)).value, 400);
});

// ---- shards ------------------------------------------------------------------------------

const apply = (lab, more = {}) =>
  lab.ask("shards/7/apply", { op: { type: "add", key: "a", amount: 2 }, ...more });

test("operations are numbered, and done once for each id", async () => {
  const lab = await newLab();
  assert.deepEqual(await apply(lab, { op_id: "o1" }), { outcome: "applied", seq: 1, value: 2 });
  assert.deepEqual(await apply(lab, { op_id: "o1" }), { outcome: "duplicate", seq: 1 });
  const put = { type: "put", key: "a", value: 9 };
  assert.deepEqual(await apply(lab, { op_id: "o1", op: put }), { outcome: "conflict", op_id: "o1" });
  assert.deepEqual(await apply(lab, { op: put }), { outcome: "applied", seq: 2, value: 9 });
});

test("a shard serves one map, and none while it is sealed", async () => {
  const lab = await newLab();
  await apply(lab);
  assert.deepEqual(await apply(lab, { map_epoch: 3 }), { outcome: "wrong_epoch", current: 0 });
  assert.deepEqual(await lab.ask("shards/7/seal", { map_epoch: 1 }), {
    outcome: "sealed",
    map_epoch: 1,
    seq: 1,
    state: { a: 2 },
  });
  assert.deepEqual(await apply(lab, { map_epoch: 1 }), { outcome: "sealed", map_epoch: 1, seq: 1 });
  assert.deepEqual(await lab.ask("shards/7/open", { map_epoch: 0 }), {
    outcome: "wrong_epoch",
    current: 1,
  });
  const opened = await lab.ask("shards/8/open", { map_epoch: 1, state: { a: 2 } });
  assert.deepEqual(opened, { outcome: "opened", map_epoch: 1 });
  const moved = { op: { type: "add", key: "a", amount: 1 }, map_epoch: 1 };
  assert.equal((await lab.ask("shards/8/apply", moved)).value, 3);
});

test("a shard is full at 64 keys and at the end of the safe range", async () => {
  const lab = await newLab();
  const put = (key, value) => apply(lab, { op: { type: "put", key, value } });
  assert.equal((await put("a", Number.MAX_SAFE_INTEGER)).value, Number.MAX_SAFE_INTEGER);
  assert.equal((await apply(lab)).outcome, "full");
  assert.equal((await put("b", -Number.MAX_SAFE_INTEGER)).value, -Number.MAX_SAFE_INTEGER);
  const rows = (await lab.tables("shard/7")).state;
  assert.deepEqual(rows, [["a", Number.MAX_SAFE_INTEGER], ["b", -Number.MAX_SAFE_INTEGER]]);
  for (let n = 2; n < 64; n += 1) await put(`k${n}`, n);
  assert.deepEqual(await put("one-more", 1), { outcome: "full", keys_max: 64 });
});

test("with atomic_apply off two operations change places (A2)", async () => {
  const lab = await newLab({ preset: "published" });
  const slow = { message: "apply", action: "slow_store", delay_ms: 300, times: 1 };
  await lab.control("shard/7", "faults", [slow]);
  const first = apply(lab, { op: { type: "put", key: "a", value: 1 } });
  while ((await lab.inspect("shards/7").catch(() => null))?.record.shard.number !== 1);
  const second = await apply(lab, { op: { type: "put", key: "a", value: 2 } });
  assert.equal(second.seq, 2);
  assert.equal((await first).seq, 1);
  const { operations, state } = await lab.tables("shard/7");
  assert.deepEqual(operations.map((row) => row[1]), [2, 1]);
  assert.deepEqual(state, [["a", 1]]);
});
