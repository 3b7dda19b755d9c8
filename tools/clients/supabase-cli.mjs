// Every command of the Supabase CLI that works without Docker or with our emulation of three Docker API calls, on a
// project served by `ferrobase start`.
//   supabase-cli.mjs SUPABASE FERROBASE     the CLI's program (version 2 or 3) and ours
// With names of tests as further arguments, only these run.
// Local: the CLI finds the project by its config.toml. Remote: by a database URL that differs from the one in
// config.toml.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

const [supabase, ferrobase] = process.argv.slice(2, 4).map((path) => resolve(path));
const wanted = process.argv.slice(4);
const version = Number(execFileSync(supabase, ["--version"], { encoding: "utf8" }).split(".")[0]);
const psql = [process.env.FERROBASE_PSQL, "tools/postgres/client/bin/psql", "psql"].find((path) => path && (path === "psql" || existsSync(path)));

const ports = await Promise.all(Array.from({ length: 8 }, () => new Promise((done) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
})));
const [api, db, shadow, inbox, pooler, ...others] = ports;
const local = `postgresql://postgres:postgres@127.0.0.1:${db}/postgres`;
// The CLI treats a URL with loopback and the port in config.toml as the local stack.
const remote = local.replace("127.0.0.1", "0.0.0.0");

const project = mkdtempSync(join(tmpdir(), "ferrobase-cli-"));
execFileSync("chmod", ["755", project]);
const write = (path, text) => {
  mkdirSync(join(project, "supabase", path, ".."), { recursive: true });
  writeFileSync(join(project, "supabase", path), text);
};
write("config.toml", `project_id = "cli-${db}"
[api]
port = ${api}
[db]
port = ${db}
shadow_port = ${shadow}
[db.pooler]
port = ${pooler}
[${version < 3 ? "inbucket" : "local_smtp"}]
port = ${inbox}
[analytics]
enabled = false
[storage.buckets.avatars]
public = true
objects_path = "./avatars"
`);
write("avatars/one.txt", "a picture");
write("migrations/20260101000000_tables.sql", `create type public.mood as enum ('sad', 'glad');
create table public.people (id bigint generated always as identity primary key, name text not null, mood public.mood);
alter table public.people enable row level security;
create policy "all read" on public.people for select using (true);
`);
write("migrations/20260102000000_pets.sql", `create table public.pets (id bigint generated always as identity primary key, owner bigint not null references public.people (id));
`);
write("seed.sql", "insert into public.people (name, mood) values ('Ada', 'glad');\n");

const env = { ...process.env, DOCKER_HOST: `unix://${project}/.ferrobase/docker.sock`, SUPABASE_TELEMETRY_DISABLED: "1", DO_NOT_TRACK: "1", NO_COLOR: "1" };
// PostgreSQL's programs of the server's version.
const withClient = { ...env, PATH: [psql === "psql" ? undefined : dirname(resolve(psql)), process.env.PATH].filter(Boolean).join(":") };
function run(program, args, { fails = false, folder = project } = {}) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd: folder, env, encoding: "utf8", input: "", timeout: 120_000 });
  if (error) throw error;
  const all = `${stdout}${stderr}`;
  if ((status !== 0) !== fails) throw new Error(`${args.join(" ")} ended with ${status}:\n${all}`);
  return { stdout, all };
}
const rows = (statement, database = local) => execFileSync(psql, ["-XAt", "-v", "ON_ERROR_STOP=1", "-c", statement, database], { encoding: "utf8" }).trim();

/** The CLI's options for the local or the remote database. */
const target = (where) => (version < 3 ? (where === "local" ? ["--local"] : ["--db-url", remote]) : where === "local" ? [] : [`--remote=${remote}`]);
const cli = (where, ...args) => run(supabase, [...args, ...target(where)]);
// Version 3 asks before it changes a remote database.
const yes = version < 3 ? [] : ["--yes"];
const REPORTS = [
  "db-stats", "replication-slots", "locks", "blocking", "outliers", "calls", "index-stats", "long-running-queries", "bloat", "role-stats",
  "vacuum-stats", "table-stats", "traffic-profile", "cache-hit", "index-usage", "index-sizes", "table-sizes", "unused-indexes",
  "table-record-counts", "seq-scans", "role-configs", "role-connections",
  ...(version < 3 ? ["total-index-size", "table-index-sizes", "total-table-sizes"] : ["collation-drift", "toast-sizes", "xid-age"]),
];

