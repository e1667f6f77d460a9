// Starts the page's wasm. esbuild bundles this with what wasm-bindgen wrote, so
// the page has one script and no inline one (which the page's policy forbids).
import init from "./app.js";

const shell = document.getElementById("shell");
try {
  // The app's `main` runs inside: it mounts the page before the shell goes.
  await init({ module_or_path: "/app.wasm" });
  shell?.remove();
} catch (error) {
  shell?.setAttribute("data-state", "failed");
  throw error;
}
