// The built Worker on the real runtime, for worker tests, browser tests and the
// bench: Miniflare directly, because `wrangler dev` adds about 3 ms to every
// hop between objects.
//
// Invariant: one server is one process group with its own free port and its own
// state folder. `stop()` ends it as a deployment would; `kill()` is SIGKILL to
// the runtime, as a machine losing power; `restart()` comes back on the same
// state and the same address. When the process that started it dies, it dies.
//
// Bindings, migrations, assets and routes are read from wrangler.toml: nothing
// about the Worker is written down twice.
//
// As a program: node server.mjs [--port N] [--persist FOLDER]
// prints `listening on http://127.0.0.1:PORT` and runs until it is ended.

import { fork } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = fileURLToPath(import.meta.url);
const root = resolve(dirname(here), "../..");

/** Where `cargo xtask` puts its builds; see xtask/src/project.rs. */
const PLACES = {
  release: { build: join(root, "worker/build"), dist: join(root, "dist") },
  dev: { build: join(root, ".fencepost/dev/worker"), dist: join(root, ".fencepost/dev/dist") },
};

/**
 * What wrangler makes of a config, by config and assets. Loading wrangler takes
 * two seconds, Miniflare half a second: only the first start pays for both.
 */
const OPTIONS = new Map();

const READY_WITHIN_MS = 30_000;
const STOP_WITHIN_MS = 5_000;

/**
 * Starts the Worker and waits until it answers.
 *
 * @param {object} [options]
 * @param {"release" | "dev"} [options.profile] which build; default FENCEPOST_PROFILE, else release
 * @param {string} [options.build] a folder with index.js and its wasm, instead of the profile's
 * @param {string | null} [options.dist] static assets, instead of the profile's; null for none
 * @param {string} [options.config] a wrangler.toml, instead of the project's
 * @param {string} [options.persist] state folder, kept; default a new one that `stop()` removes
 * @param {number} [options.port] default a free one
 * @param {Record<string, string>} [options.vars] plain-text bindings of the Worker
 * @param {boolean} [options.log] also print what the Worker logs; default FENCEPOST_LOG
 * @returns {Promise<Server>}
 */
export async function start(options = {}) {
  const profile = options.profile ?? process.env.FENCEPOST_PROFILE ?? "release";
  if (!(profile in PLACES)) throw new Error(`profile is release or dev, not ${profile}`);
  const build = options.build ?? PLACES[profile].build;
  const dist = options.dist === undefined ? PLACES[profile].dist : options.dist;
  for (const needed of [join(build, "index.js"), ...(dist === null ? [] : [dist])]) {
    if (!existsSync(needed)) {
      throw new Error(
        `${needed} is missing: run \`cargo xtask build --release\`, ` +
          "or `cargo xtask build` and set FENCEPOST_PROFILE=dev",
      );
    }
  }
  const server = new Server({
    build,
    dist,
    config: options.config ?? join(root, "worker/wrangler.toml"),
    persist: options.persist ?? mkdtempSync(join(tmpdir(), "fencepost-")),
    ownsState: options.persist === undefined,
    port: options.port || (await freePort()),
    vars: options.vars ?? {},
    log: options.log ?? Boolean(process.env.FENCEPOST_LOG),
  });
  await server.restart();
  return server;
}

export class Server {
  #settings;
  #child = null;

  constructor(settings) {
    this.#settings = settings;
  }

  /** The address, without a slash at the end. It survives `restart()`. */
  get url() {
    return `http://127.0.0.1:${this.#settings.port}`;
  }

  /** Where the runtime keeps its SQLite files. */
  get persist() {
    return this.#settings.persist;
  }

  /** The id of the process group, while it runs. */
  get pid() {
    return this.#child?.pid ?? null;
  }