/** The status of an answer; retried if a restart of the server has closed the kept connection. */
async function status(path, key) {
  const ask = () => fetch(`http://127.0.0.1:${api}/${path}`, { headers: { apikey: key, authorization: `Bearer ${key}` } });
  return (await ask().catch(ask)).status;
}
const answers = async () => {
  const statuses = [];
  for (const path of ["rest/v1/people?select=name", "auth/v1/health", "storage/v1/bucket"]) statuses.push(await status(path, keys.ANON_KEY));
  return statuses;
};

const tests = {
  "migration list": (where) => assert.match(cli(where, "migration", "list").stdout, /20260102000000.*20260102000000/),
  "migration new": () => {
    run(supabase, ["migration", "new", "third"]);
    const [made] = execFileSync("ls", [join(project, "supabase/migrations")], { encoding: "utf8" }).split("\n").filter((name) => name.endsWith("_third.sql"));
    rmSync(join(project, "supabase/migrations", made));
  },
  "db push": (where) => {
    write("migrations/20260103000000_plants.sql", "create table public.plants (id int primary key);\n");
    cli(where, "db", "push", "--yes");
    assert.equal(rows("select version from supabase_migrations.schema_migrations order by 1 desc limit 1"), "20260103000000");
    assert.equal(rows("select to_regclass('public.plants')"), "plants");
  },
  "migration down": (where) => {
    if (where === "remote") {
      write("migrations/20260103000000_plants.sql", "create table public.plants (id int primary key);\n");
      cli(where, "migration", "up", ...yes);
    }
    // For the local stack the CLI recreates the database in Docker: `ferrobase migration down` replaces that.
    if (where === "local") run(ferrobase, ["migration", "down", "--yes"]);
    else cli(where, "migration", "down", "--yes");
    assert.equal(rows("select max(version) from supabase_migrations.schema_migrations"), "20260102000000");
    rmSync(join(project, "supabase/migrations/20260103000000_plants.sql"));
  },
  "migration up": (where) => {
    const number = where === "local" ? "20260104000000" : "20260105000000";
    write(`migrations/${number}_more.sql`, `create table public.more_${number} (id int primary key);\n`);
    cli(where, "migration", "up", ...yes);
    assert.equal(rows(`select to_regclass('public.more_${number}')`), `more_${number}`);
  },
  "migration repair": (where) => {
    for (const [status, newest] of [["reverted", "20260104000000"], ["applied", "20260105000000"]]) {
      cli(where, "migration", "repair", "--status", status, "20260105000000", ...yes);
      assert.equal(rows("select max(version) from supabase_migrations.schema_migrations"), newest);
    }
  },
  "migration fetch": (where) => {
    rmSync(join(project, "supabase/migrations/20260102000000_pets.sql"));
    cli(where, "migration", "fetch", "--yes");
    assert.match(readFileSync(join(project, "supabase/migrations/20260102000000_pets.sql"), "utf8"), /create table public.pets/);
  },
  "db reset": async (where) => {
    rows("create table public.stray (id int); insert into public.people (name) values ('Bob')");
    if (where === "local") run(ferrobase, ["db", "reset"]);
    else cli(where, "db", "reset", "--yes");
    assert.equal(rows("select to_regclass('public.stray') is null, string_agg(name, ',') from public.people"), "t|Ada");
    assert.deepEqual(await answers(), [200, 200, 200]);
  },
  "db query": (where) => assert.match(cli(where, "db", "query", "select name from public.people where id = 1", ...yes).stdout, /Ada/),
  "db dump": (where) => {
    // The CLI's scripts for pg_dump run in Docker. Here they run without it, and what they print makes the same project in a fresh server.
    rows(`insert into auth.users (id, email, encrypted_password) values (gen_random_uuid(), '${where}@example.com', 'x')`);
    rows(`create schema if not exists shop; create table if not exists shop.goods as select 1 as id;
      create or replace function functions.price() returns int language sql as 'select id from shop.goods';
      do $$ begin create role clerk nologin; exception when duplicate_object then null; end $$;
      grant usage on schema shop to clerk; grant select on shop.goods to clerk`);
    const dumps = [["--role-only"], [], ["--data-only"]].map((kind) => {
      const { stdout } = cli(where, "db", "dump", "--dry-run", ...kind);
      return execFileSync("bash", ["-c", stdout.slice(stdout.indexOf("#!/"))], { env: withClient, encoding: "utf8", maxBuffer: 1e8 });
    });
    // What they hold for the server's names is commented out, as for the platform's.
    for (const dump of dumps) assert.doesNotMatch(dump, /^(?!--).*(ferrobase|_supavisor)/im);
    const fresh = mkdtempSync(join(tmpdir(), "ferrobase-cli-"));
    execFileSync("chmod", ["755", fresh]);
    mkdirSync(join(fresh, "supabase"));
    writeFileSync(join(fresh, "supabase/config.toml"), `project_id = "fresh-${db}"\n[api]\nport = ${others[0]}\n[db]\nport = ${others[1]}\n[local_smtp]\nport = ${others[2]}\n`);
    try {
      run(ferrobase, ["start"], { folder: fresh });
      const url = local.replace(`:${db}/`, `:${others[1]}/`);
      for (const dump of dumps) execFileSync(psql, ["-Xq", "-v", "ON_ERROR_STOP=1", "-f", "-", url], { env: { ...env, PGOPTIONS: "-c client_min_messages=error" }, input: dump, stdio: ["pipe", "ignore", "inherit"] });
      for (const question of [
        "select string_agg(p::text, ',' order by id) from public.people p",
        "select string_agg(policyname, ',') from pg_policies where schemaname = 'public'",
        "select string_agg(email, ',' order by email) from auth.users",
        "select functions.price(), string_agg(grantee || privilege_type, ',' order by 1) from information_schema.role_table_grants where table_schema = 'shop'",
        "select string_agg(nspname || nspacl::text, ',' order by nspname) from pg_namespace where nspname in ('shop', 'functions')",
        "select string_agg(conname || pg_get_constraintdef(oid), ',' order by conname) from pg_constraint where connamespace = 'public'::regnamespace",
      ]) {
        assert.equal(rows(question, url), rows(question));
        assert.notEqual(rows(question, url), "");
      }
    } finally {
      spawnSync(ferrobase, ["stop", "--no-backup"], { cwd: fresh, stdio: "ignore" });
      rmSync(fresh, { recursive: true, force: true });
    }
  },
  // `db diff` and `db pull` run this comparison in Docker; its lists are those of the CLI's `internal/db/diff/migra.go`. Compared with a database
  // that has nothing, they name the project and nothing of the server.
  "db diff": (where) => {
    if (where === "remote") return;
    rows("create database nothing template template0");
    const excluded = ["_analytics", "_realtime", "_supavisor", "cron", "graphql", "graphql_public", "net", "pgroonga", "pgtle", "repack", "tiger_data",
      "vault", "pgsodium", "pgsodium_masks", "timescaledb_experimental", "timescaledb_information", "_timescaledb_cache", "_timescaledb_catalog",
      "_timescaledb_config", "_timescaledb_debug", "_timescaledb_functions", "_timescaledb_internal", "pgbouncer", "supabase_functions", "supabase_migrations"];
    const lists = { INCLUDED: [], EXCLUDED: excluded, MANAGED: ["auth", "realtime", "storage"] };
    const settings = Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, JSON.stringify(list)]));
    const databases = { BASE: local.replace(/postgres$/, "nothing"), TARGET: local };
    const script = resolve("server/src/cli/project/diff/diff.mjs");
    const difference = execFileSync(process.execPath, [script], { env: { ...process.env, ...settings, ...databases, MIGRA_FROM: resolve("tools/diff/package.json") }, encoding: "utf8", maxBuffer: 1e8 });
    rows("drop database nothing");
    assert.match(difference, /create table "public"\."people"/);
    assert.doesNotMatch(difference, /^.*(ferrobase|_supavisor).*$/im);
    assert.doesNotMatch(difference, /create schema if not exists "functions"/);
  },
  "db lint": (where) => {
    rows("create or replace function public.faulty() returns int language plpgsql as 'begin return (select missing from public.people); end'");
    // The embedded server has plpgsql_check if it was installed (`just plpgsql-check`), otherwise its names only, of version 2.7.
    if (rows("select default_version from pg_available_extensions where name = 'plpgsql_check'") === "2.7") {
      const { all } = run(supabase, ["db", "lint", ...target(where)], { fails: true });
      assert.match(all, /functions are not checked by plpgsql_check here/);
    } else {
      assert.match(cli(where, "db", "lint").stdout, /"public\.faulty"[\s\S]*column \\"missing\\" does not exist/);
    }
    rows("drop function public.faulty()");
  },
  "db advisors": (where) => {
    const { stdout } = cli(where, "db", "advisors");
    assert.match(stdout, /rls_disabled_in_public_public_pets/);
    assert.doesNotMatch(stdout, /rls_disabled_in_public_(auth|storage|realtime|ferrobase|_supavisor)/);
  },
  inspect: (where) => {
    for (const report of REPORTS) cli(where, "inspect", "db", report);
  },
  "gen types": (where) => {
    assert.match(cli(where, "gen", "types", "--lang", "typescript").stdout, /mood: \["sad", "glad"\]|"mood": \["sad", "glad"\]/);
  },
  // Through the emulated Docker socket.
  status: () => {
    assert.match(run(supabase, ["status", "--output", "env"]).stdout, new RegExp(`API_URL="http://127.0.0.1:${api}"`));
    assert.match(run(supabase, ["start"]).all, /already running/);
    assert.match(run(supabase, ["stop"], { fails: true }).all, /Stopping containers/);
  },
  "gen bearer-jwt": async () => {
    const token = run(supabase, ["gen", "bearer-jwt", "--role", "service_role"]).stdout.trim().split("\n").at(-1);
    assert.equal(await status("rest/v1/people?select=name", token), 200);
  },
  "seed buckets": (where) => {
    if (where === "remote") return;
    cli(where, "seed", "buckets");
    assert.equal(rows("select string_agg(name, ',') from storage.objects where bucket_id = 'avatars'"), "one.txt");
  },
  // `ferrobase storage` does the same.
  storage: (where) => {
    if (where === "remote") return;
    writeFileSync(join(project, "two.txt"), "words");
    for (const storage of [(...args) => cli("local", "--experimental", "storage", ...args).stdout, (...args) => run(ferrobase, ["storage", ...args]).stdout]) {
      storage("cp", "two.txt", "ss:///avatars/in/two.txt");
      assert.deepEqual(storage("ls", "-r", "ss:///avatars").split("\n").filter((line) => line.includes(".txt")).map((line) => line.trim()).sort(), ["/avatars/in/two.txt", "/avatars/one.txt"]);
      storage("mv", "ss:///avatars/in/two.txt", "ss:///avatars/three.txt");
      storage("cp", "ss:///avatars/three.txt", "three.txt");
      assert.equal(readFileSync(join(project, "three.txt"), "utf8"), "words");
      rmSync(join(project, "three.txt"));
      storage("rm", "--yes", "ss:///avatars/three.txt");
      assert.doesNotMatch(storage("ls", "ss:///avatars/"), /three/);
    }
  },
};

let failed = 0;
let keys;
try {
  run(ferrobase, ["start", `--docker-socket=${project}/.ferrobase/docker.sock`]);
  keys = JSON.parse(run(ferrobase, ["status", "--output", "json"]).stdout);
  for (const name of Object.keys(tests).filter((name) => wanted.length > 0 && !wanted.includes(name))) delete tests[name];
  assert.ok(Object.keys(tests).length >= Math.max(wanted.length, 1), "a test of this name is missing");
  for (const [name, test] of Object.entries(tests)) {
    for (const where of ["local", "remote"]) {
      try {
        await test(where);
      } catch (error) {
        failed++;
        console.error(`CLI ${version}: ${name}, ${where}: ${error.message}`);
      }
    }
  }
} finally {
  spawnSync(ferrobase, ["stop", "--no-backup"], { cwd: project, stdio: "ignore" });
  rmSync(project, { recursive: true, force: true });
}
console.log(`CLI ${version}: ${2 * Object.keys(tests).length - failed} of ${2 * Object.keys(tests).length} pass`);
process.exit(failed > 0 ? 1 : 0);
