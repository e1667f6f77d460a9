// Every outcome and every refusal of a lease authority, over HTTP.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Lab, assertProblem, serverForTests, until, untilTime } from "./support.mjs";

const holder = serverForTests();
const newLab = (body) => Lab.create(holder.server, body);

test("granted, refused, released, granted again under a higher token", async () => {
  const lab = await newLab();
  const granted = await lab.acquire({ holder: "A" });
  assert.equal(granted.outcome, "granted");
  assert.equal(granted.token, 1);
  assert.equal(granted.ttl_ms, 60_000);
  assert.ok(Math.abs(granted.expires_at_ms - 60_000 - Date.now()) < 5000);

  const refused = await lab.acquire({ holder: "B" });
  assert.equal(refused.outcome, "refused");
  assert.equal(refused.holder, "A");
  assert.ok(refused.remaining_ms > 0 && refused.remaining_ms <= 60_000);

  assert.deepEqual(await lab.ask("leases/orders/release", { token: 1 }), { outcome: "released" });
  assert.equal((await lab.acquire({ holder: "B" })).token, 2);
});

test("a release or renewal of an old grant changes nothing", async () => {
  const lab = await newLab();
  await lab.acquire({ holder: "A" });
  await lab.ask("leases/orders/release", { token: 1 });
  await lab.acquire({ holder: "B" });
  const before = await lab.inspect("leases/orders");
  assert.deepEqual(await lab.ask("leases/orders/release", { token: 1 }), {
    outcome: "not_holder",
    current_token: 2,
  });
  assert.deepEqual(await lab.ask("leases/orders/renew", { holder: "A", token: 1, ttl_ms: 1000 }), {
    outcome: "lost",
    current_token: 2,
  });
  assert.deepEqual((await lab.inspect("leases/orders")).record, before.record);
});

test("a renewal keeps the token and never shortens", async () => {
  const lab = await newLab();
  const granted = await lab.acquire({ holder: "A" });
  const renewed = await lab.ask("leases/orders/renew", { holder: "A", token: 1, ttl_ms: 100 });
  assert.equal(renewed.outcome, "granted");
  assert.equal(renewed.token, 1);
  assert.equal(renewed.expires_at_ms, granted.expires_at_ms);
});

test("force-release needs the token and a reason", async () => {
  const lab = await newLab();
  await lab.acquire({ holder: "A" });
  const path = "leases/orders/force-release";
  assert.equal((await lab.ask(path, { token: 9, reason: "stuck" })).outcome, "not_holder");
  assert.equal((await lab.ask(path, { token: 1, reason: "stuck" })).outcome, "released");
  const [event] = (await lab.log()).filter((event) => event.kind === "lease_released");
  assert.equal(event.forced, "stuck");
  for (const reason of ["", "x".repeat(201)]) {
    assertProblem(await lab.call("POST", `/${path}`, { token: 1, reason }), 400, /`reason`.*1 to 200/);
  }
});

test("a request id gets its first reply, and belongs to one holder", async () => {
  const lab = await newLab();
  const first = await lab.acquire({ holder: "A", request_id: "r1" });
  const again = await lab.acquire({ holder: "A", request_id: "r1" });
  assert.equal(again.token, first.token);
  assert.equal(again.expires_at_ms, first.expires_at_ms);
  assert.deepEqual(await lab.acquire({ holder: "B", request_id: "r1" }), {
    outcome: "conflict",
    request_id: "r1",
  });
});

test("a request that comes after its not_after_ms is not granted", async () => {
  const lab = await newLab();
  assert.deepEqual(await lab.acquire({ holder: "A", not_after_ms: 1 }), { outcome: "timeout" });
  assert.equal((await lab.inspect("leases/orders")).record.lease.token, 0);
});

test("the queue is first come, first served, and a waiter gives up at its own deadline", async () => {
  const lab = await newLab();
  await lab.acquire({ holder: "A" });
  const ask = (name, wait_ms) => lab.acquire({ holder: name, request_id: `r-${name}`, wait_ms });
  assert.deepEqual(await ask("B", 60_000), { outcome: "queued", position: 1 });
  assert.deepEqual(await ask("C", 5_000), { outcome: "queued", position: 2 });
  assert.deepEqual(await ask("D", 60_000), { outcome: "queued", position: 3 });
  // Six seconds later, by the authority's clock.
  await lab.control("lease/orders", "clock", { offset_ms: 6_000 });
  assert.deepEqual(await ask("C", 5_000), { outcome: "timeout" });
  assert.deepEqual(await ask("D", 60_000), { outcome: "queued", position: 2 });

  await lab.ask("leases/orders/release", { token: 1 });
  const granted = await ask("B", 60_000);
  assert.equal(granted.outcome, "granted");
  assert.equal(granted.token, 2);
  assert.equal((await ask("D", 60_000)).outcome, "queued");
  await lab.ask("leases/orders/release", { token: 2 });
  assert.equal((await ask("D", 60_000)).token, 3);
  const kinds = await lab.kinds("lease/orders");
  assert.equal(kinds.filter((kind) => kind === "waiter_queued").length, 3);
  assert.equal(kinds.filter((kind) => kind === "waiter_timed_out").length, 1);
});