  /** All that the runtime has printed on this state folder, panics included. */
  log() {
    return readFileSync(logFile(this.#settings.persist), "utf8");
  }

  /** `fetch` below the server's address. */
  fetch(path, init) {
    return fetch(this.url + path, init);
  }

  /** Starts again on the same state and address; ends what is running first. */
  async restart() {
    if (this.#child) await this.#end("SIGTERM");
    const child = fork(here, ["--as-child"], {
      // A group of its own: the runtime is the child's child.
      detached: true,
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#child = child;
    const { config, dist } = this.#settings;
    const key = JSON.stringify([config, dist]);
    child.send({ ...this.#settings, workerOptions: OPTIONS.get(key) });
    const timer = setTimeout(() => signalGroup(child, "SIGKILL"), READY_WITHIN_MS);
    const answer = await Promise.race([
      once(child, "message").then(([message]) => message),
      once(child, "exit").then(() => ({ error: "the runtime did not start" })),
    ]);
    clearTimeout(timer);
    if (answer.error) {
      await this.#end("SIGKILL");
      throw new Error(answer.error);
    }
    OPTIONS.set(key, answer.workerOptions);
    // A test that forgets to stop the server must still be able to end.
    child.unref();
    child.channel?.unref();
  }

  /** Ends the runtime in an orderly way; a state folder of our own is removed. */
  async stop() {
    await this.#end("SIGTERM");
    if (this.#settings.ownsState) {
      rmSync(this.#settings.persist, { recursive: true, force: true });
    }
  }

  /** SIGKILL to the runtime, with no chance to write anything. State is kept. */
  async kill() {
    await this.#end("SIGKILL");
  }

  async #end(signal) {
    const child = this.#child;
    this.#child = null;
    if (!child) return;
    const exited = child.exitCode === null && child.signalCode === null ? once(child, "exit") : null;
    // A reference again, or the process may end while it waits for this.
    child.ref();
    signalGroup(child, signal);
    const timer = setTimeout(() => signalGroup(child, "SIGKILL"), STOP_WITHIN_MS);
    await exited;
    clearTimeout(timer);
    // The runtime must not outlive the process that ran it.
    signalGroup(child, "SIGKILL");
    await portIsFree(this.#settings.port);
  }
}

function signalGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if (error.code !== "ESRCH") throw error; // It is gone, as wanted.
  }
}

/** A port that nothing listens on now; the server takes it a moment later. */
async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}

/** The kernel may hold a killed process's port for a moment. */
async function portIsFree(port) {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const probe = createServer();
    const free = await new Promise((done) => {
      probe.once("error", () => done(false));
      probe.listen(port, "127.0.0.1", () => probe.close(() => done(true)));
    });
    if (free) return;
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** The child: runs Miniflare until it is told to end or its parent is gone. */
async function runAsChild() {
  const [settings] = await once(process, "message");
  // wrangler and Miniflare look for these; offline, they would wait in vain.
  process.env.CLOUDFLARE_CF_FETCH_ENABLED = "false";
  process.env.WRANGLER_SEND_METRICS = "false";
  process.env.WRANGLER_HIDE_BANNER = "true";
  try {
    const workerOptions = settings.workerOptions ?? (await readConfig(settings));
    const { Miniflare, Log, LogLevel } = await import("miniflare");
    mkdirSync(settings.persist, { recursive: true });
    const log = createWriteStream(logFile(settings.persist), { flags: "a" });
    const miniflare = new Miniflare({
      ...workerOptions,
      bindings: { ...workerOptions.bindings, ...settings.vars },
      name: "fencepost",
      modules: true,
      rootPath: settings.build,
      modulesRoot: settings.build,
      scriptPath: "index.js",
      host: "127.0.0.1",
      port: settings.port,
      cf: false,
      durableObjectsPersist: join(settings.persist, "do"),
      log: new Log(settings.log ? LogLevel.INFO : LogLevel.ERROR),
      handleRuntimeStdio(stdout, stderr) {
        for (const stream of [stdout, stderr]) {
          stream.pipe(log, { end: false });
          if (settings.log) stream.pipe(process.stderr, { end: false });
        }
      },
    });
    await miniflare.ready;
    const end = async () => {
      await miniflare.dispose().catch(() => {});
      process.exit(0);
    };
    process.on("SIGTERM", end);
    process.on("SIGINT", end);
    process.on("disconnect", end);
    process.send({ ready: true, workerOptions });
  } catch (error) {
    process.send({ error: `the runtime did not start: ${error.stack ?? error}` });
  }
}

/** Bindings, migrations and routes as Miniflare wants them. */
async function readConfig({ config, dist }) {
  const { unstable_getMiniflareWorkerOptions: read } = await import("wrangler");
  const overrides = dist === null ? {} : { assets: { directory: dist } };
  const { workerOptions } = read(config, undefined, { overrides });
  if (dist === null) delete workerOptions.assets;
  return workerOptions;
}

function logFile(persist) {
  return join(persist, "runtime.log");
}

async function runAsProgram() {
  const { values } = parseArgs({
    options: { port: { type: "string" }, persist: { type: "string" } },
  });
  const server = await start({ port: Number(values.port ?? 0), persist: values.persist });
  const end = async () => {
    await server.stop();
    process.exit(0);
  };
  process.on("SIGTERM", end);
  process.on("SIGINT", end);
  console.log(`listening on ${server.url}`);
  // Nothing else keeps this process: the child is unreferenced for the tests.
  setInterval(() => {
    if (server.pid === null) process.exit(1);
  }, 1000);
}

if (process.argv[1] === here) {
  if (process.argv[2] === "--as-child") await runAsChild();
  else await runAsProgram();
}
