import { expect, it } from "vitest";
import { canGetTexts } from "./text-number";

it.each([
  ["(207) 555-0123", true],
  ["1 207 555 0123", true],
  ["+33 6 12 34 56 78", true],
  ["0033 6 12 34 56 78", true],
  ["06 12 34 56 78", false],
  ["12345", false],
  ["207 555 0123 ext. 4", false],
  ["+0 207 555 0123", false],
  ["", false],
])("knows whether texts reach %s", (typed, reached) => {
  expect(canGetTexts(typed)).toBe(reached);
});
