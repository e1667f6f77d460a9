// What the worker tests share: a server for the file, labs, requests, sockets, waiting.
//
// Invariant: no test sleeps for a guessed time. It waits for a condition, or until a
// point in time that the server itself has named.
//
// FENCEPOST_BUILD and FENCEPOST_DIST name other folders than the profile's.

import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before } from "node:test";

import WebSocket from "ws";

import { start } from "./server.mjs";

const WAIT_MS = 15_000;

/** A server for the tests of one file, there before the first and gone after the last. */
export function serverForTests(vars = {}) {
  const holder = {};
  before(async () => {
    holder.server = await start({
      vars,
      build: process.env.FENCEPOST_BUILD,
      dist: process.env.FENCEPOST_DIST,
    });
  });
  after(() => holder.server?.stop());
  return holder;
}

/** Waits until `check` gives something. */
export async function until(check, what = String(check)) {
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    const found = await check();
    if (found) return found;
    assert.ok(Date.now() < deadline, `waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Waits until a point in time of this machine's clock, which the server shares. */
export async function untilTime(atMs) {
  while (Date.now() <= atMs) await new Promise((resolve) => setTimeout(resolve, atMs + 1 - Date.now()));
}

/** One request: `{status, headers, body, text}`; `body` is parsed. */
export async function call(server, method, path, body, headers = {}) {
  const init = { method, headers };
  if (body !== undefined) {
    init.headers = { "content-type": "application/json", ...headers };
    init.body = typeof body === "string" ? body : JSON.stringify(body);
  }
  const response = await server.fetch(path, { signal: AbortSignal.timeout(20_000), ...init });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: parse(text), text };
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Checks that an answer is a problem of this status, with a detail. */
export function assertProblem(answer, status, detail = /./) {
  assert.equal(answer.status, status, answer.text);
  assert.match(answer.headers.get("content-type"), /^application\/problem\+json/);
  assert.equal(answer.body.status, status);
  assert.match(answer.body.detail, detail);
  assert.match(answer.body.type, /^urn:fencepost:problem:/);
  return answer.body;
}

/** A lab of its own. */
export class Lab {
  static async create(server, body = {}) {
    const answer = await call(server, "POST", "/api/labs", body);
    assert.equal(answer.status, 201, answer.text);
    return new Lab(server, answer.body.lab);
  }

  constructor(server, id) {
    this.server = server;
    this.id = id;
    this.path = `/api/labs/${id}`;
  }

  call(method, path, body, headers) {
    return call(this.server, method, this.path + path, body, headers);
  }

  /** An operation that is answered: its body. */
  async ask(path, body, headers) {
    const answer = await this.call("POST", `/${path}`, body, headers);
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  }

  acquire(body, lease = "orders") {
    return this.ask(`leases/${lease}/acquire`, { ttl_ms: 60_000, ...body });
  }

  /** A control that is carried out: its body. */
  async control(object, word, body) {
    const answer = await this.call("POST", `/objects/${object}/${word}`, body);
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  }

  rules(object, set) {
    return this.control(object, "rules", { set });
  }

  async inspect(path) {
    const answer = await this.call("GET", path === undefined ? "" : `/${path}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  }

  async tables(object) {
    const answer = await this.call("GET", `/objects/${object}/tables`);
    assert.equal(answer.status, 200, answer.text);
    return Object.fromEntries(answer.body.tables.map((table) => [table.name, table.rows]));
  }

  /** The whole log. */
  async log(after = 0) {
    const events = [];
    for (let more = true; more; ) {
      const answer = await this.call("GET", `/events?after=${after}`);
      assert.equal(answer.status, 200, answer.text);
      events.push(...answer.body.events);
      ({ next_after: after, more } = answer.body);
    }
    return events;
  }

  async kinds(node) {
    const events = await this.log();
    return events.filter((event) => event.node === node).map((event) => event.kind);
  }

  socket(after) {
    return Socket.open(this, after);
  }
}

/** A listener that remembers what it was sent. */
export class Socket {
  static async open(lab, after) {
    const url = lab.server.url.replace("http", "ws");
    const query = after === undefined ? "" : `?after=${after}`;
    const socket = new Socket(new WebSocket(`${url}${lab.path}/socket${query}`));
    await once(socket.ws, "open", { signal: AbortSignal.timeout(WAIT_MS) });
    return socket;
  }

  constructor(ws) {
    this.ws = ws;
    this.events = [];
    this.pongs = 0;
    this.closed = new Promise((resolve) =>
      ws.on("close", (code, reason) => resolve({ code, reason: String(reason) })),
    );
    ws.on("error", () => {});
    ws.on("message", (data) => {
      if (String(data) === "pong") this.pongs += 1;
      else this.events.push(...JSON.parse(data).events);
    });
  }

  get lastSeq() {
    return this.events.at(-1)?.seq ?? 0;
  }

  async reaches(seq) {
    await until(() => this.lastSeq >= seq, `event ${seq} on a socket that has ${this.lastSeq}`);
  }

  async close(code = 1000) {
    this.ws.close(code);
    return this.closed;
  }
}

/** Checks that events have the numbers from `first` on, without a gap. */
export function assertNumbered(events, first = 1) {
  assert.deepEqual(
    events.map((event) => event.seq),
    events.map((_, index) => first + index),
  );
}

/** A client with its own node, counting as clients do. */
export class Client {
  constructor(name) {
    this.name = name;
    this.localSeq = Date.now() * 1000;
    this.lamport = 0;
    this.unreported = [];
    this.n = 0;
  }

  note(kind, more = {}) {
    this.lamport += 1;
    this.localSeq += 1;
    this.unreported.push({
      at_ms: Date.now(),
      node: `client/${this.name}`,
      lamport: this.lamport,
      local_seq: this.localSeq,
      kind,
      ...more,
    });
    return this.unreported.at(-1);
  }

  /** The header of a request to a node, with everything not yet reported. */
  header(to, operation) {
    this.n += 1;
    const request = `${this.name}.${this.n}`;
    this.note("request_sent", { request, to, operation, summary: operation });
    const { lamport, unreported: events } = this;
    return {
      request,
      headers: { "fencepost-trace": JSON.stringify({ request, from: this.name, lamport, events }) },
    };
  }
}
