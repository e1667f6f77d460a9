// Crashes, restarts, clocks, partitions and alarms: what a person does to an object.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Lab, assertProblem, serverForTests, until, untilTime } from "./support.mjs";

const holder = serverForTests();
const newLab = (body) => Lab.create(holder.server, body);

/** One step of each kind of object that changes its record, and how to see that. */
const KINDS = [
  {
    object: "lease/orders",
    step: (lab, n) => lab.call("POST", "/leases/orders/acquire", { holder: "A", ttl_ms: 60_000, request_id: `r${n}` }),
    undo: (lab, n) => lab.ask("leases/orders/release", { token: n }),
    inspect: (lab) => lab.inspect("leases/orders"),
    done: (record) => record.lease.token,
  },
  {
    object: "resource/ledger",
    step: (lab, n) => lab.call("POST", "/resources/ledger/claim", { lease: "orders", token: n }),
    undo: async () => {},
    inspect: (lab) => lab.inspect("resources/ledger"),
    done: (record) => record.resource.marks["lease/orders"]?.claimed ?? 0,
  },
  {
    object: "shard/7",
    step: (lab) => lab.call("POST", "/shards/7/apply", { op: { type: "add", key: "a", amount: 1 } }),
    undo: async () => {},
    inspect: (lab) => lab.inspect("shards/7"),
    done: (record) => record.shard.number,
  },
];

for (const { object, step, undo, inspect, done } of KINDS) {
  for (const [at, answered, kept] of [
    ["before_persist", false, false],
    ["after_persist", false, true],
    ["after_send", true, true],
  ]) {
    test(`${object} crashes ${at}: ${answered ? "answered" : "no answer"}, ${kept ? "kept" : "lost"}`, async () => {
      const lab = await newLab();
      const socket = await lab.socket();
      assert.equal((await step(lab, 1)).status, 200);
      await undo(lab, 1);
      const before = await inspect(lab);
      assert.deepEqual(await lab.control(object, "crash", { at }), { outcome: "crash_armed", at });

      const answer = await step(lab, 2);
      if (answered) assert.equal(answer.status, 200, answer.text);
      else assert.equal(assertProblem(answer, 503).reason, "crashed");

      // The log knows at once, before anybody asks again.
      await until(() => socket.events.some((event) => event.kind === "crashed"), "the crash in the log");
      const after = await until(async () => {
        const found = await lab.call("GET", object.replace(/^(\w+)/, "/$1s"));
        return found.status === 200 && found.body;
      });
      assert.equal(done(after.record), kept ? 2 : 1);
      if (!kept) assert.deepEqual(after.record, before.record);

      // The next call starts it again, and it goes on from what was durable.
      assert.equal((await step(lab, 3)).status, 200);
      const [crashed, restarted] = (await lab.log()).filter((event) =>
        ["crashed", "restarted"].includes(event.kind),
      );
      assert.deepEqual([crashed.at, crashed.incarnation, crashed.stays_down], [at, 1, false]);
      assert.equal(restarted.incarnation, 2);
      assert.ok(restarted.record, "a restart shows what was left");
      assert.deepEqual(
        Object.values(restarted.record),
        Object.values(kept ? after.record : before.record),
      );
      await socket.close();
    });
  }

  test(`${object} stays down until it is restarted`, async () => {
    const lab = await newLab();
    await step(lab, 1);
    const crashed = await lab.control(object, "crash", { at: "now", stay_down: true });
    assert.deepEqual(crashed, { outcome: "crashed" });
    const down = await until(async () => {
      const answer = await step(lab, 2);
      return answer.body.reason === "down" && answer;
    }, "the object to be down");
    assertProblem(down, 503, /restart/);
    assert.equal((await inspect(lab)).down, true);
    assert.deepEqual(await lab.control(object, "restart"), { outcome: "restarted", incarnation: 2 });
    assert.deepEqual(await lab.control(object, "restart"), { outcome: "already_running" });
    assert.equal((await inspect(lab)).down, false);
    await undo(lab, 1);
    assert.equal((await step(lab, 2)).status, 200);
  });
}

