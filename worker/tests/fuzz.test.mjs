// A few thousand malformed requests at every route: each is answered, none with a 5xx that
// nobody injected, and the lab still works. FUZZ_SEED and FUZZ_REQUESTS repeat or lengthen.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Lab, assertNumbered, assertProblem, serverForTests } from "./support.mjs";

const holder = serverForTests();
const seed = Number(process.env.FUZZ_SEED ?? 20260420);
const nRequests = Number(process.env.FUZZ_REQUESTS ?? 4000);

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function randomFrom(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Every route, with a body that it would take. */
const ROUTES = [
  ["POST", "/leases/orders/acquire", { holder: "A", nonce: "n", ttl_ms: 1000, request_id: "r", wait_ms: 5, not_after_ms: 1 }],
  ["POST", "/leases/orders/renew", { holder: "A", token: 1, ttl_ms: 1000 }],
  ["POST", "/leases/orders/release", { token: 1 }],
  ["POST", "/leases/orders/force-release", { token: 1, reason: "x" }],
  ["GET", "/leases/orders", undefined],
  ["POST", "/resources/ledger/claim", { lease: "orders", token: 1 }],
  ["POST", "/resources/ledger/write", { lease: "orders", token: 1, key: "a", value: 1, write_id: "w", seq: 1 }],
  ["POST", "/resources/ledger/read", { lease: "orders", token: 1, key: "a" }],
  ["GET", "/resources/ledger", undefined],
  ["POST", "/shards/7/apply", { op: { type: "put", key: "a", value: 1 }, op_id: "o", map_epoch: 0 }],
  ["POST", "/shards/7/seal", { map_epoch: 1 }],
  ["POST", "/shards/7/open", { map_epoch: 1, state: { a: 1 } }],
  ["GET", "/shards/7", undefined],
  ["PUT", "/objects/lease/orders/rules", { preset: "repaired", set: { fifo_queue: true } }],
  ["PUT", "/objects/resource/ledger/rules", { set: { guard: "strict" } }],
  ["POST", "/objects/shard/7/crash", { at: "after_send", stay_down: false }],
  ["POST", "/objects/shard/7/restart", {}],
  ["PUT", "/objects/lease/orders/clock", { offset_ms: 5 }],
  ["PUT", "/objects/lease/orders/faults", [{ message: "acquire", from: "A", action: "slow_store", delay_ms: 1, times: 1 }]],
  ["POST", "/objects/lease/orders/alarm", { action: "fire" }],
  ["GET", "/objects/lease/orders/tables", undefined],
  ["GET", "", undefined],
  ["GET", "/events?after=0&limit=10", undefined],
  ["GET", "/socket?after=0", undefined],
  ["POST", "/events", { events: [{ at_ms: 1, node: "client/A", lamport: 1, local_seq: 1, kind: "client_paused" }] }],
];

const METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"];
const VALUES = [
  null, true, false, -1, 0, 0.5, 1e21, -1e21, 2 ** 53, -(2 ** 53), "", " ", "x", "\u0000", "ü", "😀", "\ud800",
  "x".repeat(70), "x".repeat(5000), "__proto__", "' OR 1=1 --", [], {}, [[]], { a: {} }, "now", "9007199254740993",
];
const RAW = [
  "", " ", "{", "}", "[", "nul", "NaN", "1e999", '"', "{}{}", '{"a":1,}', "\u0000", "\ufeff{}", "[".repeat(3000),
  '{"a":'.repeat(500), "-", "0x10", "01", '{"ttl_ms":18446744073709551616}', '{"__proto__":{"x":1}}',
];
const HEADERS = ["{", "null", "[]", '{"lamport":1e99}', '{"events":[{}]}', '{"from":1}', "x".repeat(3000), '{"events":[{"kind":"noted"}]}'];
const NAMES = ["Orders", "%00", "..", "%2e%2e", "a%2Fb", "ü", "x".repeat(300), "", "%", "?", "orders;", "-", "orders%20"];

function mutate(random, value) {
  const pick = (list) => list[Math.floor(random() * list.length)];
  if (value === null || typeof value !== "object" || random() < 0.15) return pick(VALUES);
  const copy = Array.isArray(value) ? [...value] : { ...value };
  const keys = Object.keys(copy);
  const key = pick(keys);
  const choice = random();
  if (key === undefined || choice < 0.15) copy[pick(["more", "token", "holder", "__proto__x"])] = pick(VALUES);
  else if (choice < 0.3) delete copy[key];
  else copy[key] = mutate(random, copy[key]);
  return Array.isArray(copy) ? copy.filter(() => true) : copy;
}

function request(random) {
  const pick = (list) => list[Math.floor(random() * list.length)];
  let [method, path, body] = pick(ROUTES);
  const headers = { "content-type": "application/json" };
  let text = body === undefined ? undefined : JSON.stringify(mutate(random, body));
  if (random() < 0.15) text = pick(RAW);
  if (random() < 0.1) headers["content-type"] = pick(["text/plain", "application/xml", "multipart/form-data"]);
  if (random() < 0.15) headers["fencepost-trace"] = pick(HEADERS);
  if (random() < 0.1) method = pick(METHODS);
  if (random() < 0.15) path = path.replace(/[^/]+$/, () => pick(NAMES));
  if (random() < 0.1) path = path.replace(/(orders|ledger|7)/, () => pick(NAMES));
  if (random() < 0.05) path += pick(["/", "//", "?after=x", "?limit=-1", "#x", "/..", "/a/b/c/d/e/f"]);
  if (method === "GET" || method === "HEAD") text = undefined;
  // Deleting the lab is well formed.
  if (method === "DELETE" && /^\/?[?#]?[^/]*$/.test(path)) method = "PATCH";
  return { method, path, headers, body: text };
}

test(`${nRequests} malformed requests (seed ${seed})`, { timeout: 300_000 }, async () => {
  const { server } = holder;
  const lab = await Lab.create(server);
  const bystander = await Lab.create(server);
  await bystander.acquire({ holder: "A" });
  const random = randomFrom(seed);
  const requests = Array.from({ length: nRequests }, () => request(random));
  const counts = {};

  const one = async ({ method, path, headers, body }) => {
    const label = `${method} ${path} ${JSON.stringify(headers)} ${String(body).slice(0, 300)}`;
    const response = await server
      .fetch(lab.path + path, { method, headers, body, signal: AbortSignal.timeout(15_000) })
      .catch((error) => assert.fail(`${label}: ${error}, ${error.cause}`));
    const text = await response.text();
    counts[response.status] = (counts[response.status] ?? 0) + 1;
    // A crash is injected here and there; nothing else may fail on our side.
    if (response.status >= 500) assert.match(text, /"reason":"(crashed|down|unreachable)"/, label);
    else if (response.status >= 400 && method !== "HEAD" && lab.path.startsWith("/api/labs/")) {
      if (response.headers.get("content-type")?.startsWith("application/problem+json")) {
        assert.ok(JSON.parse(text).detail.length > 0, label);
      }
    }
  };
  for (let n = 0; n < requests.length; n += 8) {
    await Promise.all(requests.slice(n, n + 8).map(one));
  }

  assert.ok(counts[400] > nRequests / 4, JSON.stringify(counts));
  assert.ok(!/panicked|Critical|code had hung/.test(server.log()), "the runtime's log is clean");
  // The lab still answers, its log is whole, and nobody else noticed.
  await lab.control("lease/fresh", "clock", { offset_ms: 0 });
  assert.equal((await lab.acquire({ holder: "A" }, "fresh")).outcome, "granted");
  assertNumbered(await lab.log());
  const other = await bystander.inspect("leases/orders");
  assert.deepEqual([other.record.lease.token, other.incarnation], [1, 1]);
  assertProblem(await lab.call("POST", "/leases/orders/acquire", "{"), 400);
});
