/**
 * Prints per API what answered as Supabase does, what differs, and what was skipped for which reason.
 * COMPAT_REPORT=FILE keeps it as JSON, for `npm run compare`.
 */
import { writeFileSync } from "node:fs";
import type { Reporter } from "vitest/reporters";
import { environment } from "../tests/environment";
import { apiOf } from "./apis";

type Outcome = "same" | "differs" | "skipped";
type Results = Record<string, { outcome: Outcome; why?: string }>;
const OUTCOMES: Record<string, Outcome> = { passed: "same", failed: "differs" };

const firstLine = (text: string) => text.replace(/\u001b\[[0-9;]*m/g, "").split("\n").find(Boolean) ?? "";

export default class Report implements Reporter {
  onTestRunEnd: Reporter["onTestRunEnd"] = (modules, unhandled) => {
    const results: Results = {};
    for (const module of modules) {
      const api = apiOf(module.moduleId);
      for (const test of module.children.allTests()) {
        const result = test.result();
        const outcome = OUTCOMES[result.state] ?? "skipped";
        const why = result.state === "skipped" ? result.note : firstLine(result.errors?.[0]?.message ?? "");
        results[`${api}: ${test.fullName}`] = why ? { outcome, why } : { outcome };
      }
      for (const error of module.errors()) results[`${api}: the file`] = { outcome: "differs", why: firstLine(error.message) };
    }
    for (const error of unhandled) results[`all: ${firstLine(error.message)}`] = { outcome: "differs" };
    console.log(summary(environment.url, results));
    const file = process.env.COMPAT_REPORT;
    if (file) writeFileSync(file, `${JSON.stringify({ url: environment.url, results }, null, 1)}\n`);
  };
}

function summary(url: string, results: Results): string {
  const entries = Object.entries(results);
  const lines = ["", `Answers that match Supabase's at ${url}`];
  for (const api of new Set(entries.map(([name]) => name.slice(0, name.indexOf(": "))))) {
    const own = entries.filter(([name]) => name.startsWith(`${api}: `)).map(([, { outcome }]) => outcome);
    const count = (outcome: Outcome) => own.filter((one) => one === outcome).length;
    const [same, differs, skipped] = [count("same"), count("differs"), count("skipped")];
    lines.push(`  ${api.padEnd(10)} ${String(same).padStart(4)} of ${same + differs}${skipped ? `, ${skipped} skipped` : ""}`);
  }
  const differing = entries.filter(([, { outcome }]) => outcome === "differs");
  if (differing.length > 0) lines.push("Different", ...differing.map(([name, { why }]) => `  ${name}${why ? `\n      ${why}` : ""}`));
  const reasons = new Map<string, number>();
  for (const [, { outcome, why = "only by name" }] of entries) if (outcome === "skipped") reasons.set(why, (reasons.get(why) ?? 0) + 1);
  if (reasons.size > 0) lines.push("Skipped", ...[...reasons].map(([why, count]) => `  ${String(count).padStart(4)}  ${why}`));
  return lines.join("\n");
}
