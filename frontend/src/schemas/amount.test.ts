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
    ["12,5", 12.5],
    ["99,50", 99.5],
    ["5 000", 5000],
    ["250 $", 250],
  ])("reads %j", (text, value) => {
    expect(parseAmount(text)).toBe(value);
  });

  it.each(["", "0", "0.00", "-5", "1.234", "abc", "1e3", "10000000", "NaN"])("refuses %j", (text) => {
    expect(parseAmount(text)).toBeNull();
  });
});

describe("parseDollars", () => {
  it.each([
    ["0", 0],
    ["$1250.50", 1250.5],
    ["10000000", 10_000_000],
    ["Not specified", null],
    ["", null],
    // no reading of these is sure
    ["1.200", null],
    ["1.200 50", null],
    ["1,200,50", null],
    ["1.200.50", null],
    ["1 200,500", null],
    ["12 34", null],
    ["1  200", null],
    ["1,2 000", null],
    ["1'200", null],
    [",50", null],
    ["12,", null],
    ["$5 $", null],
    ["$$5", null],
  ])("reads %j as %j", (text, value) => expect(parseDollars(text)).toBe(value));

  /** The sum with its thousands and cents separated so; no separator of thousands where it is ''. */
  function written(cents: number, thousands: string, decimal: string): string {
    const whole = String(Math.floor(cents / 100)).replace(/\B(?=(\d{3})+$)/g, thousands);
    return `${whole}${decimal}${String(cents % 100).padStart(2, "0")}`;
  }
  // each order of magnitude, with cents that need their zeros
  const sums = [5, 50, 99, 100, 9_950, 99_999, 120_050, 1_234_500, 12_345_678, 100_000_001, 999_999_999];

  it.each([
    ["English", ",", "."],
    ["Spanish", ".", ","],
    ["French", "\u202f", ","],
    ["French, typed", " ", ","],
    ["French, from a table", "\u00a0", ","],
    ["with spaces and a point", " ", "."],
    ["without groups", "", "."],
    ["without groups, with a comma", "", ","],
  ])("reads every sum written in the %s way", (_, thousands, decimal) => {
    expect(sums.map((cents) => parseDollars(written(cents, thousands, decimal)))).toEqual(
      sums.map((cents) => cents / 100),
    );
  });

  it.each(["en-US", "es-US", "es-ES", "fr", "fr-HT"])("reads what Intl writes in %s", (locale) => {
    const format = new Intl.NumberFormat(locale, { minimumFractionDigits: 2 });
    expect(sums.map((cents) => parseDollars(format.format(cents / 100)))).toEqual(sums.map((cents) => cents / 100));
  });
});

describe("optionalAmount", () => {
  it.each([
    ["", true],
    ["0", true],
    ["1,200.50", true],
    ["1 200,50", true],
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