test("an alarm ends a lease and grants it to who waits, with nobody asking", async () => {
  const lab = await newLab();
  const socket = await lab.socket();
  await lab.acquire({ holder: "A", ttl_ms: 150 });
  await lab.acquire({ holder: "B", request_id: "r1", wait_ms: 60_000 });
  const found = await until(
    () => socket.events.find((event) => event.kind === "lease_granted" && event.by === "queue"),
    "the grant from the queue",
  );
  assert.equal(found.token, 2);
  assert.equal(found.holder, "B");
  const kinds = socket.events.map((event) => event.kind);
  assert.ok(kinds.indexOf("alarm_fired") < kinds.indexOf("lease_expired"));
  await socket.close();
});

test("waiters that gave up are dropped by the alarm while the lease is held", async () => {
  const lab = await newLab();
  const socket = await lab.socket();
  await lab.acquire({ holder: "A" });
  await lab.acquire({ holder: "B", request_id: "r1", wait_ms: 50 });
  await until(() => socket.events.some((event) => event.kind === "waiter_timed_out"));
  await socket.close();
});

test("a deadline that no tick can meet does not ring without end", async () => {
  const lab = await newLab();
  await lab.rules("lease/orders", { check_waiter_deadline: false });
  await lab.acquire({ holder: "A" });
  await lab.acquire({ holder: "B", request_id: "r1", wait_ms: 1 });
  const before = (await lab.inspect()).usage.rows_written;
  // A few rings in a second, not thousands; each costs a row.
  await untilTime(Date.now() + 1000);
  await lab.acquire({ holder: "C" });
  assert.ok((await lab.inspect()).usage.rows_written - before < 40);
});

test("expiry is a comparison: it needs no alarm", async () => {
  const lab = await newLab();
  await lab.control("lease/orders", "alarm", { action: "suppress" });
  const { expires_at_ms } = await lab.acquire({ holder: "A", ttl_ms: 100 });
  await untilTime(expires_at_ms);
  assert.equal((await lab.acquire({ holder: "B" })).token, 2);
});

test("the queue takes 32 and refuses the next", async () => {
  const lab = await newLab();
  await lab.acquire({ holder: "A" });
  for (let n = 1; n <= 32; n += 1) {
    const queued = await lab.acquire({ holder: "B", request_id: `r${n}`, wait_ms: 60_000 });
    assert.equal(queued.position, n);
  }
  const refused = await lab.acquire({ holder: "B", request_id: "r33", wait_ms: 60_000 });
  assert.equal(refused.outcome, "refused");
});

test("the paper's rules: the same name re-enters, renewing gives a fresh token", async () => {
  const lab = await newLab({ preset: "published" });
  await lab.acquire({ holder: "A" });
  assert.equal((await lab.acquire({ holder: "A" })).token, 2);
  const renewed = await lab.ask("leases/orders/renew", { holder: "A", token: 1, ttl_ms: 1000 });
  assert.equal(renewed.token, 3);
});

test("tokens end at the safe range, and the last one is not given twice", async () => {
  // No test can grant 2^53 times; what can be seen from outside is that the number that
  // would be rounded is refused on the way in.
  const lab = await newLab();
  const path = "/leases/orders/release";
  assertProblem(await lab.call("POST", path, `{"token":9007199254740992}`), 400, /`token`.*9007199254740991/);
  assert.equal((await lab.ask("leases/orders/release", { token: 9007199254740991 })).outcome, "not_holder");
});

test("two holders of one name are told apart by their nonce", async () => {
  const lab = await newLab();
  await lab.acquire({ holder: "A", nonce: "one" });
  assert.equal((await lab.acquire({ holder: "A", nonce: "two" })).outcome, "refused");
});

test("a hundred at once: one holder, every token once", async () => {
  const lab = await newLab();
  const replies = await Promise.all(
    Array.from({ length: 100 }, (_, n) => lab.acquire({ holder: `H${n}` })),
  );
  assert.equal(replies.filter((reply) => reply.outcome === "granted").length, 1);
  const granted = (await lab.log()).filter((event) => event.kind === "lease_granted");
  assert.equal(granted.length, 1);
});
