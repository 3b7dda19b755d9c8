// `just bench builds`: the REST API of several builds of the server, in turn. The first one is what the others are compared with.
//
//   node tools/bench/builds.mjs [--seconds 2] [--rounds 10] [--write FILE] target/release/ferrobase target/quick/ferrobase …
//
// Single rounds differ by 15 to 50 % on a shared machine; hence many short ones, each with a server of its own, and medians.
// Environment: as rest.mjs.
import { chmodSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import * as bench from "./cluster.mjs";
import { lay, start, works } from "./rest-ground.mjs";

const { values, positionals } = parseArgs({ allowPositionals: true, options: {
  seconds: { type: "string", default: "2" }, rounds: { type: "string", default: "10" }, write: { type: "string" },
} });
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);
const connections = 50;
const programs = positionals.map((program) => resolve(program));
if (programs.length < 2) {
  console.error("bench: name two builds or more, e.g. target/release/ferrobase target/quick/ferrobase");
  process.exit(2);
}

bench.requirePrograms();
if (values.write) await bench.waitForQuiet();
const cluster = bench.startCluster();
const head = bench.circumstances();
chmodSync(cluster.folder, 0o755);
lay(1000);

const measured = programs.map(() => works.map(() => ({ rate: [], cpu: [] })));
for (let round = 0; round < rounds; round++) {
  for (const [which, program] of programs.entries()) {
    const server = await start(undefined, {}, program);
    for (const [place, { name, requests }] of works.entries()) {
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

const rows = programs.map((program, which) => {
  const cells = works.map((_, place) => {
    const [first, own] = [measured[0][place], measured[which][place]];
    const rate = bench.median(own.rate);
    return `${bench.whole(rate)}/s, ${bench.percent(rate / bench.median(first.rate))}, ${bench.whole(bench.median(own.cpu))} µs`;
  });
  return `| ${[positionals[which], `${bench.one(statSync(program).size / 1e6)} MB`, ...cells].join(" | ")} |`;
});
bench.publish(`# Builds of the server

\`just bench builds\`: ${head.text}

${connections} connections; medians of ${rounds} rounds of ${seconds} s, the builds in turn: requests a second, compared with the first build, and the
server's processor time for a request.

| build | size | ${works.map(({ name }) => name).join(" | ")} |
|${" --- |".repeat(works.length + 2)}
${rows.join("\n")}
`, values.write, head);
process.exit(0);