test("everyone who waits when an object crashes is told, and the next call works", async () => {
  const lab = await newLab({ preset: "published" });
  const slow = { message: "write", action: "slow_store", delay_ms: 10_000 };
  await lab.control("resource/ledger", "faults", [slow]);
  const write = (token) =>
    lab.call("POST", "/resources/ledger/write", { lease: "orders", token, key: "a", value: token });
  const waiting = [];
  for (const token of [1, 2, 3]) {
    waiting.push(write(token));
    const admitted = (kind) => kind === "write_admitted";
    await until(async () => (await lab.kinds("resource/ledger")).filter(admitted).length === token);
  }
  await lab.control("resource/ledger", "crash", { at: "now" });
  for (const answer of await Promise.all(waiting)) {
    assert.equal(assertProblem(answer, 503).reason, "crashed");
  }
  // The paper's gap, made visible: the mark is durable, the payload never came.
  const { fence, stored } = await lab.tables("resource/ledger");
  assert.equal(fence[0][2], 3);
  assert.deepEqual(stored, []);
});

test("once it is said that an object crashed, the next request finds it started again", async () => {
  const lab = await newLab();
  for (let token = 1; token <= 8; token += 1) {
    const crashed = await lab.control("resource/ledger", "crash", { at: "now" });
    assert.deepEqual(crashed, { outcome: "crashed" });
    const claim = await lab.call("POST", "/resources/ledger/claim", { lease: "orders", token });
    assert.deepEqual([claim.status, claim.body], [200, { outcome: "claimed", token }]);
  }
});

test("the token goes on over crashes, at every point", async () => {
  const lab = await newLab({ preset: "published" });
  let last = 0;
  for (const at of ["after_persist", "before_persist", "after_send", "now"]) {
    await lab.control("lease/orders", "crash", { at });
    await lab.call("POST", "/leases/orders/acquire", { holder: "A", ttl_ms: 60_000 });
    const { token } = await until(async () => {
      const answer = await lab.call("POST", "/leases/orders/acquire", { holder: "A", ttl_ms: 60_000 });
      return answer.status === 200 && answer.body;
    });
    assert.ok(token > last);
    last = token;
  }
  const tokens = (await lab.log()).filter((event) => event.kind === "lease_granted").map((event) => event.token);
  assert.deepEqual(tokens, [...new Set(tokens)].sort((a, b) => a - b));
});

test("a crash with tracing off is as real, and leaves no event", async () => {
  const lab = await newLab({ tracing: false });
  await lab.acquire({ holder: "A" });
  await lab.control("lease/orders", "crash", { at: "before_persist" });
  assertProblem(await lab.call("POST", "/leases/orders/release", { token: 1 }), 503);
  assert.equal((await lab.acquire({ holder: "B" })).outcome, "refused");
  assert.equal((await lab.inspect("leases/orders")).incarnation, 2);
  assert.deepEqual(await lab.log(), []);
});

test("a moved clock ends a lease early, and one put right does not end it again", async () => {
  const lab = await newLab();
  await lab.acquire({ holder: "A" });
  const set = await lab.control("lease/orders", "clock", { offset_ms: 61_000 });
  assert.deepEqual(set, { outcome: "clock_set", offset_ms: 61_000 });
  assert.equal((await lab.acquire({ holder: "B" })).token, 2);
  await lab.control("lease/orders", "clock", { offset_ms: 0 });
  // Time never runs backwards for the authority: the lease of B lasts as promised.
  assert.equal((await lab.acquire({ holder: "C" })).outcome, "refused");
  assert.equal((await lab.inspect("leases/orders")).clock_offset_ms, 0);
});

test("a clock that jumps ahead makes the alarm ring by it", async () => {
  const lab = await newLab();
  const socket = await lab.socket();
  await lab.acquire({ holder: "A" });
  await lab.control("lease/orders", "clock", { offset_ms: 60_000 });
  await until(() => socket.events.some((event) => event.kind === "lease_expired"));
  await socket.close();
});

