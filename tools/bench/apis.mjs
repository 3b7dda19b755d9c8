// What each API is asked for by the measurements of several APIs (`overload.mjs`, `builds.mjs`).
import { spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as authServer from "./auth-server.mjs";
import * as bench from "./cluster.mjs";
import { bearer, items, lay, poolSize, start, users, works } from "./rest-ground.mjs";

/**
 * The works of each API: a name, the requests, how their server is started (of the program under test, or another one), and whether the bare
 * server can be asked for the same as the limit. Each API needs a PostgreSQL of its own.
 */
export const apis = {
  rest: async (_, __, further) => {
    lay(1000);
    // A page of a list under row level security: 900 rows are looked at, 30 are the user's.
    const pages = Array.from({ length: 300 }, (_, turn) => {
      const user = users[turn % users.length];
      const from = (turn * 7 * 30) % (items - 900);
      return { method: "GET", path: `/item?select=id,label&id=gte.${from}&id=lt.${from + 900}`, headers: bearer(user), status: 200, expect: '[{"id":' };
    });
    const serve = (program) => start(undefined, further, program);
    return [
      { name: "REST: a page of 30 of 900 rows, row level security", serve, requests: pages, hasBare: true },
      { name: `REST: ${works[0].name}`, serve, requests: works[0].requests, hasBare: true },
    ];
  },
  auth: async (_, connections, further) => {
    authServer.prepareDatabase();
    lay(1000);
    const settings = { ...authServer.serverSettings(), GOTRUE_DB_MAX_POOL_SIZE: String(poolSize), ...further };
    const serve = (program) => bench.startServer("auth", settings, "/health", program);
    const server = await serve();
    const { works: asked } = await authServer.signUp(connections);
    await bench.stopServer(server);
    bench.sql("grant usage on schema auth to twin; grant select on auth.users to twin; alter role twin bypassrls");
    return [
      { name: "auth: the user of a token", serve, requests: asked.user.requests, hasBare: true },
      // Two threads hash passwords: with as many connections as the others have they are overloaded.
      { name: "auth: a sign-in with a password", serve, requests: asked.password.requests, busy: 8 },
    ];
  },
  storage: async (folder, _, further) => {
    const secret = "bench-secret-of-forty-characters-0123456";
    const token = (claims) => {
      const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
      const text = `${part({ alg: "HS256", typ: "JWT" })}.${part({ ...claims, exp: 4_000_000_000 })}`;
      return { Authorization: `Bearer ${text}.${createHmac("sha256", secret).update(text).digest("base64url")}` };
    };
    const migrations = join(folder, "migrations");
    mkdirSync(migrations);
    writeFileSync(join(migrations, "20260101000000_none.sql"), "select 1;");
    const env = { ...process.env, DATABASE_URL: bench.uri("postgres"), JWT_SECRET: secret };
    const migrated = spawnSync(bench.binary, ["migrate", "--dir", migrations], { env, cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
    if (migrated.status !== 0) throw new Error("the database was not prepared");
    lay(1000);
    bench.sql("grant authenticated, service_role to twin; grant usage on schema storage to twin");
    bench.sql("create policy reads on storage.objects for select to authenticated using (owner_id = auth.uid()::text)");
    const settings = { DATABASE_URL: bench.uri("postgres"), SERVER_HOST: "127.0.0.1", SERVER_PORT: String(bench.serverPort), AUTH_JWT_SECRET: secret,
      DATABASE_MAX_CONNECTIONS: String(poolSize), FERROBASE_STORAGE_DIR: join(folder, "files"), ...further };
    const serve = (program) => bench.startServer("storage", settings, "/status", program);
    const server = await serve();
    const service = token({ role: "service_role" });
    const sub = (number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
    await bench.call("/bucket", { method: "POST", headers: { ...service, "Content-Type": "application/json" }, body: '{"name":"bench"}' });
    const people = Array.from({ length: 30 }, (_, number) => ({ number, headers: token({ role: "authenticated", sub: sub(number) }) }));
    for (const { number } of people) {
      await bench.call(`/object/bench/of-${number}`, { method: "POST", headers: { ...service, "Content-Type": "text/plain" }, body: "x".repeat(10_000) });
    }
    bench.sql("update storage.objects set owner_id = '00000000-0000-4000-8000-' || lpad(substr(name, 4), 12, '0')");
    await bench.stopServer(server);
    const upload = { method: "POST", path: "/object/bench/up/{{count}}", headers: { ...service, "Content-Type": "text/plain", "x-upsert": "true" }, body: "x".repeat(10_000),
      status: 200, expect: '"Key"' };
    const downloads = people.map(({ number, headers }) => ({
      method: "GET", path: `/object/authenticated/bench/of-${number}`, headers, status: 200, expect: "xxxxxxxx" }));
    return [
      { name: "storage: a download of 10 kB, row level security", serve, requests: downloads, hasBare: true },
      { name: "storage: an upload of 10 kB", serve, requests: [upload], hasBare: true },
    ];
  },
};
