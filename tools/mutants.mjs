// Takes the guards of tools/mutants/guards.mjs out of a copy of the server, one at a time, and expects the test of each to fail.
//   node tools/mutants.mjs [--list] [--write FILE] [NAME …]
//
// The copy is built once: in it every guard asks the environment (FERROBASE_MUTANT) whether it is out. First all tests run
// with every guard in place and have to pass, so that a failure says something.

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { guards } from "./mutants/guards.mjs";

const root = resolve(import.meta.dirname, "..");
const copy = join(root, "target/mutants");
const words = process.argv.slice(2);
const at = words.indexOf("--write");
const report = at >= 0 ? words.splice(at, 2)[1] : undefined;
if (words[0] === "--list") {
  for (const { name, guard, test } of guards) console.log(`${name.padEnd(16)} ${guard} (${test})`);
  process.exit(0);
}
const unknown = words.filter((word) => !guards.some(({ name }) => name === word));
if (unknown.length > 0) fail(`there is no guard named ${unknown.join(", ")}; --list names them`);
const wanted = guards.filter(({ name }) => words.length === 0 || words.includes(name));

function fail(message) {
  console.error(`mutants: ${message}`);
  process.exit(1);
}

const switchOf = (name) => `std::env::var_os("FERROBASE_MUTANT").is_some_and(|name| name == "${name}")`;

rmSync(copy, { recursive: true, force: true });
mkdirSync(copy, { recursive: true });
execFileSync("sh", ["-c", `git ls-files -z | tar --null --files-from=- -cf - | tar -xf - -C '${copy}'`], { cwd: root });
for (const folder of ["tools/postgres/node_modules", "frontend/dist"]) {
  if (!existsSync(join(root, folder))) continue;
  rmSync(join(copy, folder), { recursive: true, force: true });
  symlinkSync(join(root, folder), join(copy, folder));
}
for (const { name, file, find, off, same } of guards) {
  if (same) continue;
  const path = join(copy, "server/src", file);
  const text = readFileSync(path, "utf8");
  if (text.split(find).length !== 2) fail(`${name}: the guard does not stand in ${file} exactly once:\n${find}`);
  writeFileSync(path, text.replace(find, () => off.replaceAll("MUTANT", switchOf(name))));
}

// What is built beside the project's own must not pass for it: another profile gives it other names. The program alone
// has one name.
const env = { ...process.env, CARGO_TARGET_DIR: join(root, "target") };
const own = ["ferrobase", ...readdirSync(join(root, "server/crates")).map((name) => `ferrobase-${name}`)];
const profiles = own.flatMap((name) => ["--config", `profile.dev.package.${name}.debug=false`]);
const cargo = ["test", ...profiles, "--manifest-path", join(copy, "Cargo.toml"), "--locked", "-p", "ferrobase", "--test", "all"];
process.on("exit", () => rmSync(join(root, "target/debug/ferrobase"), { force: true }));
if (spawnSync("cargo", [...cargo, "--no-run"], { env, stdio: "inherit" }).status !== 0) fail("the copy does not build");

/** Runs these tests with one guard out, or none; how it ended and what was printed. */
function run(tests, mutant) {
  const own = mutant ? { ...env, FERROBASE_MUTANT: mutant } : env;
  const done = spawnSync("cargo", [...cargo, "--", ...tests, "--nocapture", "--test-threads=4"], { env: own, encoding: "utf8", maxBuffer: 1 << 30 });
  const text = `${done.stdout}\n${done.stderr}`;
  const ran = [...text.matchAll(/test result: \w+\. (\d+) passed; (\d+) failed/g)].at(-1);
  if (!ran || Number(ran[1]) + Number(ran[2]) === 0) fail(`${tests.join(" ")} ran no test:\n${text.slice(-2000)}`);
  return { passed: done.status === 0, text };
}

const tests = [...new Set(wanted.map(({ test }) => test))];
const whole = run(tests);
if (!whole.passed) fail(`with every guard in place tests fail:\n${whole.text.slice(-4000)}`);
console.log(`with every guard in place: ${tests.length} tests or groups pass`);

const rows = [];
let survived = 0;
for (const { name, guard, file, test, same, says } of wanted) {
  const { passed, text } = run([test], same ?? name);
  const panic = text.match(/panicked at [^\n]*\n([^\n]*)/)?.[1] ?? "";
  const told = (says ? text.match(says)?.[0] : panic)?.trim().slice(0, 110).replaceAll("|", "/") ?? "";
  const seen = !passed && (!says || says.test(text));
  if (!seen) survived += 1;
  rows.push(`| ${guard} | \`${file}\` | \`${test}\` | ${seen ? "fails" : "**does not notice**"} | ${told} |`);
  console.log(`${seen ? "seen    " : "SURVIVED"} ${name}: ${told}`);
}
const table = ["| guard | taken out of | test | without the guard it | and says |", "|---|---|---|---|---|", ...rows].join("\n");
if (report) writeFileSync(report, `${table}\n`);
else console.log(`\n${table}`);
if (survived > 0) fail(`${survived} of ${wanted.length} guards can go unnoticed`);
console.log(`mutants: each of the ${wanted.length} tests fails without its guard, as it has to`);
