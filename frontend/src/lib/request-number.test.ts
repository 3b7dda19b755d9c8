import { expect, it } from "vitest";
import { normalizeNumber } from "./request-number";

it.each([
  ["REQ-001", "REQ-001"],
  [" req-1 ", "REQ-001"],
  ["req 42", "REQ-042"],
  ["REQ42", "REQ-042"],
  ["#42", "REQ-042"],
  // a phone's keyboard makes a dash of a hyphen
  ["Req–042", "REQ-042"],
  ["00042", "REQ-042"],
  ["REQ-1234", "REQ-1234"],
  ["", ""],
  ["nonsense", "NONSENSE"],
  ["REQ-12-3", "REQ-12-3"],
])("reads %j as %j", (typed, number) => {
  expect(normalizeNumber(typed)).toBe(number);
});
