// Takes the guards of tools/mutants/guards.mjs out of a copy of the server, one at a time, and expects the test of each to fail.
//   node tools/mutants.mjs [--list] [--check] [--build] [--keep] [--jobs 2] [--write FILE] [NAME …]
//
// The copy is built once: in it every guard reads the environment (FERROBASE_MUTANT) at its first use and is out if its name
// stands there. First all tests run with every guard in place and have to pass, so that a failure says something. --check only says
// whether each guard still stands where it is looked for; --build ends after the build; --keep runs what was built before, while
// somebody mends a test.

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, linkSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { guards } from "./mutants/guards.mjs";

const root = resolve(import.meta.dirname, "..");
const copy = join(root, "target/mutants");
const words = process.argv.slice(2);
const at = words.indexOf("--write");
const report = at >= 0 ? words.splice(at, 2)[1] : undefined;
const jobsAt = words.indexOf("--jobs");
const jobs = jobsAt >= 0 ? Number(words.splice(jobsAt, 2)[1]) : 2;
const take = (word) => words.includes(word) && words.splice(words.indexOf(word), 1).length > 0;
const [onlyBuild, keep] = [take("--build"), take("--keep")];
if (words[0] === "--list") {
  for (const { name, guard, test } of guards) console.log(`${name.padEnd(16)} ${guard} (${test})`);
  process.exit(0);
}
const places = guards.flatMap(({ also, ...guard }) => (also ? [guard, { ...guard, ...also }] : [guard]));
if (take("--check")) {
  const sources = join(root, "server/src");
  const lost = places.filter(({ file, find }) => !existsSync(join(sources, file)) || readFileSync(join(sources, file), "utf8").split(find).length !== 2);
  if (lost.length > 0) fail(lost.map(({ name, file, find }) => `${name}: the guard does not stand in ${file} exactly once:\n${find}`).join("\n"));
  console.log(`mutants: ${guards.length} guards stand in their places`);
  process.exit(0);
}
const unknown = words.filter((word) => !guards.some(({ name }) => name === word));
if (unknown.length > 0) fail(`there is no guard named ${unknown.join(", ")}; --list names them`);
const wanted = guards.filter(({ name }) => words.length === 0 || words.includes(name));

function fail(message) {
  console.error(`mutants: ${message}`);
  process.exit(1);
}

/** Where cargo puts the server's program, ours or the copy's; and where the copy's is kept, by whose path the copy's tests start it. */
const common = join(root, "target/debug/ferrobase");
const server = join(copy, "ferrobase");

/** True while this guard is out. */
const switchOf = (name) => `std::convert::identity({ static OUT: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| `
  + `std::env::var_os("FERROBASE_MUTANT").is_some_and(|name| name == "${name}")); *OUT })`;

/** Copies what git knows, and removes the guards from the copy's sources. */
function makeCopy() {
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(copy, { recursive: true });
  execFileSync("sh", ["-c", `git ls-files -z | tar --null --files-from=- -cf - | tar -xf - -C '${copy}'`], { cwd: root });
  for (const folder of ["tools/postgres/node_modules", "frontend/dist"]) {
    if (!existsSync(join(root, folder))) continue;
    rmSync(join(copy, folder), { recursive: true, force: true });
    symlinkSync(join(root, folder), join(copy, folder));
  }
  for (const { name, file, find, off } of places) {
    const path = join(copy, "server/src", file);
    const text = readFileSync(path, "utf8");
    if (text.split(find).length !== 2) fail(`${name}: the guard does not stand in ${file} exactly once:\n${find}`);
    writeFileSync(path, text.replace(find, () => off.replaceAll("MUTANT", switchOf(name))));
  }
  const tests = join(copy, "server/tests");
  for (const file of readdirSync(tests, { recursive: true }).filter((name) => name.endsWith(".rs"))) {
    const path = join(tests, file);
    const text = readFileSync(path, "utf8");
    const own = text.replaceAll('env!("CARGO_BIN_EXE_ferrobase")', JSON.stringify(server));
    if (own !== text) writeFileSync(path, own);
  }
}

// What is built beside the project's own must not pass for it: another profile gives it other names. The program alone
// has one name, which is the project's own again after the build.
const env = { ...process.env, CARGO_TARGET_DIR: join(root, "target") };
delete env.FERROBASE_MUTANT;
const own = ["ferrobase", ...readdirSync(join(root, "server/crates")).map((name) => `ferrobase-${name}`)];
const profiles = own.flatMap((name) => ["--config", `profile.dev.package.${name}.debug=false`]);
const cargo = ["test", ...profiles, "--manifest-path", join(copy, "Cargo.toml"), "--locked", "-p", "ferrobase", "--test", "all"];

/** Builds the tests of the copy; the path of their program. */
function build() {
  const aside = join(copy, "own-ferrobase");
  rmSync(aside, { force: true });
  const hadOwn = existsSync(common);
  if (hadOwn) linkSync(common, aside);
  process.on("exit", () => {
    if (existsSync(aside)) renameSync(aside, common);
  });
  const options = { env, encoding: "utf8", maxBuffer: 1 << 30, stdio: ["ignore", "pipe", "inherit"] };
  const done = spawnSync("cargo", [...cargo, "--no-run", "--message-format=json-render-diagnostics"], options);
  if (done.status !== 0) fail("the copy does not build");
  rmSync(server, { force: true });
  renameSync(common, server);
  if (hadOwn) renameSync(aside, common);
  const built = done.stdout.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
  return built.findLast(({ target, executable }) => executable && target.kind.includes("test")).executable;
}

