// What Rust asks of the runtime, each in one call.
//
// Crossing between Rust and JavaScript costs more than the work done here, so one
// function does all that belongs together: read a request, commit a turn, answer.
// No function here decides anything; none of them calls back into Rust.

/** Calls between objects. The entry forwards `/api/…` only, so nobody outside gets here. */
const INTERNAL = "https://fencepost.internal/internal/";

/**
 * Rust's futures ask for a microtask each time they go on, five times a request or more.
 * The runtime's own `queueMicrotask` is a call out of the engine; a promise that is resolved
 * already does the same inside it, in a tenth of the time.
 */
const runtimeMicrotask = globalThis.queueMicrotask;
const resolved = Promise.resolve();
globalThis.queueMicrotask = (task) => {
  resolved.then(task).catch((error) => {
    // Where the runtime looks for errors that nobody handled.
    runtimeMicrotask(() => {
      throw error;
    });
  });
};

const BODY_BYTES_MAX = 64 * 1024;
const DRAINED_BYTES_MAX = 1024 * 1024;
const INTERNAL_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Reads a request whole and gives it to an object's handler, which answers at once when it
 * has nothing to wait for.
 */
export async function serve(request, handle) {
  let parts;
  try {
    parts = await receive(request);
  } catch {
    parts = null;
  }
  return handle(parts);
}

/**
 * `[method, url, content type, trace header, body, wants to be a socket]`; the body is `null`
 * when it is too large.
 */
async function receive(request) {
  const { method, url, headers } = request;
  const type = headers.get("content-type");
  const trace = headers.get("fencepost-trace");
  if (request.body !== null) {
    const bytesMax = url.startsWith(INTERNAL + "append") ? INTERNAL_BYTES_MAX : BODY_BYTES_MAX;
    return [method, url, type, trace, await readText(request, bytesMax)];
  }
  return [method, url, type, trace, "", headers.get("upgrade")?.toLowerCase() === "websocket"];
}

async function readText(request, bytesMax) {
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) <= bytesMax) return request.text();
  if (Number(declared) > DRAINED_BYTES_MAX) return null;
  // Sent in chunks, or too large. What is too much is read and dropped up to a limit, since
  // many a client does not look for an answer before it has sent everything.
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of request.body) {
    bytes += chunk.byteLength;
    if (bytes > DRAINED_BYTES_MAX) return null;
    if (bytes <= bytesMax) text += decoder.decode(chunk, { stream: true });
  }
  return bytes > bytesMax ? null : text + decoder.decode();
}

/**
 * Reads a body that nobody wants. Answering before the body is read makes the runtime close
 * the connection, and a client that reuses it at that moment sees its next request fail.
 */
export async function afterDraining(request, response) {
  if (request.body !== null) await readText(request, BODY_BYTES_MAX).catch(() => {});
  return response;
}

/** A JSON answer. A negative Lamport time stands for none. */
export function answer(status, body, lamport) {
  const headers = {
    "content-type": status < 400 ? "application/json" : "application/problem+json",
    "access-control-allow-origin": "*",
    "access-control-expose-headers": "fencepost-lamport, allow",
    "cache-control": "no-store",
  };
  if (lamport >= 0) headers["fencepost-lamport"] = String(lamport);
  return new Response(body, { status, headers });
}

/** The answer to a wrong method. */
export function notAllowed(body, allow) {
  const response = answer(405, body, -1);
  response.headers.set("allow", allow);
  return response;
}

/** The answer to a browser that asks before it sends. */
export function preflight() {
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "GET, POST, PUT, DELETE, OPTIONS",
      "access-control-allow-headers": "content-type, fencepost-trace",
      "access-control-max-age": "86400",
    },
  });
}

function stub(env, binding, name) {
  const namespace = env[binding];
  return namespace.get(namespace.idFromName(name));
}

/** What the entry answers for an object that cannot: told once by Rust. */
let words;

export function tellWords(crashed, crashedAsAsked, internal) {
  words = { crashed, crashedAsAsked, internal };
}

/** The object's response. */
export function forward(env, binding, name, request) {
  const isCrash = request.method === "POST" && request.url.endsWith("/crash");
  return stub(env, binding, name)
    .fetch(request)
    .catch((error) => answerForObject(error, isCrash));
}

/** The same, for a request whose path says nothing about the object. */
export function forwardInternal(env, binding, name, path, request) {
  return stub(env, binding, name).fetch(new Request(INTERNAL + path, request)).catch((error) => answerForObject(error, false));
}

