// The log over a socket: nothing lost, nothing doubled, whatever happens in between.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Lab, assertNumbered, assertProblem, serverForTests, until } from "./support.mjs";

const holder = serverForTests();
const newLab = (body) => Lab.create(holder.server, body);
const spend = (lab, n) =>
  lab.ask("shards/7/apply", { op: { type: "add", key: "a", amount: n } });

test("first what was, then what comes", async () => {
  const lab = await newLab();
  await spend(lab, 1);
  const socket = await lab.socket();
  await spend(lab, 2);
  await spend(lab, 3);
  await socket.reaches(5);
  assertNumbered(socket.events);
  assert.deepEqual(socket.events, await lab.log());
  await socket.close();
});

test("a socket resumes after any number, also one that is still to come", async () => {
  const lab = await newLab();
  for (let n = 0; n < 5; n += 1) await spend(lab, n);
  for (const after of [0, 3, 7, 9]) {
    const socket = await lab.socket(after);
    await spend(lab, 1);
    const { last_seq } = await lab.inspect();
    if (last_seq > after) await socket.reaches(last_seq);
    else await until(async () => (await spend(lab, 1)) && socket.lastSeq > 0);
    assertNumbered(socket.events, after + 1);
    await socket.close();
  }
});

test("a reader that reconnects again and again under load misses and doubles nothing", async () => {
  const lab = await newLab();
  let stop = false;
  const writers = [1, 2, 3].map(async () => {
    while (!stop) await spend(lab, 1);
  });
  const seen = [];
  while (seen.length < 250) {
    const socket = await lab.socket(seen.length);
    await until(() => socket.events.length > 15);
    seen.push(...socket.events);
    // Without a goodbye: what is on its way is lost, and asked for again.
    socket.ws.terminate();
  }
  stop = true;
  await Promise.all(writers);
  assertNumbered(seen);
  assert.deepEqual(seen, (await lab.log()).slice(0, seen.length));
});

test("objects that crash under load lose no event that was durable", async () => {
  const lab = await newLab();
  const socket = await lab.socket();
  for (const at of ["after_persist", "before_persist", "after_send", "after_persist"]) {
    await spend(lab, 1);
    const armed = await lab.call("POST", "/objects/shard/7/crash", { at });
    assert.equal(armed.status, 200);
    await lab.call("POST", "/shards/7/apply", { op: { type: "add", key: "a", amount: 1 } });
    await until(async () => (await lab.call("GET", "/shards/7")).status === 200);
  }
  await spend(lab, 1);
  const { last_seq } = await lab.inspect();
  await socket.reaches(last_seq);
  assertNumbered(socket.events);
  const own = socket.events.filter((event) => event.node === "shard/7");
  assert.deepEqual(own.map((event) => event.local_seq), own.map((_, index) => index + 1));
  assert.equal(own.filter((event) => event.kind === "crashed").length, 4);
  await socket.close();
});

test("the runtime is killed: a socket that resumes has everything", async () => {
  const lab = await newLab();
  const first = await lab.socket();
  await spend(lab, 1);
  await first.reaches(3);
  await holder.server.kill();
  await holder.server.restart();
  const second = await lab.socket(first.lastSeq);
  await spend(lab, 2);
  await second.reaches(4);
  assertNumbered([...first.events, ...second.events]);
  await second.close();
});

test("ping is answered; anything else ends the socket with a reason", async () => {
  const lab = await newLab();
  const socket = await lab.socket();
  socket.ws.send("ping");
  await until(() => socket.pongs === 1);
  for (const rubbish of ["hello", "", '{"events":[]}', Buffer.from([0, 255, 7]), "x".repeat(100_000)]) {
    const victim = await lab.socket();
    victim.ws.send(rubbish);
    const { code, reason } = await victim.closed;
    assert.equal(code, 1008);
    assert.match(reason, /ping/);
  }
  // The others are not harmed.
  await spend(lab, 1);
  await socket.reaches(3);
  await socket.close();
});

test("a socket that closes is answered, whatever the code", async () => {
  const lab = await newLab();
  for (const code of [1000, 1001, 3000, 4999, undefined]) {
    const socket = await lab.socket();
    socket.ws.close(code);
    const closed = await socket.closed;
    assert.notEqual(closed.code, 1006, `closing with ${code}`);
  }
});

test("a socket's path is for sockets of labs that exist", async () => {
  const lab = await newLab();
  assertProblem(await lab.call("GET", "/socket"), 426, /WebSocket/);
  assertProblem(await lab.call("GET", "/socket?after=-1"), 400, /`after`/);
  const unknown = new Lab(holder.server, "a".repeat(26));
  await assert.rejects(unknown.socket(), /404/);
  const refused = new Lab(holder.server, lab.id);
  await assert.rejects(refused.socket("x"), /400/);
});

test("a lab has 64 sockets at most", async () => {
  const lab = await newLab();
  const sockets = await Promise.all(Array.from({ length: 64 }, () => lab.socket()));
  await assert.rejects(lab.socket(), /429/);
  await sockets.pop().close();
  await until(() => lab.socket().then((socket) => sockets.push(socket), () => false), "a free place");
  for (const socket of sockets) socket.ws.terminate();
});

test("a socket survives the hibernation of its lab", { timeout: 60_000 }, async () => {
  const lab = await newLab();
  const socket = await lab.socket();
  await spend(lab, 1);
  await socket.reaches(3);
  // The local runtime hibernates an object after ten seconds without an event. There is
  // nothing to observe from outside, so this is the one wait for time alone.
  await new Promise((resolve) => setTimeout(resolve, 12_000));
  await spend(lab, 2);
  await socket.reaches(4);
  assertNumbered(socket.events);
  await socket.close();
});