if (!keep) makeCopy();
const program = build();
if (onlyBuild) process.exit(0);

/** Runs these tests with one guard out, or none; whether they passed and what was printed. */
function run(tests, mutant) {
  const own = mutant ? { ...env, FERROBASE_MUTANT: mutant } : env;
  const child = spawn(program, [...tests, "--nocapture", "--test-threads=4"], { cwd: join(copy, "server"), env: own });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (piece) => (text += piece));
  return new Promise((done, refuse) => {
    // A test that waits for what a guard would have ended has noticed.
    const limit = setTimeout(() => {
      child.kill();
      text += "\npanicked at a limit of time\nit does not end";
    }, 600_000);
    child.on("close", (code, signal) => {
      clearTimeout(limit);
      const ran = [...text.matchAll(/test result: \w+\. (\d+) passed; (\d+) failed/g)].at(-1);
      if (!signal && (!ran || Number(ran[1]) + Number(ran[2]) === 0)) refuse(new Error(`${tests.join(" ")} ran no test:\n${text.slice(-2000)}`));
      done({ passed: code === 0, text });
    });
  });
}

const tests = [...new Set(wanted.map(({ test }) => test))];
/** What fails with every guard in place, also when it is asked again alone. */
async function failing() {
  let names = tests;
  for (let tries = 0; tries < 3 && names.length > 0; tries++) {
    const { passed, text } = await run(names);
    const list = text.slice(text.lastIndexOf("\nfailures:"));
    names = passed ? [] : [...list.matchAll(/^ {4}([a-z_0-9:]+)$/gm)].map(([, name]) => name);
    if (!passed && names.length === 0) fail(`the tests did not end:\n${text.slice(-2000)}`);
  }
  return names;
}
const broken = await failing();
console.log(`with every guard in place ${broken.length === 0 ? `${tests.length} tests or groups pass` : `fail: ${broken.join(", ")}`}`);

const isBusy = /request_timeout|PGRST003|timed out waiting|operation timed out/;
const rows = [];
const survivors = [];
const queue = wanted.map((guard, place) => ({ ...guard, place }));
async function work() {
  for (let next = queue.shift(); next; next = queue.shift()) {
    const { name, guard, file, test, says, place } = next;
    let seen, told;
    // A busy machine may fail a test by itself, which says nothing.
    for (let tries = 0; tries < 3; tries++) {
      const { passed, text } = await run([test], name);
      const panic = text.match(/panicked at [^\n]*\n([^\n]*(?:\n +(?:left|right):[^\n]*)*)/)?.[1] ?? "";
      told = (says ? text.match(says)?.[0] : panic)?.replace(/\s+/g, " ").replace(/eyJ[\w.-]+/g, "…").trim().slice(0, 160).replaceAll("|", "/") ?? "";
      seen = !passed && (!says || says.test(text)) && !isBusy.test(text);
      if (passed || !isBusy.test(text)) break;
    }
    if (!seen) survivors.push(name);
    rows[place] = `| ${guard} | \`${file}\` | \`${test}\` | ${seen ? "fails" : "**does not notice**"} | ${told} |`;
    console.log(`${seen ? "seen    " : "SURVIVED"} ${name}: ${told}`);
  }
}
await Promise.all(Array.from({ length: jobs }, work));
const ended = [
  survivors.length === 0 ? "" : `can go unnoticed: ${survivors.join(", ")}`,
  broken.length === 0 ? "" : `fail with every guard in place: ${broken.join(", ")}`,
].filter(Boolean).join("; ");
const head = ["| guard | taken out of | test | without the guard it | and says |", "|---|---|---|---|---|"];
if (report) {
  // Rows of guards that were not asked for stay.
  const heading = "## Tests of the tests";
  const [before, after = ""] = (existsSync(report) ? readFileSync(report, "utf8") : "# Attacks\n").split(`\n${heading}`);
  const stays = new Map(after.split("\n").filter((line) => line.startsWith("| ")).map((line) => [line.split(" | ")[0], line]));
  for (const row of rows) stays.set(row.split(" | ")[0], row);
  const all = guards.map(({ guard }) => stays.get(`| ${guard}`)).filter(Boolean);
  writeFileSync(report, `${before.trimEnd()}

${heading}

\`just attack --prove\`, last run ${new Date().toISOString().slice(0, 10)}: in a copy of the server that is built once, each of the guards of \`tools/mutants/guards.mjs\` is
switched off alone. Its test passes with every guard in place and has to fail without it.${ended ? ` In the last run ${ended}.` : ""}

${[...head, ...all].join("\n")}
`);
} else {
  console.log(`\n${[...head, ...rows].join("\n")}`);
}
if (ended) fail(ended);
console.log(`mutants: each of the ${wanted.length} guards that is taken out makes its test fail`);