function answerForObject(error, isCrash) {
  // The object was ended while it worked on this, which may be what was asked for.
  if (error?.durableObjectReset && isCrash) return answer(200, words.crashedAsAsked, -1);
  if (error?.durableObjectReset) return answer(503, words.crashed, -1);
  console.error("an object did not answer", error);
  return answer(500, words.internal, -1);
}

/** One object tells another: `[status, text]`, status 0 when there was no answer. */
export async function send(env, binding, name, path, body) {
  try {
    const response = await stub(env, binding, name).fetch(INTERNAL + path, { method: "POST", body });
    return [response.status, response.body === null ? "" : await response.text()];
  } catch (error) {
    return [0, String(error)];
  }
}

/** A JSON file of the page's; `missing` is the problem when there is none. */
export async function asset(env, path, missing) {
  try {
    const response = await env.ASSETS.fetch("https://assets" + path);
    // A missing file is answered with the page itself.
    const found = response.ok && response.headers.get("content-type")?.startsWith("application/json");
    if (found) return answer(200, await response.text(), -1);
  } catch {
    // There are no files at all.
  }
  return answer(404, missing, -1);
}

/** An answer between objects that says all with its status. */
export function status(code) {
  return new Response(null, { status: code });
}

/** 26 letters of 32 each: 130 random bits. */
export function randomLab() {
  const letters = "abcdefghijklmnopqrstuvwxyz234567";
  return Array.from(crypto.getRandomValues(new Uint8Array(26)), (byte) => letters[byte & 31]).join("");
}

export function setting(env, name, otherwise) {
  const value = Number(env[name]);
  return value > 0 ? value : otherwise;
}

/**
 * Writes everything that one turn made durable. No `await` in here and none before the
 * caller's next I/O: the runtime commits all of it, alarm included, or nothing.
 * `writes` is JSON: `[[statement, value, …], …]`; `alarm` is a time in ms, `null` for no
 * alarm, `undefined` to leave it. Answers how many rows that were.
 */
export function commit(ctx, writes, alarm) {
  const { storage } = ctx;
  let rows = 0;
  if (writes !== "[]") {
    for (const [statement, ...values] of JSON.parse(writes)) {
      rows += storage.sql.exec(statement, ...values).rowsWritten;
    }
  }
  if (alarm !== undefined) {
    const set = alarm === null ? storage.deleteAlarm() : storage.setAlarm(alarm);
    // A storage that fails breaks the output gate; there is nobody to tell here.
    set.catch((error) => console.error("alarm", error));
    rows += 1;
  }
  return rows;
}

/** The rows of a query as JSON, each an array in the order of the columns. */
export function query(ctx, statement, values) {
  return JSON.stringify(ctx.storage.sql.exec(statement, ...JSON.parse(values)).raw().toArray());
}

/** Resolves when everything written so far is durable. */
export function sync(ctx) {
  return ctx.storage.sync();
}

/** Deletes everything the object has stored, its alarm included. */
export async function deleteAll(ctx) {
  await ctx.storage.deleteAlarm();
  await ctx.storage.deleteAll();
}

/**
 * Ends the object before anything that was written in this turn is durable. In a microtask,
 * since a call with Rust frames on the stack would leave the whole Worker stuck.
 */
export function abortSoon(ctx, reason) {
  runtimeMicrotask(() => ctx.abort(reason));
}

/** Ends the object once its answer is on the way. */
export function abortAfterReply(ctx, reason) {
  setTimeout(() => ctx.abort(reason), 0);
}

export function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A socket that survives hibernation: `[response, server end]`. */
export function acceptSocket(ctx) {
  const [client, server] = Object.values(new WebSocketPair());
  ctx.acceptWebSocket(server);
  return [new Response(null, { status: 101, webSocket: client }), server];
}

export function sockets(ctx) {
  return ctx.getWebSockets();
}

export function answerPings(ctx) {
  ctx.setWebSocketAutoResponse(new WebSocketRequestResponsePair("ping", "pong"));
}

/** Sends and remembers, over hibernation, up to which event. `false`: the socket is gone. */
export function sendFrame(socket, frame, seq) {
  try {
    if (frame !== "") socket.send(frame);
    socket.serializeAttachment(seq);
    return true;
  } catch {
    return false;
  }
}

/** Up to which event the socket has been sent everything. */
export function sentSeq(socket) {
  return socket.deserializeAttachment() ?? 0;
}

/** Closes a socket. Codes that may not be sent become 1000. */
export function closeSocket(socket, code, reason) {
  const allowed = code === 1000 || (code >= 1001 && code <= 1014 && ![1004, 1005, 1006].includes(code));
  try {
    socket.close(allowed || code >= 3000 ? code : 1000, reason.slice(0, 120));
  } catch {
    // It is closed already.
  }
}
