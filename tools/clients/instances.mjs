// Instances of one project behind a load balancer, as packaging/haproxy and packaging/nginx configure it: sessions, refresh, limits,
// migrations, jobs, realtime and uploads across them, then a rolling restart under load.
//   node --experimental-websocket instances.mjs BINARY haproxy|nginx PROGRAM [COUNT] [REQUESTS_A_SECOND]
// DATABASE_URL_OF_TEST is a PostgreSQL that a development server runs (tools/with-server.sh).
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { counted, load } from "./steady-load.mjs";

const [binary, kind, program, countText = "2", rateText = "200"] = process.argv.slice(2);
const [count, rate] = [Number(countText), Number(rateText)];
const guard = spawn(process.execPath, ["tools/free-ports.mjs", String(1 + 2 * count)], { stdio: ["ignore", "pipe", "inherit"] });
const [line] = await once(guard.stdout.setEncoding("utf8"), "data");
const ports = line.trim().split(" ").map(Number);
const folder = mkdtempSync(join(tmpdir(), "ferrobase-instances-"));
const database = process.env.DATABASE_URL_OF_TEST.replace("//postgres:", "//supabase_admin:");
const SERVICE = "sb_secret_N7UND0UgjKTVK-Uodkm0Hg_xSvEMPvz";
const ANON = "sb_publishable_ACJWlzQHlZjBrEguHvfOxg_3BJgxAaH";
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const step = (text) => console.log(`ok  ${text}`);

/** Waits for a condition, a minute at most. */
async function until(what, isSo) {
  for (const deadline = Date.now() + 60_000; ; ) {
    if (await isSo()) return;
    if (Date.now() > deadline) throw new Error(`it never came about: ${what}`);
    await pause(50);
  }
}

const [balancerPort, ...rest] = ports;
const instances = Array.from({ length: count }, (_, at) => ({
  name: `i${at}`,
  port: rest[at * 2],
  admin: rest[at * 2 + 1],
  base: `http://127.0.0.1:${rest[at * 2]}`,
}));
const front = `http://127.0.0.1:${balancerPort}`;

