// Bad input: each gets a clear problem, before anything is written.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Lab, assertProblem, call, serverForTests } from "./support.mjs";

const holder = serverForTests();
const newLab = (body) => Lab.create(holder.server, body);

const ACQUIRE = { holder: "A", ttl_ms: 1000 };

/** Checks that a body is refused by a field's name, and that the object was not made. */
async function refused(path, body, detail) {
  const lab = await newLab();
  assertProblem(await lab.call("POST", path, body), 400, detail);
  assert.deepEqual((await lab.inspect()).objects, [], JSON.stringify(body));
}

test("a number out of range is refused with the range", async () => {
  for (const [change, detail] of [
    [{ ttl_ms: 99 }, /`ttl_ms`.*from 100 to 3600000/],
    [{ ttl_ms: 3_600_001 }, /`ttl_ms`.*from 100 to 3600000/],
    [{ ttl_ms: -1 }, /`ttl_ms`/],
    [{ ttl_ms: 1000.5 }, /`ttl_ms`.*floating point/],
    [{ ttl_ms: "1000" }, /`ttl_ms`.*string/],
    [{ ttl_ms: null }, /`ttl_ms`/],
    [{ ttl_ms: [1000] }, /`ttl_ms`/],
    [{ wait_ms: 600_001 }, /`wait_ms`/],
    [{ not_after_ms: 2 ** 53 }, /`not_after_ms`/],
  ]) {
    await refused("/leases/orders/acquire", { ...ACQUIRE, ...change }, detail);
  }
  await refused("/leases/orders/acquire", '{"holder":"A","ttl_ms":1e400}', /number out of range/);
  await refused("/leases/orders/acquire", '{"holder":"A","ttl_ms":NaN}', /expected value/);
  await refused("/resources/ledger/claim", { lease: "orders", token: -1 }, /`token`/);
  await refused("/resources/ledger/claim", { lease: "Orders", token: 1 }, /`lease`.*a-z 0-9/);
  const write = { lease: "orders", token: 1, key: "a", value: 2 ** 53 };
  await refused("/resources/ledger/write", write, /`value`/);
  await refused("/shards/7/apply", { op: { type: "add", key: "a", amount: 0.5 } }, /`op/);
  await refused("/shards/7/open", { map_epoch: 1, state: { "a b": 1 } }, /`state/);
});

test("missing, unknown and doubled members are refused by name", async () => {
  await refused("/leases/orders/acquire", { ttl_ms: 1000 }, /missing field `holder`/);
  await refused("/leases/orders/acquire", { ...ACQUIRE, ttl: 5 }, /unknown field `ttl`/);
  await refused("/leases/orders/acquire", '{"holder":"A","holder":"B","ttl_ms":1000}', /duplicate field `holder`/);
  await refused("/leases/orders/acquire", { ...ACQUIRE, holder: "" }, /`holder`.*1 to 64/);
  await refused("/leases/orders/acquire", { ...ACQUIRE, holder: "x".repeat(65) }, /`holder`/);
  await refused("/leases/orders/acquire", { ...ACQUIRE, holder: "Ä" }, /`holder`/);
  await refused("/shards/7/apply", { op: { type: "remove", key: "a" } }, /unknown variant `remove`/);
  await refused("/shards/7/apply", { op: { type: "put", key: "a", value: 1, more: 1 } }, /unknown field/);
  await refused("/objects/lease/orders/crash", { at: "later" }, /`at`.*unknown variant/);
  await refused("/objects/lease/orders/clock", { offset_ms: 31_536_000_001 }, /`offset_ms`/);
  await refused("/objects/lease/orders/alarm", { action: "sing" }, /`action`/);
  await refused("/objects/lease/orders/restart", { now: true }, /unknown field/);
  await refused("/objects/lease/orders/faults", [{ message: "claim", action: "unreachable" }], /no operation of a lease/);
  await refused("/objects/lease/orders/faults", [{ message: "*", action: "slow_store" }], /delay_ms/);
  await refused("/objects/lease/orders/faults", [{ message: "*", action: "unreachable", times: 0 }], /times/);
  const many = Array.from({ length: 17 }, () => ({ message: "*", action: "unreachable" }));
  await refused("/objects/lease/orders/faults", many, /at most 16/);
  assertProblem(await call(holder.server, "POST", "/api/labs", { preset: "best" }), 400, /`preset`/);
  assertProblem(await call(holder.server, "POST", "/api/labs", { tracing: "no" }), 400, /`tracing`/);
});

test("what is no JSON is refused, and what does not say that it is", async () => {
  const lab = await newLab();
  for (const body of ["", "{", "null", "[]", "7", "{} {}", '{"holder":"A","ttl_ms":1000}x', "\u0000", "[".repeat(20_000)]) {
    assertProblem(await lab.call("POST", "/leases/orders/acquire", body), 400);
  }
  const path = `${lab.path}/leases/orders/acquire`;
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""]) {
    const headers = { "content-type": type };
    const answer = await call(holder.server, "POST", path, JSON.stringify(ACQUIRE), headers);
    assertProblem(answer, 400, /content-type: application\/json/);
  }
  const headers = { "content-type": "application/json; charset=utf-8" };
  assert.equal((await call(holder.server, "POST", path, JSON.stringify(ACQUIRE), headers)).status, 200);
});

