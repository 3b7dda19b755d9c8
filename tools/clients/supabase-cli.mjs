// Every command of the Supabase CLI that works without Docker, or with our stand-in for three of its answers, on a project that `ferrobase start` serves.
//   supabase-cli.mjs SUPABASE FERROBASE     the CLI's program (version 2 or 3) and ours
// Local: as the CLI finds the project by its config.toml. Remote: by a database URL that is not the one of config.toml.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const [supabase, ferrobase] = process.argv.slice(2).map((path) => resolve(path));
const version = Number(execFileSync(supabase, ["--version"], { encoding: "utf8" }).split(".")[0]);
const psql = [process.env.FERROBASE_PSQL, "tools/postgres/client/bin/psql", "psql"].find((path) => path && (path === "psql" || existsSync(path)));

const ports = await Promise.all(Array.from({ length: 5 }, () => new Promise((done) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
})));
const [api, db, shadow, inbox, pooler] = ports;
const local = `postgresql://postgres:postgres@127.0.0.1:${db}/postgres`;
// The CLI takes a URL with loopback and the port of config.toml for the local stack.
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
function run(program, args, { fails = false } = {}) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd: project, env, encoding: "utf8", input: "", timeout: 120_000 });
  if (error) throw error;
  const all = `${stdout}${stderr}`;
  if ((status !== 0) !== fails) throw new Error(`${args.join(" ")} ended with ${status}:\n${all}`);
  return { stdout, all };
}
const rows = (statement, database = local) => execFileSync(psql, ["-XAt", "-v", "ON_ERROR_STOP=1", "-c", statement, database], { encoding: "utf8" }).trim();

/** The CLI's words for the local or the remote database. */
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
    // The script for pg_dump, which the CLI runs in Docker, names the schemas that are the platform's.
    assert.match(cli(where, "db", "dump", "--dry-run").all, /pg_dump[\s\S]*_analytics\|_realtime\|_supavisor/);
  },
  "db lint": (where) => {
    const { all } = run(supabase, ["db", "lint", ...target(where)], { fails: true });
    assert.match(all, /functions are not checked by plpgsql_check here/);
  },
  "db advisors": (where) => {
    const { stdout } = cli(where, "db", "advisors");
    assert.match(stdout, /rls_disabled_in_public_public_pets/);
    assert.doesNotMatch(stdout, /rls_disabled_in_public_(auth|storage|realtime|_ferrobase)/);
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
  storage: (where) => {
    if (where === "remote") return;
    const storage = (...args) => cli("local", "--experimental", "storage", ...args).stdout;
    writeFileSync(join(project, "two.txt"), "words");
    storage("cp", "two.txt", "ss:///avatars/in/two.txt");
    assert.deepEqual(storage("ls", "-r", "ss:///avatars").split("\n").filter((line) => line.includes(".txt")).map((line) => line.trim()).sort(), ["/avatars/in/two.txt", "/avatars/one.txt"]);
    storage("mv", "ss:///avatars/in/two.txt", "ss:///avatars/three.txt");
    storage("cp", "ss:///avatars/three.txt", "three.txt");
    assert.equal(readFileSync(join(project, "three.txt"), "utf8"), "words");
    storage("rm", "--yes", "ss:///avatars/three.txt");
    assert.doesNotMatch(storage("ls", "ss:///avatars/"), /three/);
  },
};

let failed = 0;
let keys;
try {
  run(ferrobase, ["start", `--docker-socket=${project}/.ferrobase/docker.sock`]);
  keys = JSON.parse(run(ferrobase, ["status", "--output", "json"]).stdout);
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
