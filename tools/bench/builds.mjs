// `just bench builds`: several builds of the server, in turn. The first one is what the others are compared with.
//
//   node tools/bench/builds.mjs [--seconds 2] [--rounds 10] [--only rest,auth,storage] [--write FILE] target/release/ferrobase target/quick/ferrobase …
//
// Single rounds differ by 15 to 50 % on a shared machine; hence many short ones, each with a server of its own, and medians.
// Environment: as rest.mjs. Each API runs in a process of its own (`--api`), with a PostgreSQL of its own.
import { spawnSync } from "node:child_process";
import { chmodSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { apis } from "./apis.mjs";
import * as bench from "./cluster.mjs";
import { lay, start, works } from "./rest-ground.mjs";

const { values, positionals } = parseArgs({ allowPositionals: true, options: {
  seconds: { type: "string", default: "2" }, rounds: { type: "string", default: "10" },
  only: { type: "string", default: "rest,auth,storage" }, api: { type: "string" }, write: { type: "string" },
} });
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);
const connections = 50;
const programs = positionals.map((program) => resolve(program));
if (programs.length < 2) {
  console.error("bench: name two builds or more, e.g. target/release/ferrobase target/quick/ferrobase");
  process.exit(2);
}

/** The works of an API, and its server. */
async function prepare(api, folder) {
  if (api !== "rest") {
    const prepared = await apis[api](folder, connections, {});
    // A sign-in is almost only its hash, which is a library of its own.
    const asked = prepared.filter(({ busy }) => busy === undefined);
    return { asked, serve: asked[0].serve };
  }
  lay(1000);
  return { asked: works, serve: (program) => start(undefined, {}, program) };
}

/** Rates and processor times of each work, for each program. */
async function measure({ asked, serve }) {
  const measured = programs.map(() => asked.map(({ name }) => ({ name, rate: [], cpu: [] })));
  for (let round = 0; round < rounds; round++) {
    for (const [which, program] of programs.entries()) {
      const server = await serve(program);
      for (const [place, { name, requests }] of asked.entries()) {
        await bench.load("http", { connections, seconds: Math.min(0.5, seconds), requests });
        const before = bench.cpuOf(server.pid);
        const figure = await bench.load("http", { connections, seconds, requests });
        if (figure.wrong > 0) throw new Error(`${name}: ${figure.wrong} wrong responses, the first: ${figure.first_wrong}`);
        const { rate, cpu } = measured[which][place];
        rate.push(figure.per_second);
        cpu.push((bench.cpuOf(server.pid) - before) / figure.requests);
      }
      await bench.stopServer(server);
    }
  }
  return measured;
}

bench.requirePrograms();
if (values.api) {
  const cluster = bench.startCluster();
  const head = bench.circumstances();
  chmodSync(cluster.folder, 0o755);
  console.log(JSON.stringify({ head, measured: await measure(await prepare(values.api, cluster.folder)) }));
  process.exit(0);
}

if (values.write) await bench.waitForQuiet();
const found = values.only.split(",").map((api) => {
  const words = [process.argv[1], "--api", api, "--seconds", values.seconds, "--rounds", values.rounds, ...programs];
  const child = spawnSync(process.execPath, words, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  if (child.status !== 0) process.exit(1);
  return JSON.parse(child.stdout.trim().split("\n").at(-1));
});
const { head } = found[0];
const measured = programs.map((_, which) => found.flatMap((api) => api.measured[which]));
const rows = measured[0].map(({ name }, place) => {
  const cells = measured.map((own) => {
    const rate = bench.median(own[place].rate);
    return `${bench.whole(rate)}/s, ${bench.percent(rate / bench.median(measured[0][place].rate))}, ${bench.whole(bench.median(own[place].cpu))} µs`;
  });
  return `| ${[name, ...cells].join(" | ")} |`;
});
const columns = programs.map((program, which) => `${positionals[which]}, ${bench.one(statSync(program).size / 1e6)} MB`);
bench.publish(`# Builds of the server

\`just bench builds\`: ${head.text}

${connections} connections; medians of ${rounds} rounds of ${seconds} s, the builds in turn: requests a second, compared with the first build, and the
server's processor time for a request.

| work | ${columns.join(" | ")} |
|${" --- |".repeat(columns.length + 1)}
${rows.join("\n")}
`, values.write, head);
process.exit(0);