test("a body over 64 kB is refused, however it is sent", async () => {
  const lab = await newLab();
  const body = JSON.stringify({ ...ACQUIRE, holder: "x".repeat(70_000) });
  for (const path of ["/leases/orders/acquire", "/events", "/objects/lease/orders/rules"]) {
    assertProblem(await lab.call("POST", path, body), 413, /65536/);
  }
  assertProblem(await call(holder.server, "POST", "/api/labs", body), 413);
  // In chunks, without saying how long it will be.
  const chunks = new ReadableStream({
    pull(controller) {
      controller.enqueue(new TextEncoder().encode("x".repeat(8192)));
      this.sent = (this.sent ?? 0) + 1;
      if (this.sent > 40) controller.close();
    },
  });
  const answer = await holder.server.fetch(`${lab.path}/leases/orders/acquire`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: chunks,
    duplex: "half",
  });
  assert.equal(answer.status, 413);
  await answer.text();
  // Just below the limit it is read, and refused for what is in it.
  const below = JSON.stringify({ ...ACQUIRE, holder: "x".repeat(65_400) });
  assertProblem(await lab.call("POST", "/leases/orders/acquire", below), 400, /`holder`/);
});

test("names are checked before anything is touched", async () => {
  const lab = await newLab();
  for (const name of ["Orders", "a%20b", "a%2Fb", "%F0%9F%98%80", "x".repeat(65), "a~b", "..%2f"]) {
    assertProblem(await lab.call("POST", `/leases/${name}/acquire`, ACQUIRE), 400, /is not a name/);
    assertProblem(await lab.call("POST", `/objects/lease/${name}/crash`, { at: "now" }), 400);
  }
  assert.deepEqual((await lab.inspect()).objects, []);
});

test("unknown paths are 404, known paths with another method 405 with Allow", async () => {
  const lab = await newLab();
  for (const path of ["/nonsense", "/leases/orders/claim", "/objects/lease/orders/nonsense", "/wallets/a/open", "/", "/leases"]) {
    assertProblem(await lab.call("POST", path, {}), 404, /openapi/);
  }
  for (const [method, path, allow] of [
    ["GET", "/leases/orders/acquire", "POST, OPTIONS"],
    ["DELETE", "/leases/orders", "GET, OPTIONS"],
    ["POST", "", "GET, DELETE, OPTIONS"],
    ["PUT", "/events", "GET, POST, OPTIONS"],
    ["GET", "/objects/lease/orders/crash", "PUT, POST, OPTIONS"],
    ["POST", "/socket", "GET, OPTIONS"],
    ["PATCH", "/objects/lease/orders/tables", "GET, OPTIONS"],
  ]) {
    const answer = await lab.call(method, path);
    assertProblem(answer, 405);
    assert.equal(answer.headers.get("allow"), allow);
  }
  assertProblem(await call(holder.server, "GET", "/api/labs"), 405);
  assertProblem(await call(holder.server, "GET", "/api/nonsense"), 404);
  assertProblem(await call(holder.server, "GET", "/api/labs/short"), 404, /POST \/api\/labs/);
});

test("what objects tell each other cannot be said from outside", async () => {
  const lab = await newLab();
  for (const path of ["/internal/forget", "/internal/append", "/api/internal/forget", `/internal/create/${lab.id}`]) {
    const answer = await call(holder.server, "POST", path, "[]");
    // Outside /api the page's files answer, if there are any.
    assert.ok(answer.status >= 400 || /html/.test(answer.headers.get("content-type")), path);
  }
  assert.equal((await lab.inspect()).last_seq, 1);
});

test("a learner's own page may use the API", async () => {
  const preflight = await call(holder.server, "OPTIONS", "/api/labs", undefined, {
    origin: "https://example.com",
    "access-control-request-method": "POST",
    "access-control-request-headers": "content-type,fencepost-trace",
  });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get("access-control-allow-origin"), "*");
  assert.match(preflight.headers.get("access-control-allow-headers"), /fencepost-trace/);
  const lab = await newLab();
  const answer = await lab.call("POST", "/leases/orders/acquire", ACQUIRE);
  assert.equal(answer.headers.get("access-control-allow-origin"), "*");
  assert.match(answer.headers.get("access-control-expose-headers"), /fencepost-lamport/);
  const problem = await lab.call("POST", "/leases/orders/acquire", {});
  assert.equal(problem.headers.get("access-control-allow-origin"), "*");
});

test("health, and the description of the API if it has been built", async () => {
  const health = await call(holder.server, "GET", "/api/health");
  assert.equal(health.body.ok, true);
  assert.match(health.body.version, /^\d+\.\d+\.\d+$/);
  const openapi = await call(holder.server, "GET", "/api/openapi.json");
  if (openapi.status === 404) assertProblem(openapi, 404);
  else assert.match(openapi.body.openapi, /^3\.1/);
});

test("the trace header is checked like a body", async () => {
  const lab = await newLab();
  for (const header of ["{", "[]", '{"lamport":-1}', '{"from":"a b"}', '{"request":""}', '{"lamport":18446744073709551615}']) {
    const answer = await lab.call("POST", "/leases/orders/acquire", ACQUIRE, { "fencepost-trace": header });
    assertProblem(answer, 400, /fencepost-trace/);
  }
  assert.deepEqual((await lab.inspect()).objects, []);
});
