// The rival: what the paper's TypeScript does (L §6B and §6C), called by RPC, and an
// object that does nothing, which is the floor under both. Written for the bench;
// nothing here ships.
import { DurableObject } from "cloudflare:workers";

interface Env {
  FLOORS: DurableObjectNamespace<Floor>;
  LEASES: DurableObjectNamespace<LeaseAuthority>;
  RESOURCES: DurableObjectNamespace<FencedResource>;
}

export class Floor extends DurableObject<Env> {
  async nothing() {
    return { outcome: "nothing" };
  }
}

export class LeaseAuthority extends DurableObject<Env> {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec(`CREATE TABLE IF NOT EXISTS lease (id INTEGER PRIMARY KEY CHECK(id=0),
      holder TEXT, token INTEGER NOT NULL DEFAULT 0, expiresAt INTEGER NOT NULL DEFAULT 0);
      INSERT OR IGNORE INTO lease VALUES (0, NULL, 0, 0);`);
  }

  async acquire(candidate: string, ttlMs: number) {
    const now = Date.now();
    const sql = this.ctx.storage.sql;
    const row = sql.exec("SELECT holder, token, expiresAt FROM lease WHERE id=0").one() as any;
    if (row.holder !== null && row.expiresAt > now && row.holder !== candidate)
      return { granted: false, holder: row.holder, expiresAt: row.expiresAt };
    const token = row.token + 1;
    const expiresAt = now + ttlMs;
    sql.exec("UPDATE lease SET holder=?, token=?, expiresAt=? WHERE id=0", candidate, token, expiresAt);
    await this.ctx.storage.setAlarm(expiresAt);
    return { granted: true, token, expiresAt };
  }

  async alarm() {
    this.ctx.storage.sql.exec("UPDATE lease SET holder=NULL WHERE id=0 AND expiresAt<=?", Date.now());
  }
}

export class FencedResource extends DurableObject<Env> {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec(`CREATE TABLE IF NOT EXISTS fence (key TEXT PRIMARY KEY, token INTEGER NOT NULL);
      CREATE TABLE IF NOT EXISTS payload (key TEXT PRIMARY KEY, value INTEGER NOT NULL);`);
  }

  async write(key: string, token: number, value: number) {
    const sql = this.ctx.storage.sql;
    const mark = (sql.exec("SELECT token FROM fence WHERE key=?", key).toArray()[0]?.token ?? 0) as number;
    if (token <= mark) return { outcome: "stale", token, mark };
    sql.exec(
      "INSERT INTO fence(key, token) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET token=excluded.token",
      key, token,
    );
    sql.exec(
      "INSERT INTO payload(key, value) VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value=excluded.value",
      key, value,
    );
    return { outcome: "applied" };
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const [, name, operation] = new URL(request.url).pathname.split("/");
    const body = (await request.json()) as any;
    switch (operation) {
      case "nothing":
        return Response.json(await env.FLOORS.get(env.FLOORS.idFromName(name)).nothing());
      case "acquire": {
        const lease = env.LEASES.get(env.LEASES.idFromName(name));
        return Response.json(await lease.acquire(body.candidate, body.ttlMs));
      }
      case "write": {
        const resource = env.RESOURCES.get(env.RESOURCES.idFromName(name));
        return Response.json(await resource.write(body.key, body.token, body.value));
      }
      default:
        return new Response("unknown operation", { status: 404 });
    }
  },
};
