// npm run compare -- ONE.json OTHER.json: the answers that differ between two servers, from the reports that COMPAT_REPORT writes.
import { readFileSync } from "node:fs";

const files = process.argv.slice(2);
if (files.length !== 2) {
  console.error("usage: npm run compare -- ONE.json OTHER.json   (made with COMPAT_REPORT=FILE npm test)");
  process.exit(2);
}
const [one, other] = files.map((file) => JSON.parse(readFileSync(file, "utf8")));
const names = new Set([...Object.keys(one.results), ...Object.keys(other.results)]);
const absent = { outcome: "skipped", why: "not in this run" };
let both = 0;
const differences = [];
const unknown = [];
for (const name of names) {
  const [a, b] = [one.results[name] ?? absent, other.results[name] ?? absent];
  if (a.outcome === "skipped" || b.outcome === "skipped") {
    if (a.outcome !== b.outcome) unknown.push(name);
  } else {
    both++;
    if (a.outcome !== b.outcome || a.why !== b.why) differences.push({ name, a, b });
  }
}
const word = ({ outcome, why }) => (outcome === "same" ? "as Supabase does" : (why ?? outcome));
console.log(`${one.url} and ${other.url}: ${both} answers from both, ${differences.length} differ, ${unknown.length} from only one`);
for (const { name, a, b } of differences) console.log(`  ${name}\n      ${one.url}: ${word(a)}\n      ${other.url}: ${word(b)}`);
process.exit(differences.length > 0 ? 1 : 0);
