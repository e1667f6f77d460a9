// Two-phase commit on the real runtime: transfers, doubt, and the ways out of it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Lab, assertNumbered, assertProblem, serverForTests, until } from "./support.mjs";

const holder = serverForTests();

const LEGS = [
  { account: "a", delta: -30 },
  { account: "b", delta: 30 },
];

/** Accounts `a`, `b` and `c` with 100 each. */
async function bank(server, body) {
  const lab = await Lab.create(server, body);
  for (const name of ["a", "b", "c"]) await lab.ask(`accounts/${name}/open`, { balance: 100 });
  return lab;
}

const account = async (lab, name) => (await lab.inspect(`accounts/${name}`)).record.account;
const txn = async (lab, name = "t") => (await lab.inspect(`transactions/${name}`)).record.transaction;
const balances = async (lab) => {
  const all = await Promise.all(["a", "b", "c"].map((name) => account(lab, name)));
  return all.map((one) => one.balance);
};
const available = ({ balance, holds }) =>
  balance + Object.values(holds).reduce((sum, { state, delta }) => sum + (state === "prepared" ? Math.min(delta, 0) : 0), 0);
const states = async (lab, name = "t") => {
  const all = await Promise.all(["a", "b"].map((one) => account(lab, one)));
  return all.map((one) => one.holds[name]?.state ?? "-");
};
const isDone = (lab, name) => async () => (await txn(lab, name)).phase.startsWith("done");
const run = (lab, name = "t", legs = LEGS, more = {}) => lab.call("POST", `/transactions/${name}/run`, { legs, ...more });

test("a transfer commits, and too large a one is aborted", async () => {
  const lab = await bank(holder.server);
  const committed = await run(lab);
  assert.equal(committed.body.outcome, "committed", committed.text);
  await until(isDone(lab, "t"));
  assert.deepEqual(await balances(lab), [70, 130, 100]);
  const aborted = await run(lab, "t2", [{ account: "a", delta: -71 }, { account: "b", delta: 71 }]);
  assert.deepEqual(aborted.body, { outcome: "aborted", reason: "insufficient_funds: a" });
  await until(isDone(lab, "t2"));
  assert.deepEqual(await balances(lab), [70, 130, 100]);
  const again = await run(lab);
  assert.deepEqual(again.body, { outcome: "committed", n_pending: 0 });
  const other = await run(lab, "t", [{ account: "a", delta: -31 }, { account: "b", delta: 31 }]);
  assert.equal(other.body.outcome, "conflict");
  assert.match(other.body.difference, /a -30 .* a -31/);

  const log = await lab.log();
  assertNumbered(log);
  // What a message led to comes after it was sent.
  const sent = new Map();
  for (const event of log) {
    if (event.kind === "message_sent") sent.set(event.request, event.seq);
    if (event.kind === "message_delivered") assert.ok(sent.get(event.request) < event.seq, event.request);
  }
  assert.ok(sent.size >= 8, `${sent.size} messages`);
});

test("issue 3: in doubt while the coordinator is down, and out of it without a call", async () => {
  const lab = await bank(holder.server);
  await lab.control("transaction/t", "crash", { at: "after_decision", stay_down: true });
  const answer = await run(lab);
  assertProblem(answer, 503);
  assert.deepEqual(await states(lab), ["prepared", "prepared"]);
  const a = await account(lab, "a");
  assert.deepEqual([a.balance, available(a)], [100, 70]);
  const { in_doubt: [doubt] } = await lab.inspect("accounts/a");
  assert.deepEqual([doubt.coordinator, doubt.delta], ["transaction/t", -30]);
  assert.ok(doubt.age_ms >= 0);
  const second = await run(lab, "t2", [{ account: "a", delta: -80 }, { account: "c", delta: 80 }]);
  assert.deepEqual(second.body, { outcome: "aborted", reason: "insufficient_funds: a" });

  await lab.control("transaction/t", "restart");
  const restarted = Date.now();
  await until(async () => (await balances(lab)).join() === "70,130,100", "both legs to commit");
  assert.ok(Date.now() - restarted < 3_000, `${Date.now() - restarted} ms`);
  await until(isDone(lab, "t"));
});

const POINTS = [
  ["before_persist"],
  ["after_persist"],
  ["after_send"],
  ["after_preparing"],
  ["after_nth_vote", 1],
  ["after_nth_vote", 2],
  ["before_decision"],
  ["after_decision"],
  ["after_nth_ack", 1],
  ["after_nth_ack", 2],
  ["before_done"],
];

