// Starts the Worker and its rival side by side on Miniflare, which costs less per hop than
// `wrangler dev` and the same for both, and prints their addresses as one line of JSON.
// Ends with its standard input.
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { build } from "esbuild";
import { Miniflare } from "miniflare";

const [workerFolder, scratchFolder] = process.argv.slice(2).map((folder) => path.resolve(folder));
const compatibilityDate = "2026-04-20";
const sqlite = (...names) =>
  Object.fromEntries(names.map(([binding, className]) => [binding, { className, useSQLite: true }]));

await mkdir(scratchFolder, { recursive: true });
const rivalFile = path.join(scratchFolder, "rival.js");
await build({
  entryPoints: [path.join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "rival.ts")],
  outfile: rivalFile,
  bundle: true,
  format: "esm",
  external: ["cloudflare:workers"],
});

const ours = new Miniflare({
  modules: true,
  rootPath: workerFolder,
  modulesRoot: workerFolder,
  scriptPath: "index.js",
  modulesRules: [{ type: "CompiledWasm", include: ["**/*.wasm"], fallthrough: true }],
  compatibilityDate,
  host: "127.0.0.1",
  port: 0,
  cf: false,
  durableObjects: sqlite(
    ["LEASES", "LeaseAuthority"],
    ["RESOURCES", "FencedResource"],
    ["SHARDS", "ShardCoordinator"],
    ["LABS", "Lab"],
  ),
  durableObjectsPersist: path.join(scratchFolder, "ours"),
});
const rival = new Miniflare({
  modules: true,
  rootPath: scratchFolder,
  modulesRoot: scratchFolder,
  scriptPath: "rival.js",
  compatibilityDate,
  host: "127.0.0.1",
  port: 0,
  cf: false,
  durableObjects: sqlite(
    ["FLOORS", "Floor"],
    ["LEASES", "LeaseAuthority"],
    ["RESOURCES", "FencedResource"],
  ),
  durableObjectsPersist: path.join(scratchFolder, "rival"),
});
const addresses = { ours: (await ours.ready).origin, rival: (await rival.ready).origin };
console.log(JSON.stringify(addresses));

process.stdin.resume();
process.stdin.on("end", async () => {
  await Promise.all([ours.dispose(), rival.dispose()]);
  process.exit(0);
});
