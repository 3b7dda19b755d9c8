// What limits the p99 of a read while a password is compared? Measures `GET /user` on one connection, alone and during
// one sign-in at a time, with several ways of scheduling the hashing threads. Needs chrt, taskset, python3 and root;
// run it on a quiet machine. It turns sched_autogroup_enabled off for its last variant and on again.
//
//   node tools/bench/auth-scheduling.mjs [--seconds 10] [--rounds 3]
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { prepareDatabase, serverSettings, signUp } from "./auth-server.mjs";
import * as bench from "./cluster.mjs";

const { values } = parseArgs({ options: { seconds: { type: "string", default: "10" }, rounds: { type: "string", default: "3" } } });
const seconds = Number(values.seconds);
const autogroup = "/proc/sys/kernel/sched_autogroup_enabled";

bench.requirePrograms();
bench.startCluster();
prepareDatabase();
const server = await bench.startServer("auth", serverSettings(), "/health");
const { works } = await signUp(1);

const hashing = () => readdirSync(`/proc/${server.pid}/task`)
  .filter((thread) => readFileSync(`/proc/${server.pid}/task/${thread}/comm`, "utf8").trim() === "hash");
const each = (program, ...words) => hashing().forEach((thread) => execFileSync(program, [...words, thread], { stdio: "ignore" }));
// Linux 6.12 and later: a thread that requests long slices is preempted at once by any thread that wakes up with a
// shorter one, also across groups, between which niceness does not count. struct sched_attr: size, policy, flags, nice,
// priority, runtime in ns, …
const slices = (nice, ms) => each("python3", "-c", `import ctypes, os, struct, sys
attr = struct.pack('IIQiIQQQ', 48, 0, 0, ${nice}, 0, ${ms * 1e6}, 0, 0)
sys.exit(ctypes.CDLL(None).syscall({'x86_64': 314, 'aarch64': 274}[os.uname().machine], int(sys.argv[1]), attr, 0))`);
const autogroupAtFirst = readFileSync(autogroup, "utf8").trim();
const restore = () => writeFileSync(autogroup, autogroupAtFirst);
process.on("exit", restore);

const ways = {
  "as shipped: nice 10, slices of 100 ms": () => {},
  "nice 0, slices of 100 ms": () => slices(0, 100),
  "nice 19, slices of 100 ms": () => slices(19, 100),
  "nice 19, usual slices": () => slices(19, 0),
  "nice 0, usual slices": () => slices(0, 0),
  "nice 19, usual slices, one core": () => (slices(19, 0), each("taskset", "-p", "1")),
  "SCHED_IDLE": () => each("chrt", "-i", "-p", "0"),
  "nice 19, usual slices, no autogroups": () => (slices(19, 0), writeFileSync(autogroup, "0")),
};
const reset = () => {
  restore();
  slices(10, 100);
  each("taskset", "-p", "ff");
};

const run = (work) => bench.load("http", { connections: 1, seconds, ...work });
await run(works.user);
const seen = {};
for (let round = 0; round < Number(values.rounds); round++) {
  for (const [name, apply] of Object.entries(ways)) {
    reset();
    apply();
    const quiet = await run(works.user);
    const [read, signIn] = await Promise.all([run(works.user), run(works.password)]);
    (seen[name] ??= []).push({ quiet: quiet.p99_ms, beside: read.p99_ms, longest: read.p999_ms, signIns: signIn.per_second });
  }
}
const middle = (name, field) => bench.two(bench.median(seen[name].map((figure) => figure[field])));
console.log("| hashing threads | p99 quiet, ms | p99 beside, ms | p99.9 beside, ms | ratio | sign-ins/s |\n|---|---|---|---|---|---|");
for (const name of Object.keys(ways)) {
  const ratio = bench.two(bench.median(seen[name].map((figure) => figure.beside / figure.quiet)));
  console.log(`| ${[name, middle(name, "quiet"), middle(name, "beside"), middle(name, "longest"), ratio, middle(name, "signIns")].join(" | ")} |`);
}
await bench.stopServer(server);
process.exit(0);