function start(instance) {
  const log = openSync(join(folder, `${instance.name}.log`), "a");
  instance.child = spawn(binary, ["serve"], {
    env: {
      PATH: process.env.PATH,
      FERROBASE_DEV: "true",
      FERROBASE_SEED: "none",
      FERROBASE_DATA_DIR: join(folder, instance.name),
      FERROBASE_STORAGE_DIR: join(folder, "files"),
      FERROBASE_LISTEN: `127.0.0.1:${instance.port}`,
      FERROBASE_ADMIN_LISTEN: `127.0.0.1:${instance.admin}`,
      FERROBASE_MAIL: "drop",
      GOTRUE_SMTP_MAX_FREQUENCY: "1h",
      FERROBASE_DRAIN: "4s",
      FERROBASE_TRUSTED_PROXIES: "127.0.0.1",
      FERROBASE_DB_CONNECTIONS: "22",
      DATABASE_URL: database,
      RUST_LOG: "info",
    },
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  instance.ended = new Promise((done) => instance.child.once("exit", (code) => done(code)));
}
const answers = async (url) => {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
};
const ready = (instance) =>
  until(`${instance.name} is ready`, async () => {
    assert.equal(instance.child.exitCode, null, `${instance.name} ended: ${tail(instance)}`);
    return answers(`${instance.base}/health`);
  });
const tail = (instance) => readFileSync(join(folder, `${instance.name}.log`), "utf8").split("\n").slice(-20).join("\n");

function startBalancer() {
  const addresses = (text, shape) => {
    // The file names two instances; this replaces them by as many as requested.
    const lines = text.split("\n");
    const first = lines.findIndex((line) => shape.test(line));
    assert.ok(first >= 0);
    const out = [];
    let done = false;
    for (const line of lines) {
      if (!shape.test(line)) {
        done = false;
        out.push(line);
      } else if (!done) {
        done = true;
        for (const { port } of instances) {
          out.push(line.replace(/10\.0\.0\.1\d:54321/, `127.0.0.1:${port}`));
        }
      }
    }
    return out.join("\n");
  };
  const config = join(folder, "balancer.conf");
  let args;
  const env = { PATH: process.env.PATH };
  if (kind === "haproxy") {
    assert.equal(count, 2, "the file has two instances");
    const [one, two] = instances.map(({ port }) => `127.0.0.1:${port}`);
    Object.assign(env, { FERROBASE_BIND: `127.0.0.1:${balancerPort}`, FERROBASE_ONE: one, FERROBASE_TWO: two });
    args = ["-f", "packaging/haproxy/haproxy.cfg", "-db"];
  } else {
    const text = readFileSync("packaging/nginx/ferrobase.conf", "utf8").replace("listen 80;", `listen 127.0.0.1:${balancerPort};`);
    const temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder}/${name};`).join("\n");
    writeFileSync(
      config,
      `daemon off; pid ${folder}/nginx.pid; error_log ${folder}/balancer.log; worker_processes 1;
       events { worker_connections 4096; }
       http { access_log off; ${temp}\n${addresses(text, /^\s+server 10\.0/)} }`,
    );
    args = ["-c", config, "-p", folder];
  }
  const log = openSync(join(folder, "balancer.log"), "a");
  return spawn(program, args, { env, stdio: ["ignore", log, log] });
}

const call = async (base, method, path, { token = SERVICE, body, headers = {} } = {}) => {
  const answer = await fetch(`${base}${path}`, {
    method,
    headers: {
      apikey: token.startsWith("sb_") ? token : ANON,
      ...(token.startsWith("sb_") ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined || Buffer.isBuffer(body) ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    body: body === undefined || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  });
  const text = await answer.text();
  let json;
  try {
    json = JSON.parse(text);
  } catch {
    json = text;
  }
  return { status: answer.status, headers: answer.headers, json };
};

function sql(text, url = database) {
  const run = spawnSync("psql", ["-qAtX", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", text], { encoding: "utf8" });
  assert.equal(run.status, 0, run.stderr);
  return run.stdout.trim();
}

/** A socket on an instance that has joined the channel. */
async function join_room(base) {
  const socket = new WebSocket(`${base.replace("http", "ws")}/realtime/v1/websocket?apikey=${ANON}&vsn=1.0.0`);
  const heard = [];
  socket.addEventListener("message", ({ data }) => heard.push(JSON.parse(data)));
  await new Promise((done, fail) => {
    socket.addEventListener("open", done);
    socket.addEventListener("error", () => fail(new Error(`no socket at ${base}`)));
  });
  const push = (event, payload) =>
    socket.send(JSON.stringify({ topic: "realtime:room", event, payload, ref: randomUUID(), join_ref: "1" }));
  push("phx_join", { config: { broadcast: { self: false }, presence: { key: "" }, postgres_changes: [] } });
  await until("the room is joined", () => heard.some(({ event, payload }) => event === "phx_reply" && payload.status === "ok"));
  const say = (text) => push("broadcast", { type: "broadcast", event: "said", payload: { text } });
  const has = (text) => heard.some(({ event, payload }) => event === "broadcast" && payload.payload?.text === text);
  return { socket, say, has };
}

async function across() {
  const [one, two] = instances;
  const email = `${randomUUID()}@example.com`;
  const password = "correct-Horse-7";
  const made = await call(one.base, "POST", "/auth/v1/signup", { token: ANON, body: { email, password } });
  assert.equal(made.status, 200, JSON.stringify(made.json));
  const user = await call(two.base, "GET", "/auth/v1/user", { token: made.json.access_token });
  assert.deepEqual([user.status, user.json.email], [200, email]);
  step("a session of one instance is one of the other");

  const refresh = (base, token) =>
    call(base, "POST", "/auth/v1/token?grant_type=refresh_token", { token: ANON, body: { refresh_token: token } });
  let token = made.json.refresh_token;
  for (let n = 0; n < 10; n++) {
    const { status, json } = await refresh(instances[n % count].base, token);
    assert.equal(status, 200, JSON.stringify(json));
    assert.notEqual(json.refresh_token, token);
    token = json.refresh_token;
  }
  // At the same moment on both: the session continues on both.
  const twins = await Promise.all([refresh(one.base, token), refresh(two.base, token)]);
  assert.deepEqual(twins.map(({ status }) => status), [200, 200]);
  const out = await call(two.base, "POST", "/auth/v1/logout", { token: twins[0].json.access_token });
  assert.equal(out.status, 204);
  assert.equal((await refresh(one.base, twins[0].json.refresh_token)).status, 400);
  step("refreshes alternate between instances; signed out at one is signed out at all");

  const limited = `${randomUUID()}@example.com`;
  assert.equal((await call(one.base, "POST", "/auth/v1/signup", { token: ANON, body: { email: limited, password } })).status, 200);
  const recover = (base) => call(base, "POST", "/auth/v1/recover", { token: ANON, body: { email: limited } });
  const sent = () => sql(`select recovery_sent_at from auth.users where email = '${limited}'`);
  assert.equal((await recover(one.base)).status, 200);
  const first = sent();
  assert.notEqual(first, "");
  assert.ok([200, 429].includes((await recover(two.base)).status));
  assert.equal(sent(), first, "no second mail");
  step("a mail that one instance has sent counts at the other");

  const size = 3_000_000;
  const file = Buffer.alloc(size, "ferrobase ");
  assert.equal((await call(one.base, "POST", "/storage/v1/bucket", { body: { id: "across", name: "across" } })).status, 200);
  const meta = (value) => Buffer.from(value).toString("base64");
  const begun = await call(one.base, "POST", "/storage/v1/upload/resumable", {
    headers: {
      "tus-resumable": "1.0.0",
      "upload-length": String(size),
      "upload-metadata": `bucketName ${meta("across")},objectName ${meta("big.bin")},contentType ${meta("application/octet-stream")}`,
    },
  });
  assert.equal(begun.status, 201, JSON.stringify(begun.json));
  const path = new URL(begun.headers.get("location")).pathname;
  for (let offset = 0, n = 0; offset < size; offset += 1_000_000, n++) {
    const part = await call(instances[n % count].base, "PATCH", path, {
      body: file.subarray(offset, offset + 1_000_000),
      headers: { "tus-resumable": "1.0.0", "upload-offset": String(offset), "content-type": "application/offset+octet-stream" },
    });
    assert.equal(part.status, 204, JSON.stringify(part.json));
  }
  for (const { base } of instances) {
    const answer = await fetch(`${base}/storage/v1/object/authenticated/across/big.bin`, { headers: { apikey: SERVICE } });
    const bytes = Buffer.from(await answer.arrayBuffer());
    assert.equal(createHash("sha256").update(bytes).digest("hex"), createHash("sha256").update(file).digest("hex"));
  }
  step("an upload in parts goes on at another instance, and all instances have the file");

  const guests = [];
  for (const { base } of [...instances, { base: front }]) guests.push(await join_room(base));
  for (const [at, guest] of guests.entries()) {
    await until(`what guest ${at} says is heard by all`, () => {
      const text = `from ${at} ${Date.now()}`;
      guest.say(text);
      return until_heard(guests.filter((other) => other !== guest), text);
    });
  }
  guests.forEach(({ socket }) => socket.close());
  step("broadcasts cross instances, also by a socket through the balancer");

  // The server that runs the database is an instance as well, and the first to start. It runs the jobs of `postgres`;
  // the others log in as another role, so they would run jobs of their own, and fail.
  const owner = process.env.DATABASE_URL_OF_TEST;
  sql("create extension if not exists pg_cron; create table public.job_runs (at timestamptz default now()); grant all on public.job_runs to postgres");
  sql("select cron.schedule('count', '1 seconds', 'insert into public.job_runs default values')", owner);
  await until("jobs run", () => Number(sql("select count(*) from public.job_runs")) >= 5);
  sql("select cron.unschedule('count')", owner);
  const runs = sql("select count(*) filter (where status = 'failed') || ' of ' || count(*) from cron.job_run_details");
  assert.ok(runs.startsWith("0 of "), `${runs} failed`);
  assert.equal(sql("select max(n) from (select count(*) n from public.job_runs group by date_trunc('second', at)) s"), "1");
  const holders = await Promise.all(
    instances.map(async ({ admin }) => /ferrobase_jobs_has_schedule 1/.test(await (await fetch(`http://127.0.0.1:${admin}/metrics`)).text())),
  );
  assert.equal(holders.filter(Boolean).length, 0, "the first server has the schedule, and nobody else");
  step("jobs run once, on one instance");
}

async function until_heard(others, text) {
  for (let tries = 0; tries < 20; tries++) {
    if (others.every(({ has }) => has(text))) return true;
    await pause(50);
  }
  return false;
}

async function rolling() {
  sql("create table if not exists public.load (id bigint generated always as identity primary key, note text); alter table public.load enable row level security; grant all on public.load to service_role; notify pgrst, 'reload schema'");
  await until("the table is served", async () => {
    const answers = await Promise.all(instances.map(({ base }) => call(base, "GET", "/rest/v1/load?limit=1")));
    return answers.every(({ status }) => status === 200);
  });
  const up = await call(front, "POST", "/storage/v1/object/across/small.txt", { body: Buffer.from("small"), headers: { "content-type": "text/plain" } });
  assert.equal(up.status, 200, JSON.stringify(up.json));
  const email = `${randomUUID()}@example.com`;
  const made = await call(front, "POST", "/auth/v1/signup", { token: ANON, body: { email, password: "correct-Horse-7" } });
  const stop = load(front, rate, [
    { method: "GET", path: "/rest/v1/load?select=id,note&limit=5", headers: { apikey: SERVICE } },
    { method: "POST", path: "/rest/v1/load", headers: { apikey: SERVICE }, body: (n) => JSON.stringify({ note: `n${n}` }) },
    { method: "GET", path: "/auth/v1/user", headers: { apikey: ANON, authorization: `Bearer ${made.json.access_token}` } },
    { method: "GET", path: "/storage/v1/object/authenticated/across/small.txt", headers: { apikey: SERVICE } },
  ]);
  await pause(2_000);
  for (const instance of instances) {
    instance.child.kill("SIGTERM");
    assert.equal(await instance.ended, 0, tail(instance));
    await pause(500);
    start(instance);
    await ready(instance);
    // Until the balancer notices, the other instance gets all requests.
    await pause(3_000);
  }
  const { sent, answered, failed, written, seconds, p99 } = await stop();
  assert.equal(failed.length, 0, `${failed.length} of ${sent} requests failed:\n${counted(failed).join("\n")}`);
  assert.equal(answered, sent);
  assert.equal(Number(sql("select count(*) from public.load")), written, "each acknowledged row is there once");
  step(`${count} instances restarted one after the other under ${Math.round(sent / seconds)} requests a second: ${sent} sent, 0 failed, p99 ${p99.toFixed(0)} ms`);
}

let balancer;
try {
  mkdirSync(join(folder, "files"));
  // All at once: one of them runs the migrations while the others wait.
  instances.forEach(start);
  await Promise.all(instances.map(ready));
  step(`${count} instances start at once on one database`);
  balancer = startBalancer();
  await until("the balancer answers", () => answers(`${front}/health`));
  await across();
  await rolling();
} catch (error) {
  for (const instance of instances) console.error(`--- ${instance.name}\n${tail(instance)}`);
  if (balancer) console.error(`--- balancer\n${readFileSync(join(folder, "balancer.log"), "utf8").slice(-3000)}`);
  throw error;
} finally {
  balancer?.kill("SIGTERM");
  guard.kill();
  for (const { child } of instances) child?.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
}
