// A server whose requests go through PgBouncer in transaction mode, as packaging/pgbouncer configures it: all APIs with
// the pooled URL, many requests on few connections, changes and notifications over the direct one, and what `doctor`
// reports about each mistake.
//   node --experimental-websocket pgbouncer.mjs BINARY PGBOUNCER
// DATABASE_URL_OF_TEST is a PostgreSQL that a development server runs (tools/with-server.sh).
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [binary, program] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "ferrobase-pgbouncer-"));
chmodSync(folder, 0o755);
const direct = process.env.DATABASE_URL_OF_TEST.replace("//postgres:", "//supabase_admin:");
const SERVICE = "sb_secret_N7UND0UgjKTVK-Uodkm0Hg_xSvEMPvz";
const ANON = "sb_publishable_ACJWlzQHlZjBrEguHvfOxg_3BJgxAaH";
const guard = spawn(process.execPath, ["tools/free-ports.mjs", "3"], { stdio: ["ignore", "pipe", "inherit"] });
const [line] = await once(guard.stdout.setEncoding("utf8"), "data");
const [port, admin, pooler] = line.trim().split(" ").map(Number);
const base = `http://127.0.0.1:${port}`;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const step = (text) => console.log(`ok  ${text}`);

async function until(what, isSo) {
  for (const deadline = Date.now() + 60_000; ; ) {
    if (await isSo()) return;
    if (Date.now() > deadline) throw new Error(`it never came about: ${what}`);
    await pause(50);
  }
}

function sql(text) {
  const run = spawnSync("psql", ["-qAtX", "-v", "ON_ERROR_STOP=1", "-d", direct, "-c", text], { encoding: "utf8" });
  assert.equal(run.status, 0, run.stderr);
  return run.stdout.trim();
}

const settings = (more) => ({
  PATH: process.env.PATH,
  FERROBASE_DEV: "true",
  FERROBASE_SEED: "none",
  FERROBASE_DATA_DIR: join(folder, "data"),
  FERROBASE_LISTEN: `127.0.0.1:${port}`,
  FERROBASE_ADMIN_LISTEN: `127.0.0.1:${admin}`,
  FERROBASE_MAIL: "drop",
  GOTRUE_SMTP_MAX_FREQUENCY: "1ms",
  DATABASE_URL: direct,
  RUST_LOG: "info",
  ...more,
});
const { hostname, port: databasePort, pathname } = new URL(direct);
const pooledUrl = `postgresql://127.0.0.1:${pooler}${pathname}`;

