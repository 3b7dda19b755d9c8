// Prints "PASSED FAILED" from a log of cargo test, vitest or playwright.
import { readFileSync } from "node:fs";

const log = readFileSync(process.argv[2], "utf8").replace(/\u001b\[[0-9;]*m/g, "");
let passed = 0;
let failed = 0;
for (const [, ok, bad] of log.matchAll(/^test result: \w+\. (\d+) passed; (\d+) failed/gm)) {
  passed += Number(ok);
  failed += Number(bad);
}
for (const [, line] of log.matchAll(/^\s*Tests\s+(.*)$/gm)) {
  passed += Number(/(\d+) passed/.exec(line)?.[1] ?? 0);
  failed += Number(/(\d+) failed/.exec(line)?.[1] ?? 0);
}
// Playwright closes with lines of their own: "  12 passed (3.4s)", "  1 failed".
for (const [, count, word] of log.matchAll(/^\s{2}(\d+) (passed|failed|flaky|did not run|interrupted)\b(?: \(.*\))?$/gm)) {
  if (word === "passed") passed += Number(count);
  else failed += Number(count);
}
console.log(`${passed} ${failed}`);
