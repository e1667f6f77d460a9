// Only in development builds: reloads the page when `cargo xtask dev --watch`
// has built another one. It asks, because a socket would keep the server busy
// and would have to survive its restarts.
const read = async () => {
  try {
    const response = await fetch("/build-id.txt", { cache: "no-store" });
    const type = response.headers.get("content-type") ?? "";
    // An unknown path answers with index.html, which is not a build id.
    return response.ok && type.startsWith("text/plain") ? await response.text() : null;
  } catch {
    return null; // The server is restarting.
  }
};

let loaded = await read();
setInterval(async () => {
  if (document.hidden) return;
  const now = await read();
  if (now === null) return;
  if (loaded !== null && now !== loaded) location.reload();
  loaded ??= now;
}, 700);
