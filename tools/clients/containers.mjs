// The image and both compose files with a real Docker Engine and Docker Compose: build, first start, what a client needs, restarts and
// crashes, then two instances behind haproxy with a rolling restart under load.
//   node containers.mjs STAND_INS DOCKER COMPOSE…      for example: … ~/.cache/stand-ins docker docker compose
// The true images are used where they are present. Missing ones are pulled if CONTAINERS_BASES=registry; otherwise stand-ins that
// containers/bases.sh makes from Debian's packages get their names during the run. Project, image and port are its own, and all
// is removed afterwards; CONTAINERS_KEEP=1 keeps the image. CONTAINERS_RATE is the requests a second, 150 by default.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { counted, load } from "./steady-load.mjs";

const [standIns, docker, ...compose] = process.argv.slice(2);
const rate = Number(process.env.CONTAINERS_RATE ?? "150");
const PROJECT = `ferrobase-containers-${process.pid}`;
const IMAGE = "ferrobase-containers-test";
const BASES = {
  "debian:bookworm-slim": "debian",
  "node:22-bookworm-slim": "node",
  "rust:1-bookworm": "rust",
  "postgres:18-bookworm": "postgres",
  "haproxy:lts": "haproxy",
};
const ONE = ["-f", "compose.yaml"];
const TWO = [...ONE, "-f", "compose.several.yaml"];

const guard = spawn(process.execPath, ["tools/free-ports.mjs", "1"], { stdio: ["ignore", "pipe", "inherit"] });
const [line] = await once(guard.stdout.setEncoding("utf8"), "data");
const port = Number(line);
const front = `http://127.0.0.1:${port}`;

// Nothing of the caller's settings, which compose.yaml would take over.
const env = { FERROBASE_IMAGE: IMAGE, FERROBASE_PORT: String(port), DOCKER_BUILDKIT: "1" };
for (const name of ["PATH", "HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"]) {
  if (process.env[name] !== undefined) env[name] = process.env[name];
}

const began = performance.now();
const step = (text) => console.log(`ok  ${text}  (at ${((performance.now() - began) / 1000).toFixed(0)} s)`);
let passed = 0;
const ok = (text) => {
  passed++;
  step(text);
};

function run(command, args, { quiet = false, input } = {}) {
  const done = spawnSync(command, args, { env, encoding: "utf8", input, maxBuffer: 1 << 28 });
  if (!quiet && done.status !== 0) {
    throw new Error(`${command} ${args.join(" ")}: exit code ${done.status ?? done.error}\n${done.stdout}\n${done.stderr}`.slice(-6000));
  }
  return { code: done.status, out: done.stdout.trim(), all: `${done.stdout}${done.stderr}` };
}
const engine = (...args) => run(docker, args).out;
const projectArgs = (files, args) => [...compose.slice(1), "-p", PROJECT, "--env-file", "/dev/null", "--progress", "plain", "--ansi", "never", ...files, ...args];
const composed = (files, ...args) => run(compose[0], projectArgs(files, args));