async function call(method, path, { token = SERVICE, body, headers = {} } = {}) {
  const isRaw = body === undefined || Buffer.isBuffer(body);
  const answer = await fetch(`${base}${path}`, {
    method,
    headers: {
      apikey: token.startsWith("sb_") ? token : ANON,
      ...(token.startsWith("sb_") ? {} : { authorization: `Bearer ${token}` }),
      ...(isRaw ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    body: isRaw ? body : JSON.stringify(body),
  });
  const text = await answer.text();
  let json = text;
  try {
    json = JSON.parse(text);
  } catch {
    // not JSON
  }
  return { status: answer.status, json };
}
const expect = async (status, ...asked) => {
  const answer = await call(...asked);
  assert.equal(answer.status, status, `${asked[0]} ${asked[1]}: ${answer.status} ${JSON.stringify(answer.json)}`);
  return answer.json;
};

let bouncer, server;
const ended = (child) => new Promise((done) => child.once("exit", done));
const log = (name) => readFileSync(join(folder, name), "utf8");
try {
  sql(`drop role if exists pgbouncer; create role pgbouncer login password 'pooled'; create schema pgbouncer authorization pgbouncer;
    create function pgbouncer.get_auth(name text) returns table (username text, password text)
      language sql security definer set search_path = pg_catalog
      as $$ select usename::text, passwd::text from pg_shadow where usename = name and usename in ('authenticator', 'supabase_auth_admin', 'supabase_admin') $$;
    revoke execute on function pgbouncer.get_auth(text) from public;
    grant execute on function pgbouncer.get_auth(text) to pgbouncer`);
  const config = readFileSync("packaging/pgbouncer/pgbouncer.ini", "utf8")
    .replace("host=10.0.0.5 port=5432", `host=${hostname} port=${databasePort}`)
    .replace("0.0.0.0", "127.0.0.1")
    .replace("6432\npool_mode", `${pooler}\nunix_socket_dir =\npool_mode`)
    .replace("default_pool_size = 20", "default_pool_size = 3")
    .replace("/etc/pgbouncer/userlist.txt", join(folder, "userlist.txt"));
  assert.ok(config.includes(`listen_port = ${pooler}`) && config.includes("default_pool_size = 3"));
  writeFileSync(join(folder, "pgbouncer.ini"), config);
  writeFileSync(join(folder, "userlist.txt"), '"pgbouncer" "pooled"\n');
  const bouncerLog = openSync(join(folder, "pgbouncer.log"), "a");
  // It refuses to run as root.
  const isRoot = process.getuid() === 0;
  const asNobody = isRoot ? ["setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", program]] : [program, []];
  bouncer = spawn(asNobody[0], [...asNobody[1], join(folder, "pgbouncer.ini")], { stdio: ["ignore", bouncerLog, bouncerLog] });
  closeSync(bouncerLog);
  const doctor = (more) => {
    const run = spawnSync(binary, ["doctor", "--json"], { env: settings(more), encoding: "utf8" });
    return JSON.parse(run.stdout).findings.map(({ level, text }) => `${level}: ${text}`);
  };
  const serverLog = openSync(join(folder, "server.log"), "a");
  server = spawn(binary, ["serve"], { env: settings({ FERROBASE_POOLER_URL: pooledUrl }), stdio: ["ignore", serverLog, serverLog] });
  closeSync(serverLog);
  await until("the server answers", async () => {
    assert.equal(server.exitCode, null, log("server.log"));
    try {
      return (await fetch(`${base}/health`)).ok;
    } catch {
      return false;
    }
  });
  step("a server starts with a pooled and a direct URL");

  const by_user = sql("select usename || ' ' || count(*) from pg_stat_activity where application_name = 'ferrobase auth' group by usename");
  assert.ok(Number(by_user.split(" ")[1] || 0) <= 3, by_user);

  // auth: accounts, sessions, factors (their columns are enums), administrators
  const email = `${randomUUID()}@example.com`;
  const made = await expect(200, "POST", "/auth/v1/signup", { token: ANON, body: { email, password: "correct-Horse-7", data: { n: 1 } } });
  let token = made.access_token;
  await expect(200, "GET", "/auth/v1/user", { token });
  await expect(200, "PUT", "/auth/v1/user", { token, body: { data: { colour: "blue" } } });
  const factor = await expect(200, "POST", "/auth/v1/factors", { token, body: { factor_type: "totp", friendly_name: "phone" } });
  await expect(200, "POST", `/auth/v1/factors/${factor.id}/challenge`, { token });
  await expect(200, "GET", "/auth/v1/user", { token });
  for (let n = 0, refresh = made.refresh_token; n < 5; n++) {
    const next = await expect(200, "POST", "/auth/v1/token?grant_type=refresh_token", { token: ANON, body: { refresh_token: refresh } });
    [token, refresh] = [next.access_token, next.refresh_token];
  }
  await expect(200, "POST", "/auth/v1/token?grant_type=password", { token: ANON, body: { email, password: "correct-Horse-7" } });
  await expect(400, "POST", "/auth/v1/token?grant_type=password", { token: ANON, body: { email, password: "wrong-Horse-7" } });
  await expect(200, "POST", "/auth/v1/recover", { token: ANON, body: { email } });
  await expect(200, "POST", "/auth/v1/otp", { token: ANON, body: { email, create_user: false, code_challenge: "a".repeat(43), code_challenge_method: "s256" } });
  await expect(200, "GET", "/auth/v1/admin/users");
  await expect(200, "GET", `/auth/v1/admin/users/${made.user.id}`);
  await expect(200, "GET", `/auth/v1/admin/users/${made.user.id}/factors`);
  await expect(200, "POST", "/auth/v1/admin/generate_link", { body: { type: "magiclink", email } });
  step("the auth API");

  // rest: reads, writes, calls, policies, long answers, and roles that must not leak into the next request
  sql(`create table public.pooled (id bigint generated always as identity primary key, note text, owner uuid default auth.uid());
    alter table public.pooled enable row level security; grant all on public.pooled to authenticated, service_role;
    create index on public.pooled (owner);
    create policy own on public.pooled to authenticated using (owner = (select auth.uid()));
    notify pgrst, 'reload schema'`);
  await until("the table is served", async () => (await call("GET", "/rest/v1/pooled?limit=1")).status === 200);
  step("a reload is heard over the direct URL");
  for (let n = 0; n < 5; n++) await expect(201, "POST", "/rest/v1/pooled", { token, body: { note: `mine ${n}` } });
  await expect(201, "POST", "/rest/v1/pooled", { body: Array.from({ length: 20_000 }, (_, n) => ({ note: `theirs ${n} ${"x".repeat(100)}` })) });
  for (let n = 0; n < 5; n++) assert.equal((await expect(200, "GET", "/rest/v1/pooled?select=id,note", { token })).length, 5);
  assert.equal((await expect(200, "GET", "/rest/v1/pooled?select=id,note&order=id&limit=1000")).length, 1000);
  await expect(200, "PATCH", "/rest/v1/pooled?note=eq.mine%200", { token, body: { note: "changed" }, headers: { prefer: "return=representation" } });
  await expect(204, "DELETE", "/rest/v1/pooled?note=eq.changed", { token });
  assert.deepEqual(await expect(200, "GET", "/rest/v1/pooled", { token: ANON }), []);
  step("the REST API");

  // storage and functions
  await expect(200, "POST", "/storage/v1/bucket", { body: { id: "pooled", name: "pooled", public: true } });
  const file = Buffer.from("a file");
  await expect(200, "POST", "/storage/v1/object/pooled/a/b.txt", { body: file, headers: { "content-type": "text/plain" } });
  await expect(200, "PUT", "/storage/v1/object/pooled/a/b.txt", { body: file, headers: { "content-type": "text/plain" } });
  assert.equal((await expect(200, "GET", "/storage/v1/object/public/pooled/a/b.txt")), "a file");
  await expect(200, "POST", "/storage/v1/object/list/pooled", { body: { prefix: "a" } });
  await expect(200, "POST", "/storage/v1/object/sign/pooled/a/b.txt", { body: { expiresIn: 60 } });
  await expect(200, "POST", "/storage/v1/object/copy", { body: { bucketId: "pooled", sourceKey: "a/b.txt", destinationKey: "c.txt" } });
  await expect(200, "POST", "/storage/v1/object/move", { body: { bucketId: "pooled", sourceKey: "c.txt", destinationKey: "d.txt" } });
  await expect(200, "GET", "/storage/v1/bucket");
  await expect(200, "DELETE", "/storage/v1/object/pooled", { body: { prefixes: ["a/b.txt", "d.txt"] } });
  await expect(200, "DELETE", "/storage/v1/bucket/pooled");
  await expect(200, "GET", "/functions/v1/get-categories", { token: ANON });
  step("storage and functions");

  // realtime follows the WAL over the direct URL
  const socket = new WebSocket(`${base.replace("http", "ws")}/realtime/v1/websocket?apikey=${ANON}&vsn=1.0.0`);
  const heard = [];
  socket.addEventListener("message", ({ data }) => heard.push(JSON.parse(data)));
  await once(socket, "open");
  sql("alter publication supabase_realtime add table public.pooled");
  const changes = [{ event: "INSERT", schema: "public", table: "pooled" }];
  const joined = { config: { broadcast: {}, presence: { key: "" }, postgres_changes: changes }, access_token: token };
  socket.send(JSON.stringify({ topic: "realtime:pooled", event: "phx_join", payload: joined, ref: "1", join_ref: "1" }));
  await until("changes are followed", () => heard.some(({ event, payload }) => event === "system" && payload.status === "ok"));
  await expect(201, "POST", "/rest/v1/pooled", { token, body: { note: "heard" } });
  await until("a change is heard", () => heard.some(({ event, payload }) => event === "postgres_changes" && payload.data.record.note === "heard"));
  socket.close();
  step("changes of a table");

  // Many requests at once, of two users, on three connections: neither sees the other's rows, and nothing is refused.
  const other = await expect(200, "POST", "/auth/v1/signup", { token: ANON, body: { email: `${randomUUID()}@example.com`, password: "correct-Horse-7" } });
  await expect(201, "POST", "/rest/v1/pooled", { token: other.access_token, body: { note: "other" } });
  const counts = await Promise.all(
    Array.from({ length: 600 }, async (_, n) => {
      if (n % 3 === 2) return (await expect(200, "GET", "/auth/v1/user", { token })).email === email;
      const rows = await expect(200, "GET", "/rest/v1/pooled?select=id", { token: n % 3 ? other.access_token : token });
      return rows.length === (n % 3 ? 1 : 5);
    }),
  );
  assert.ok(counts.every(Boolean));
  const most = Number(sql("select count(*) from pg_stat_activity where usename = 'authenticator' and application_name not like '%listen%'"));
  step(`600 requests at once on 3 pooled connections of each role (${most} of authenticator in all)`);

  // All server connections are busy: requests wait for longer than a silent database would be given, and the pooler is alive.
  sql(`create function public.rests(seconds float8) returns float8 language sql volatile set statement_timeout = 0
      as 'select pg_sleep(seconds); select seconds';
    alter role authenticator set statement_timeout = 0; alter role service_role set statement_timeout = 0; notify pgrst, 'reload schema'`);
  const rests = (seconds, signal) =>
    fetch(`${base}/rest/v1/rpc/rests`, {
      method: "POST",
      headers: { apikey: SERVICE, "content-type": "application/json" },
      body: JSON.stringify({ seconds }),
      signal,
    });
  await until("the function is served", async () => (await rests(0)).status === 200);
  const slow = [7, 7, 7, 7, 0].map((seconds) => rests(seconds));
  await pause(4_000);
  await expect(200, "GET", "/health");
  assert.deepEqual(await Promise.all(slow.map(async (answer) => (await answer).status)), [200, 200, 200, 200, 200]);
  step("a busy pooler is not taken for a dead database");

  const running = () => sql("select count(*) from pg_stat_activity where state = 'active' and query like '%rests%' and pid <> pg_backend_pid()");
  for (const count of [1, 3]) {
    const hangingUp = new AbortController();
    const abandoned = Array.from({ length: count }, () => rests(600, hangingUp.signal).catch(() => undefined));
    await until("the statements run", () => running() === `${count}`);
    hangingUp.abort();
    await Promise.all(abandoned);
    const since = Date.now();
    await until("the statements are cancelled", () => running() === "0");
    // A time limit of the role would end them later.
    assert.ok(Date.now() - since < 5_000);
  }
  step("statements of clients that have gone are cancelled through the pooler");

  assert.ok(!/prepared statement/.test(log("server.log")), log("server.log"));
  const good = doctor({ FERROBASE_POOLER_URL: pooledUrl });
  assert.ok(good.includes("ok: requests go through a pooler, everything else goes to the server directly"), good.join("\n"));
  const through = direct.replace(`:${databasePort}/`, `:${pooler}/`);
  assert.ok(doctor({ DATABASE_URL: through }).some((text) => text.startsWith("problem: DATABASE_URL goes through a pooler")));
  const noPooler = pooledUrl.replace(`:${pooler}/`, `:${databasePort}/`);
  assert.ok(doctor({ FERROBASE_POOLER_URL: noPooler }).some((text) => text.startsWith("note: FERROBASE_POOLER_URL does not name a transaction pooler")));
  const alone = doctor({ FERROBASE_POOLER_URL: pooledUrl, DATABASE_URL: "", FERROBASE_DB_PORT: "1" });
  assert.ok(alone.some((text) => text.startsWith("problem: FERROBASE_POOLER_URL is for requests alone")), alone.join("\n"));
  step("doctor tells which URL is missing or in the wrong place");

  server.kill("SIGTERM");
  assert.equal(await ended(server), 0);
} catch (error) {
  for (const name of ["server.log", "pgbouncer.log"]) {
    try {
      console.error(`--- ${name}\n${log(name).split("\n").filter((text) => !/INFO request/.test(text)).slice(-25).join("\n")}`);
    } catch {
      // not that far yet
    }
  }
  throw error;
} finally {
  server?.kill("SIGKILL");
  bouncer?.kill("SIGKILL");
  guard.kill();
  rmSync(folder, { recursive: true, force: true });
}
