// Prints compressed sizes as JSON: node sizes.mjs WORKER_BUILD DIST
// Node has both compressors built in, so xtask needs no crate for them.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const [build, dist] = process.argv.slice(2);

const brotli = (bytes) =>
  brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }).length;
const files = (folder, wanted) =>
  readdirSync(folder).filter((name) => wanted.test(name)).map((name) => join(folder, name));

// What Cloudflare counts: every module of the Worker, gzip.
const worker = files(build, /\.(js|wasm)$/).map((file) => gzipSync(readFileSync(file), { level: 9 }).length);

// What a first visit loads: the page, its script, styles and wasm compressed, and
// the fonts, all of which the first page uses (they are compressed already).
const parts = { html: brotli(readFileSync(join(dist, "index.html"))), js: 0, css: 0, wasm: 0, fonts: 0 };
for (const file of files(dist, /^app-.*\.(js|css|wasm)$/)) {
  parts[file.split(".").pop()] += brotli(readFileSync(file));
}
for (const font of files(join(dist, "fonts"), /\.woff2$/)) {
  parts.fonts += readFileSync(font).length;
}

const sum = (numbers) => numbers.reduce((total, n) => total + n, 0);
console.log(JSON.stringify({
  worker_gzip_bytes: sum(worker),
  first_load_brotli_bytes: sum(Object.values(parts)),
  parts,
}));
