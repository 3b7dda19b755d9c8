import { describe, expect, it } from "vitest";
import { amountText, optionalAmount, parseAmount, parseDollars } from "./amount";

describe("parseAmount", () => {
  it.each([
    ["250", 250],
    [" 250 ", 250],
    ["$250", 250],
    ["0.01", 0.01],
    ["99.5", 99.5],
    ["1,200", 1200],
    ["1,234,567.89", 1234567.89],
    ["9999999.99", 9999999.99],
  ])("reads %j", (text, value) => {
    expect(parseAmount(text)).toBe(value);
  });

  it.each(["", "0", "0.00", "-5", "1.234", "12,5", "1,20", "abc", "1e3", "10000000", "NaN", "5 000"])(
    "refuses %j",
    (text) => {
      expect(parseAmount(text)).toBeNull();
    },
  );
});

describe("parseDollars", () => {
  it.each([
    ["0", 0],
    ["$1250.50", 1250.5],
    ["10000000", 10_000_000],
    ["Not specified", null],
    ["", null],
    ["12,5", null],
  ])("reads %j as %j", (text, value) => expect(parseDollars(text)).toBe(value));
});

describe("optionalAmount", () => {
  it.each([
    ["", true],
    ["0", true],
    ["1,200.50", true],
    ["lots", false],
    ["1.234", false],
  ])("takes %j: %j", (text, taken) => expect(optionalAmount().safeParse(text).success).toBe(taken));
});

describe("amountText", () => {
  const schema = amountText({ required: "required", invalid: "invalid" });
  const messages = (text: string) => schema.safeParse(text).error?.issues.map((issue) => issue.message) ?? [];

  it("tells a missing amount from a wrong one, and says one thing at a time", () => {
    expect(messages("  ")).toEqual(["required"]);
    expect(messages("x")).toEqual(["invalid"]);
    expect(messages("12.50")).toEqual([]);
  });
});
