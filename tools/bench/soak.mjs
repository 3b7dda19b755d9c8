// `just soak`: the REST API under every kind of request at once, for a given time, e.g. an hour.
//
//   node tools/bench/soak.mjs [--minutes 60] [--shared] [--write docs/reports/soak-rest.md]
//
// Thirty users of three roles alternate on every connection; each response is compared with what that user may see, and
// a wrong one ends the run. Every half minute the schema changes and a large table is read to its end. Environment: as
// rest.mjs.
import { chmodSync } from "node:fs";
import { parseArgs } from "node:util";
import * as bench from "./cluster.mjs";
import { bearer, lay, poolSize, roles, start, users, works } from "./rest-ground.mjs";

const { values } = parseArgs({ options: {
  minutes: { type: "string", default: "60" }, shared: { type: "boolean", default: false }, write: { type: "string" },
} });
const minutes = Number(values.minutes);
const connections = 50;
const roundSeconds = 30;
const largeRows = 100_000;

bench.requirePrograms();
if (values.write && !values.shared) await bench.waitForQuiet();
const cluster = bench.startCluster();
const head = bench.circumstances({ isShared: values.shared });
chmodSync(cluster.folder, 0o755);
lay(largeRows);

// One list in which the kinds alternate: a read, an embed, a call and an insert of some user, then of another.
const longest = Math.max(...works.map(({ requests }) => requests.length));
const requests = Array.from({ length: longest }, (_, turn) => works.map((work) => work.requests[turn % work.requests.length])).flat();
const largeRead = { method: "GET", path: "/big", headers: bearer(users[0]), status: 200 };

const server = await start();
await bench.sleep(500);
const idle = bench.memory(server.pid);
const begin = performance.now();
const elapsed = () => (performance.now() - begin) / 60_000;
const rounds = [];
while (elapsed() < minutes) {
  const running = bench.load("http", { connections, seconds: roundSeconds, requests });
  await bench.sleep(roundSeconds * 400);
  const read = await bench.load("once", { requests: [largeRead] });
  if (read.status !== 200) throw new Error(`the large read was answered with ${read.status}`);
  bench.sql(`drop table if exists bench.change; create table bench.change (id int primary key, big_id int references bench.big);
    notify pgrst, 'reload schema'`);
  const figure = await running;
  if (figure.wrong > 0) throw new Error(`${figure.wrong} wrong responses, the first: ${figure.first_wrong}`);
  rounds.push({ minute: elapsed(), memory: bench.memory(server.pid), ...figure });
  bench.sql("truncate bench.entry");
  console.error(`${bench.one(elapsed())} min, ${bench.whole(figure.requests)} requests, ${bench.one(rounds.at(-1).memory)} MB`);
}
const peak = bench.memory(server.pid, "VmHWM");
const checked = rounds.reduce((sum, round) => sum + round.requests, 0);
const step = Math.max(1, Math.round(rounds.length / 12));
const shown = rounds.filter((_, place) => (place + 1) % step === 0);
bench.publish(`# The REST API over ${Math.round(elapsed())} minutes of load

\`just soak ${minutes}\`: ${head.text}

${connections} HTTP connections, ${poolSize} database connections; a read, an embed, a call and an insert in turn, ${roles.length} roles and ${users.length} users
in turn on every connection. Every ${roundSeconds} s the schema changes and ${bench.whole(largeRows)} rows are read to their end beside it.

| what | figure | aim |
|---|---|---|
| responses compared with what that user may see | ${bench.whole(checked)}, 0 wrong | 10,000,000, never a wrong role |
| resident memory idle | ${bench.one(idle)} MB | ≤ 15 MB |
| … at the end | ${bench.one(rounds.at(-1).memory)} MB | ≤ 30 MB after an hour |
| … at most, at any moment | ${bench.one(peak)} MB | |
| schema changes, large reads | ${rounds.length} of each | |

| minute | resident MB | requests/s in that half minute |
|---|---|---|
${shown.map(({ minute, memory, per_second }) => `| ${Math.round(minute)} | ${bench.one(memory)} | ${bench.whole(per_second)} |`).join("\n")}
`, values.write, head);
process.exit(0);