/** Like `composed`, but the event loop goes on meanwhile. */
async function composing(files, ...args) {
  const child = spawn(compose[0], projectArgs(files, args), { env, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (piece) => (text += piece));
  const [code] = await once(child, "close");
  assert.equal(code, 0, `compose ${args.join(" ")}: ${text.slice(-4000)}`);
}
const sql = (text) => composed(ONE, "exec", "-T", "db", "psql", "-U", "postgres", "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", text).out;
const container = (service, files = ONE) => composed(files, "ps", "--all", "--quiet", service).out;
const state = (service, files = ONE) => JSON.parse(engine("inspect", "--format", "{{json .State}}", container(service, files)));

async function until(what, isSo, seconds = 120) {
  for (const deadline = Date.now() + seconds * 1000; ; ) {
    if (await isSo()) return;
    if (Date.now() > deadline) throw new Error(`it never came about: ${what}`);
    await pause(200);
  }
}

let keys = {};
async function call(method, path, { key = keys.ANON_KEY, token, body, headers = {}, base = front } = {}) {
  const plain = body === undefined || Buffer.isBuffer(body);
  const answer = await fetch(`${base}${path}`, {
    method,
    headers: {
      ...(key ? { apikey: key } : {}),
      ...(token || key ? { authorization: `Bearer ${token ?? key}` } : {}),
      ...(plain ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    body: plain ? body : JSON.stringify(body),
  });
  const bytes = Buffer.from(await answer.arrayBuffer());
  let json;
  try {
    json = JSON.parse(bytes.toString());
  } catch {
    json = bytes.toString();
  }
  return { status: answer.status, headers: answer.headers, bytes, json };
}
const good = (answer, status = 200) => {
  assert.equal(answer.status, status, JSON.stringify(answer.json).slice(0, 500));
  return answer;
};
const answers = async () => {
  try {
    return (await fetch(`${front}/health`)).ok;
  } catch {
    return false;
  }
};
const refresh = async (token) => good(await call("POST", "/auth/v1/token?grant_type=refresh_token", { body: { refresh_token: token } })).json;
const email = `${randomUUID()}@example.com`;
const password = "correct-Horse-7";
const signIn = async (headers) => good(await call("POST", "/auth/v1/token?grant_type=password", { headers, body: { email, password } })).json;
const FORGED = "203.0.113.7";
const LAST_ADDRESS = "select host(ip) from auth.sessions order by created_at desc limit 1";

// Base images that this run has named, and takes the names away from at the end.
const named = [];

function bases() {
  const labels = (name) => run(docker, ["image", "inspect", "--format", "{{json .Config.Labels}}", name], { quiet: true });
  const missing = Object.keys(BASES).filter((name) => {
    const { code, out } = labels(name);
    // An interrupted run may have left a stand-in under this name.
    return code !== 0 || Boolean(JSON.parse(out)?.["ferrobase.stand-in"]);
  });
  if (missing.length > 0 && process.env.CONTAINERS_BASES === "registry") {
    for (const name of missing) engine("pull", name);
    missing.length = 0;
  }
  if (missing.length > 0) {
    const made = spawnSync("tools/clients/containers/bases.sh", [standIns], { env: { ...process.env, DOCKER: docker }, stdio: "inherit" });
    assert.equal(made.status, 0, "the stand-ins could not be made");
    for (const name of missing) {
      engine("tag", `ferrobase-standin:${BASES[name]}`, name);
      named.push(name);
    }
  }
  const says = (image, ...args) => engine("run", "--rm", "--entrypoint", args[0], image, ...args.slice(1)).split("\n")[0];
  console.log(`    stand-ins: ${named.join(", ") || "none"}`);
  console.log(`    ${says("postgres:18-bookworm", "postgres", "--version")} · ${says("haproxy:lts", "haproxy", "-v")}`);
  console.log(`    node ${says("node:22-bookworm-slim", "node", "--version")} · ${says("rust:1-bookworm", "rustc", "--version")}`);
}

/** Volumes without a name, which Docker makes for folders that nothing is mounted on. */
const anonymous = () => engine("volume", "ls", "--quiet").split("\n").filter((name) => /^[0-9a-f]{64}$/.test(name));

async function oneInstance() {
  const volumes = anonymous();
  await composing(ONE, "build");
  const megabytes = Math.round(Number(engine("image", "inspect", "--format", "{{.Size}}", IMAGE)) / 1e6);
  ok(`the image is built: ${megabytes} MB`);

  const since = performance.now();
  await composing(ONE, "up", "-d", "--build", "--wait");
  ok(`the first start is healthy after ${((performance.now() - since) / 1000).toFixed(1)} s`);

  const shown = composed(ONE, "exec", "-T", "ferrobase", "serve.sh", "keys", "show").out;
  keys = Object.fromEntries(shown.split("\n").flatMap((each) => (/^[A-Z_]+=/.test(each) ? [each.split(/=(.*)/s).slice(0, 2)] : [])));
  assert.ok(keys.ANON_KEY && keys.SERVICE_ROLE_KEY, Object.keys(keys).join(", "));
  ok("serve.sh keys show prints the API keys");

  const page = good(await call("GET", "/", { key: "" }));
  assert.match(page.headers.get("content-type"), /^text\/html/);
  assert.match(page.bytes.toString(), /<div id="root"/);
  const script = page.bytes.toString().match(/src="(\/assets\/[^"]+\.js)"/)[1];
  good(await call("GET", script, { key: "" }));
  good(await call("GET", "/auth/v1/health"));
  good(await call("GET", "/rest/v1/", { key: keys.SERVICE_ROLE_KEY }));
  assert.equal((await call("GET", "/rest/v1/", { key: "" })).status, 401);
  ok("the page, its script, /auth/v1/health and /rest/v1/ answer, the latter with a key only");

  // Mail goes nowhere, so the address is confirmed by the service key, as an administrator would.
  const made = good(await call("POST", "/auth/v1/signup", { body: { email, password } })).json;
  good(await call("PUT", `/auth/v1/admin/users/${made.id ?? made.user.id}`, { key: keys.SERVICE_ROLE_KEY, body: { email_confirm: true } }));
  const session = await signIn({ "x-forwarded-for": FORGED });
  assert.notEqual(sql(LAST_ADDRESS), FORGED, "there is no proxy to believe");
  const token = session.access_token;
  sql(`create table public.notes (id bigint generated always as identity primary key, owner uuid default auth.uid(), note text);
    alter table public.notes enable row level security;
    create policy own on public.notes to authenticated using (owner = auth.uid());
    grant all on public.notes to authenticated, service_role; notify pgrst, 'reload schema'`);
  await until("the table is served", async () => (await call("GET", "/rest/v1/notes", { token })).status === 200);
  good(await call("POST", "/rest/v1/notes", { token, body: { note: "kept" } }), 201);
  const rows = async (who) => good(await call("GET", "/rest/v1/notes?select=note", { token: who })).json;
  assert.deepEqual(await rows(token), [{ note: "kept" }]);
  const bytes = randomBytes(300_000);
  good(await call("POST", "/storage/v1/bucket", { key: keys.SERVICE_ROLE_KEY, body: { id: "files", name: "files" } }));
  good(await call("POST", "/storage/v1/object/files/some.bin", { key: keys.SERVICE_ROLE_KEY, body: bytes, headers: { "content-type": "application/octet-stream" } }));
  const file = async () => good(await call("GET", "/storage/v1/object/authenticated/files/some.bin", { key: keys.SERVICE_ROLE_KEY })).bytes;
  assert.ok((await file()).equals(bytes));
  ok("a sign-up, a sign-in, a row under a policy, an upload and a download");

  const owners = engine("top", container("ferrobase"), "-eo", "pid,uid,args").split("\n").slice(1);
  assert.ok(owners.length > 0 && owners.every((each) => /^\s*\d+\s+10001\s/.test(each)), owners.join("\n"));
  ok("no process of the container is root's");

  const secrets = secretValues();
  assert.ok(secrets.length >= 4, `${secrets.length} secrets`);
  assertHidden(secrets, ONE);
  ok(`none of ${secrets.length} passwords and keys is in docker inspect, the image's history or the logs`);

  composed(ONE, "exec", "-T", "ferrobase", "serve.sh", "doctor");
  ok("serve.sh doctor finds nothing wrong");

  const stopping = performance.now();
  await composing(ONE, "down");
  const stopped = ((performance.now() - stopping) / 1000).toFixed(1);
  assert.deepEqual(anonymous().filter((name) => !volumes.includes(name)), [], "no volume without a name is left");
  await composing(ONE, "up", "-d", "--wait");
  assert.deepEqual(secretValues(), secrets, "the keys are the same");
  let renewed = await refresh(session.refresh_token);
  assert.deepEqual(await rows(renewed.access_token), [{ note: "kept" }]);
  assert.deepEqual(await rows(token), [{ note: "kept" }], "the token from before");
  assert.ok((await file()).equals(bytes));
  ok(`down (${stopped} s) and up again: rows, files, sessions and keys are kept`);

  const dump = composed(ONE, "exec", "-T", "db", "pg_dumpall", "-U", "postgres").out;
  await composing(ONE, "down");
  engine("volume", "rm", `${PROJECT}_database`);
  await composing(ONE, "up", "-d", "--wait", "db");
  const restored = run(compose[0], projectArgs(ONE, ["exec", "-T", "db", "psql", "-U", "postgres", "-q"]), { input: dump });
  assert.deepEqual(restored.all.match(/ERROR:.*/g), ['ERROR:  role "postgres" already exists']);
  await composing(ONE, "up", "-d", "--wait");
  renewed = await refresh(renewed.refresh_token);
  assert.deepEqual(await rows(renewed.access_token), [{ note: "kept" }]);
  assert.ok((await file()).equals(bytes));
  ok("a dump is restored into a new database: rows, files and sessions are there");

  for (const service of ["db", "ferrobase"]) {
    const { Pid, StartedAt } = state(service);
    const from = performance.now();
    // Docker counts its own `kill` as a wish of the user, and does not restart then.
    engine("run", "--rm", "--pid", "host", "--security-opt", "apparmor=unconfined", "--entrypoint", "sh", "debian:bookworm-slim", "-c", `kill -9 ${Pid}`);
    await until(`${service} runs again`, () => {
      const now = state(service);
      return now.Running && now.StartedAt !== StartedAt;
    });
    await until("requests are answered", async () => (await answers()) && (await call("GET", "/rest/v1/notes", { token: renewed.access_token })).status === 200);
    const took = ((performance.now() - from) / 1000).toFixed(1);
    await until("both are healthy", () => ["db", "ferrobase"].every((each) => state(each).Health.Status === "healthy"));
    renewed = await refresh(renewed.refresh_token);
    assert.deepEqual(await rows(renewed.access_token), [{ note: "kept" }]);
    ok(`kill -9 of ${service}: requests are answered again after ${took} s`);
  }
  return { bytes, secrets };
}

/** Values of keys.env that nobody else may learn. */
function secretValues() {
  const text = composed(ONE, "exec", "-T", "ferrobase", "cat", "/secrets/keys.env").out;
  return text
    .split("\n")
    .filter((each) => /^[A-Z]\w*=/.test(each))
    .map((each) => each.split(/=(.*)/s)[1].replace(/^['"]|['"]$/g, ""))
    .filter((value) => value.length >= 16);
}

function assertHidden(secrets, files) {
  const ids = composed(files, "ps", "--all", "--quiet").out.split("\n");
  const texts = {
    inspect: engine("inspect", ...ids),
    image: engine("image", "inspect", IMAGE) + engine("history", "--no-trunc", IMAGE),
    logs: run(compose[0], projectArgs(files, ["logs", "--no-color"])).all,
  };
  for (const [where, text] of Object.entries(texts)) {
    assert.ok(text.length > 100, `${where} is empty`);
    assert.equal(secrets.filter((secret) => text.includes(secret)).length, 0, `a secret is in ${where}`);
  }
}

async function twoInstances({ bytes, secrets }) {
  await composing(TWO, "up", "-d", "--build");
  await until("both instances are healthy", () => ["ferrobase", "second"].every((each) => state(each, TWO).Health?.Status === "healthy"));
  await until("the balancer answers", answers);
  for (const service of ["ferrobase", "second"]) {
    assert.equal(engine("inspect", "--format", "{{json .HostConfig.PortBindings}}", container(service, TWO)).replace("null", "{}"), "{}");
  }
  ok("two instances behind haproxy are healthy, and only haproxy has a port of the host");

  // From inside of the network, at each instance.
  const address = (service) =>
    engine("inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", container(service, TWO));
  const at = Object.fromEntries(["ferrobase", "second"].map((each) => [each, `http://${address(each)}:54321`]));
  const session = good(await call("POST", "/auth/v1/token?grant_type=password", { base: at.ferrobase, body: { email, password } })).json;
  for (const base of [at.second, front]) {
    const user = good(await call("GET", "/auth/v1/user", { base, token: session.access_token })).json;
    assert.equal(user.email, email);
  }
  await signIn({ "x-forwarded-for": FORGED });
  // Docker's gateway, by which this client comes.
  const gateway = engine("inspect", "--format", "{{range .NetworkSettings.Networks}}{{.Gateway}}{{end}}", container("balancer", TWO));
  const seen = sql(LAST_ADDRESS);
  assert.ok([gateway, "127.0.0.1"].includes(seen), `the session's address is ${seen}, the gateway's ${gateway}`);
  const renewed = good(await call("POST", "/auth/v1/token?grant_type=refresh_token", { base: at.second, body: { refresh_token: session.refresh_token } })).json;
  const key = keys.SERVICE_ROLE_KEY;
  const uploaded = randomBytes(200_000);
  good(await call("POST", "/storage/v1/object/files/through.bin", { key, body: uploaded, headers: { "content-type": "application/octet-stream" } }));
  for (const base of [at.ferrobase, at.second, front]) {
    assert.ok(good(await call("GET", "/storage/v1/object/authenticated/files/through.bin", { key, base })).bytes.equals(uploaded));
    assert.ok(good(await call("GET", "/storage/v1/object/authenticated/files/some.bin", { key, base })).bytes.equals(bytes));
  }
  ok("a session of one instance is the other's; a file uploaded through haproxy is read by both");
  ok("a client's address is the one that haproxy sees, not a forged one");

  sql("create table public.load (id bigint generated always as identity primary key, note text); alter table public.load enable row level security; grant all on public.load to service_role; notify pgrst, 'reload schema'");
  await until("the table is served", async () => {
    const found = await Promise.all(Object.values(at).map((base) => call("GET", "/rest/v1/load?limit=1", { base, key })));
    return found.every(({ status }) => status === 200);
  });
  const ids = () => ["ferrobase", "second"].map((each) => container(each, TWO));
  const before = ids();
  const service = { apikey: key, authorization: `Bearer ${key}` };
  const stop = load(front, rate, [
    { method: "GET", path: "/rest/v1/load?select=id,note&limit=5", headers: service },
    { method: "POST", path: "/rest/v1/load", headers: service, body: (n) => JSON.stringify({ note: `n${n}` }) },
    { method: "GET", path: "/auth/v1/user", headers: { apikey: keys.ANON_KEY, authorization: `Bearer ${renewed.access_token}` } },
    { method: "GET", path: "/storage/v1/object/authenticated/files/some.bin", headers: { ...service, range: "bytes=0-999" } },
  ]);
  await pause(3_000);
  const restarts = [];
  for (const each of ["ferrobase", "second"]) {
    const from = performance.now();
    // As the comment in compose.several.yaml says, and nothing waited for in between.
    await composing(TWO, "up", "-d", "--no-deps", "--wait", "--force-recreate", each);
    restarts.push(`${((performance.now() - from) / 1000).toFixed(0)} s`);
  }
  await pause(3_000);
  const { sent, answered, failed, written, seconds, p99 } = await stop();
  assert.equal(failed.length, 0, `${failed.length} of ${sent} requests failed:\n${counted(failed).join("\n")}`);
  assert.equal(answered, sent);
  assert.ok(ids().every((id) => !before.includes(id)), "both are other containers");
  assert.equal(Number(sql("select count(*) from public.load")), written, "each acknowledged row is there once");
  ok(
    `the rolling restart (${restarts.join(", ")}) under ${Math.round(sent / seconds)} requests a second: ` +
      `${sent} sent, 0 failed, ${written} rows, p99 ${p99.toFixed(0)} ms`,
  );
  assertHidden(secrets, TWO);
  ok("still no password or key in docker inspect and logs");
}

function tidy() {
  run(compose[0], projectArgs(TWO, ["down", "--volumes", "--remove-orphans", "--timeout", "15"]), { quiet: true });
  if (process.env.CONTAINERS_KEEP !== "1") run(docker, ["rmi", IMAGE], { quiet: true });
  // Each build leaves the former image behind without a name.
  run(docker, ["image", "prune", "--force", "--filter", `label=com.docker.compose.project=${PROJECT}`], { quiet: true });
  // Nobody should take a stand-in for the true image later.
  if (named.length > 0) run(docker, ["rmi", ...named], { quiet: true });
  guard.kill();
}
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => {
    tidy();
    process.exit(1);
  });
}

try {
  console.log(`    Engine ${engine("version", "--format", "{{.Server.Version}}")}, Compose ${run(compose[0], [...compose.slice(1), "version", "--short"]).out}`);
  bases();
  await twoInstances(await oneInstance());
  console.log(`${passed} passed, 0 failed`);
} catch (error) {
  for (const each of ["ps", "logs"]) {
    console.error(run(compose[0], projectArgs(TWO, [each, ...(each === "logs" ? ["--no-color", "--tail", "30"] : ["--all"])]), { quiet: true }).all);
  }
  console.error(`containers: ${error.message}`);
  process.exitCode = 1;
} finally {
  tidy();
}
