// Prints the failures in the log of a suite (cargo test, vitest, playwright): each with its first lines, or the log's
// end if the runner names none, so that the end of a long run shows everything.
import { readFileSync } from "node:fs";

const LINES_OF_ONE = 40;
// The lines that start a failure's description, and those that can only come after it.
const STARTS = [/^---- .+ stdout ----$/, /^ FAIL {2}/, /^ {2}\d+\) \[/];
const ENDS = [/^failures:$/, /^test result: /, /^⎯+/, /^ {2}\d+ (passed|failed|flaky|skipped|did not run)/];

const lines = readFileSync(process.argv[2], "utf8")
  .replace(/\u001b\[[0-9;]*m/g, "")
  .split("\n");
const told = [];
let left = 0;
for (const line of lines) {
  if (STARTS.some((start) => start.test(line))) left = LINES_OF_ONE;
  else if (ENDS.some((end) => end.test(line))) left = 0;
  if (left > 0) told.push(line);
  left -= 1;
}
console.log((told.length > 0 ? told : lines.slice(-LINES_OF_ONE)).join("\n"));