test("an object that is cut off is reached by those the fault does not name", async () => {
  const lab = await newLab();
  const faults = [
    { message: "acquire", from: "A", action: "unreachable", times: 2 },
    { message: "renew", action: "unreachable" },
  ];
  assert.deepEqual(await lab.control("lease/orders", "faults", faults), { outcome: "faults_set", n_faults: 2 });
  const acquire = (name) => lab.call("POST", "/leases/orders/acquire", { holder: name, ttl_ms: 60_000 });
  for (let n = 0; n < 2; n += 1) {
    assert.equal(assertProblem(await acquire("A"), 503, /faults/).reason, "unreachable");
  }
  assert.equal((await acquire("A")).body.token, 1);
  const renew = { holder: "A", token: 1, ttl_ms: 1000 };
  assert.equal((await lab.call("POST", "/leases/orders/renew", renew)).status, 503);
  assert.equal((await lab.inspect("leases/orders")).faults.length, 1);
  await lab.control("lease/orders", "faults", []);
  assert.equal((await lab.call("POST", "/leases/orders/renew", renew)).status, 200);
});

test("a suppressed alarm passes unheard; resumed, an overdue one rings at once", async () => {
  const lab = await newLab();
  const socket = await lab.socket();
  await lab.control("lease/orders", "alarm", { action: "suppress" });
  const { expires_at_ms } = await lab.acquire({ holder: "A", ttl_ms: 100 });
  await untilTime(expires_at_ms + 300);
  const quiet = await lab.inspect("leases/orders");
  assert.equal(quiet.record.lease.holder.name, "A");
  assert.deepEqual([quiet.alarm_suppressed, quiet.alarm_at_ms], [true, null]);
  assert.deepEqual(await lab.control("lease/orders", "alarm", { action: "resume" }), { outcome: "alarm_resumed" });
  await until(() => socket.events.some((event) => event.kind === "lease_expired"));
  await socket.close();
});

test("an alarm fired by hand is in the log, even when nothing is due", async () => {
  const lab = await newLab();
  await lab.acquire({ holder: "A" });
  assert.deepEqual(await lab.control("lease/orders", "alarm", { action: "fire" }), { outcome: "alarm_fired" });
  const fired = (await lab.log()).filter((event) => event.kind === "alarm_fired");
  assert.deepEqual(fired.map((event) => event.forced), [true]);
  assert.equal((await lab.inspect("leases/orders")).record.lease.holder.name, "A");
});

test("an alarm starts a crashed object again", async () => {
  const lab = await newLab();
  const socket = await lab.socket();
  await lab.acquire({ holder: "A", ttl_ms: 500 });
  await lab.control("lease/orders", "crash", { at: "now" });
  await until(() => socket.events.some((event) => event.kind === "lease_expired"));
  const kinds = socket.events.map((event) => event.kind);
  assert.ok(kinds.indexOf("restarted") > kinds.indexOf("crashed"));
  await socket.close();
});

test("an object that is down does not ring, and catches up when it is restarted", async () => {
  const lab = await newLab();
  const socket = await lab.socket();
  const { expires_at_ms } = await lab.acquire({ holder: "A", ttl_ms: 300 });
  await lab.control("lease/orders", "crash", { at: "now", stay_down: true });
  await untilTime(expires_at_ms + 200);
  assert.ok(!socket.events.some((event) => event.kind === "lease_expired"));
  await lab.control("lease/orders", "restart");
  await until(() => socket.events.some((event) => event.kind === "lease_expired"));
  await socket.close();
});

test("rules change by preset and one by one, and refuse what they do not know", async () => {
  const lab = await newLab();
  const { rules } = await lab.control("lease/orders", "rules", { preset: "published", set: { fifo_queue: true } });
  assert.deepEqual([rules.fifo_queue, rules.renew_proves_grant, rules.keep_token], [true, false, true]);
  const guard = await lab.rules("resource/ledger", { guard: "at_least" });
  assert.equal(guard.rules.guard, "at_least");
  for (const [object, set, detail] of [
    ["lease/other", { nonsense: true }, /nonsense.*use renew_proves_grant/],
    ["lease/other", { fifo_queue: "yes" }, /true or false/],
    ["resource/other", { guard: "maybe" }, /none, at_least, strict or claimed/],
    ["resource/other", { guard: true }, /none/],
  ]) {
    assertProblem(await lab.call("PUT", `/objects/${object}/rules`, { set }), 400, detail);
  }
  // What was refused has made no object.
  const names = (await lab.inspect()).objects.map((object) => object.name);
  assert.deepEqual(names, ["orders", "ledger"]);
});
