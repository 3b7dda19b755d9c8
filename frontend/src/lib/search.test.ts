import { expect, it } from "vitest";
import { searchPatterns } from "./search";

it.each([
  ["", []],
  ["  Rent  REQ-001 ", ["%rent%", "%req-001%"]],
  ["100%_\\", ["%100\\%\\_\\\\%"]],
  ["a b c d e f g h i", ["%a%", "%b%", "%c%", "%d%", "%e%", "%f%", "%g%", "%h%"]],
])("searches for %j", (typed, patterns) => {
  expect(searchPatterns(typed)).toEqual(patterns);
});