for (const [at, n] of POINTS) {
  test(`a real crash ${at}${n ? ` ${n}` : ""}: one outcome, nothing held, money conserved`, async () => {
    const lab = await bank(holder.server);
    await lab.control("transaction/t", "crash", n ? { at, n } : { at });
    await run(lab, "t", LEGS, { vote_within_ms: 500 }).catch(() => null);
    await until(async () => (await lab.log()).some(({ kind }) => kind === "crashed"), "the crash");
    // Nobody calls: the alarm goes on. Only what was never stored has to be asked for again.
    if (at === "before_persist") assert.equal((await run(lab)).body.outcome, "committed");
    await until(isDone(lab, "t"), "the alarm to finish it");
    const { phase } = await txn(lab);
    const committed = phase === "done_commit";
    assert.deepEqual(await balances(lab), committed ? [70, 130, 100] : [100, 100, 100], phase);
    assert.ok(!(await states(lab)).includes("prepared"), phase);
    assert.equal((await run(lab)).body.outcome, committed ? "committed" : "aborted");
  });
}

test("messages wait in manual delivery, and are delivered, duplicated and dropped by hand", async () => {
  const lab = await bank(holder.server);
  const set = await lab.call("PUT", "/delivery", { mode: "manual" });
  assert.deepEqual(set.body, { outcome: "delivery_set", mode: "manual", n_unreached: 0 });
  // The kill below takes its answer away.
  const running = run(lab, "t", LEGS, { vote_within_ms: 600_000 }).catch(() => null);
  const outbox = async (object) => {
    const answer = await lab.call("GET", `/objects/${object}/outbox`);
    return answer.status === 200 ? answer.body.messages : [];
  };
  const act = async (object, word, pick = () => true) => {
    const found = await until(async () => (await outbox(object)).find((one) => one.held && pick(one)), `a message at ${object}`);
    const answer = await lab.call("POST", `/objects/${object}/outbox/${found.id}/${word}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.body.outcome;
  };
  const to = (name) => (one) => one.to === `account/${name}`;
  assert.equal(await act("transaction/t", "duplicate", to("a")), "message_duplicated");
  for (let n = 0; n < 2; n += 1) {
    assert.equal(await act("transaction/t", "deliver", to("a")), "message_released");
    await act("account/a", "deliver");
  }
  await act("transaction/t", "deliver", to("b"));

  // What waits is durable.
  await until(async () => (await outbox("account/b")).length === 1, "the vote of b");
  const before = await outbox("account/b");
  await holder.server.kill();
  await running;
  await holder.server.restart();
  // By now it may also have asked what was decided.
  assert.deepEqual((await outbox("account/b")).slice(0, 1), before);
  assert.deepEqual(await states(lab), ["prepared", "prepared"]);

  const again = run(lab, "t", LEGS);
  await act("account/b", "drop", (one) => one.id === before[0].id);
  assert.equal((await lab.call("POST", "/objects/account/b/outbox/999/drop")).body.outcome, "no_such_message");
  await lab.call("PUT", "/delivery", { mode: "auto" });
  assert.equal((await again).body.outcome, "committed");
  await until(isDone(lab, "t"));
  assert.deepEqual(await balances(lab), [70, 130, 100]);
});

test("a message is held, dropped, delayed or duplicated by a fault, and so is its answer", async () => {
  for (const fault of [
    ["transaction/t", { message: "prepare", to: "b", action: "drop" }],
    ["account/b", { message: "prepare", reply: true, action: "drop" }],
    ["transaction/t", { message: "commit", action: "duplicate" }],
    ["transaction/t", { message: "commit", to: "a", action: "drop" }],
    ["account/a", { message: "commit", reply: true, action: "drop" }],
    ["transaction/t", { message: "prepare", action: "delay", delay_ms: 200 }],
    ["account/b", { message: "prepare", action: "unreachable" }],
  ]) {
    const lab = await bank(holder.server);
    const [object, body] = fault;
    await lab.control(object, "faults", [{ ...body, times: 1 }]);
    const answer = await run(lab, "t", LEGS, { vote_within_ms: 700 });
    const { outcome } = answer.body;
    assert.ok(["committed", "aborted"].includes(outcome), `${JSON.stringify(fault)}: ${answer.text}`);
    await until(isDone(lab, "t"), JSON.stringify(fault));
    const expected = outcome === "committed" ? [70, 130, 100] : [100, 100, 100];
    assert.deepEqual(await balances(lab), expected, JSON.stringify(fault));
  }
});

test("SIGKILL in the middle of transfers: every one ends, and money is conserved", async () => {
  const lab = await bank(holder.server);
  const names = Array.from({ length: 12 }, (_, n) => `t${n}`);
  const legs = [{ account: "a", delta: -5 }, { account: "b", delta: 2 }, { account: "c", delta: 3 }];
  const told = new Map();
  const running = names.map(async (name) => {
    const answer = await run(lab, name, legs, { vote_within_ms: 1_000 }).catch(() => null);
    if (answer?.status === 200) told.set(name, answer.body.outcome);
  });
  await until(() => told.size >= 2, "two transfers");
  await holder.server.kill();
  await Promise.all(running);
  await holder.server.restart();
  let n_committed = 0;
  for (const name of names) {
    const { body } = await run(lab, name, legs);
    assert.ok(["committed", "aborted"].includes(body.outcome), `${name}: ${JSON.stringify(body)}`);
    if (told.has(name)) assert.equal(body.outcome, told.get(name), name);
    n_committed += body.outcome === "committed" ? 1 : 0;
    await until(isDone(lab, name), name);
  }
  assert.deepEqual(await balances(lab), [100 - 5 * n_committed, 100 + 2 * n_committed, 100 + 3 * n_committed]);
  assertNumbered(await lab.log());
});

test("by hand: resolve is recorded, mixed is reported, forget waits for everybody", async () => {
  const lab = await bank(holder.server);
  await lab.control("transaction/t", "crash", { at: "after_decision", stay_down: true });
  await run(lab).catch(() => null);
  assertProblem(await lab.call("POST", "/accounts/b/resolve", { transaction: "t", decision: "abort", reason: "" }), 400, /reason/);
  const resolved = await lab.ask("accounts/b/resolve", { transaction: "t", decision: "abort", reason: "the bank called" });
  assert.deepEqual(resolved, { outcome: "resolved", balance: 100 });
  await lab.control("transaction/t", "restart");
  await until(async () => (await txn(lab)).legs.some((leg) => leg.mixed), "the mixed outcome");
  const { phase } = await txn(lab);
  assert.equal(phase, "commit", "never done");
  assert.ok((await lab.kinds("transaction/t")).includes("mixed_found"));

  const early = await bank(holder.server);
  await early.call("PUT", "/delivery", { mode: "manual" });
  const running = run(early);
  await until(async () => (await early.call("GET", "/transactions/t")).status === 200, "the transaction");
  assert.equal((await early.ask("transactions/t/forget", {})).outcome, "refused");
  await early.call("PUT", "/delivery", { mode: "auto" });
  assert.equal((await running).body.outcome, "committed");
  await until(isDone(early, "t"));
  assert.equal((await early.ask("transactions/t/forget", {})).outcome, "forgotten");
});

test("bad legs are refused before anything is written", async () => {
  const lab = await bank(holder.server);
  const many = Array.from({ length: 17 }, (_, n) => ({ account: `a${n}`, delta: 1 }));
  for (const [legs, detail] of [
    [[], /0 legs: use 1 to 16/],
    [many, /17 legs/],
    [[{ account: "a", delta: -5 }], /add up to -5/],
    [[{ account: "a", delta: 0 }, { account: "b", delta: 0 }], /is 0/],
    [[{ account: "a", delta: -0.5 }, { account: "b", delta: 0.5 }], /delta/],
    [[{ account: "a", delta: "-5" }, { account: "b", delta: "5" }], /delta/],
    [[{ account: "a", delta: -(2 ** 53) }, { account: "b", delta: 2 ** 53 }], /out of range/],
    [[{ account: "A", delta: -5 }, { account: "b", delta: 5 }], /not a name/],
  ]) {
    assertProblem(await run(lab, "bad", legs), 400, detail);
  }
  assert.equal((await lab.call("GET", "/transactions/bad")).status, 404, "no object came to be");
  const twice = [{ account: "a", delta: -5 }, { account: "a", delta: -5 }, { account: "b", delta: 10 }];
  assert.deepEqual((await run(lab, "twice", twice)).body, { outcome: "refused", reason: "a has two legs: add them up" });
  const unopened = await run(lab, "u", [{ account: "a", delta: -5 }, { account: "zed", delta: 5 }]);
  assert.deepEqual(unopened.body, { outcome: "aborted", reason: "not_opened: zed" });
  assertProblem(await lab.call("POST", "/objects/account/a/crash", { at: "after_decision" }), 400, /transaction/);
});

test("the paper's coordinator on the real runtime: nobody set the alarm (K6)", async () => {
  const lab = await bank(holder.server, { preset: "published" });
  await lab.control("transaction/t", "crash", { at: "after_nth_vote", n: 1 });
  await run(lab).catch(() => null);
  await until(async () => (await states(lab)).join() === "prepared,prepared", "both to hold");
  const { phase, next_attempt_at_ms } = await txn(lab);
  assert.deepEqual([phase, next_attempt_at_ms], ["preparing", null], "and nobody will ever come");
  await lab.ask("transactions/t/recover", {});
  await until(isDone(lab, "t"));
  assert.deepEqual(await states(lab), ["aborted", "aborted"]);
});
