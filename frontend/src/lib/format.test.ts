import { describe, expect, it } from "vitest";
import * as format from "./format";

it("writes short en-US dates, and plain days in any time zone", () => {
  expect(format.formatDate("2026-11-17")).toBe("Nov 17, 2026");
  expect(format.formatFilterDate("2026-11-07")).toBe("Nov 07, 2026");
  expect(format.formatLongDate("2026-11-27")).toBe("Friday, November 27");
});

it.each([
  [250, "$250"],
  [1250, "$1,250"],
  [1250.5, "$1,250.50"],
  [0, "$0"],
])("writes %s dollars as %s", (amount, text) => expect(format.formatMoney(amount)).toBe(text));

it("writes sizes and percentages", () => {
  expect(format.formatMegabytes(10 * 1024 * 1024)).toBe("10.0 MB");
  expect(format.formatMegabytes(12)).toBe("<0.1 MB");
  expect(format.formatMegabytes(0)).toBe("0.0 MB");
  expect(format.formatPercent(65.83)).toBe("66%");
});

describe("ago", () => {
  const now = new Date("2026-11-21T12:00:00Z");
  it.each([
    ["2026-11-21T11:59:30Z", { unit: "now" }],
    ["2026-11-21T12:05:00Z", { unit: "now" }],
    ["2026-11-21T11:59:00Z", { unit: "minutes", count: 1 }],
    ["2026-11-21T11:00:01Z", { unit: "minutes", count: 59 }],
    ["2026-11-21T11:00:00Z", { unit: "hours", count: 1 }],
    ["2026-11-20T12:00:01Z", { unit: "hours", count: 23 }],
    ["2026-11-18T12:00:00Z", { unit: "days", count: 3 }],
  ])("%s", (then, expected) => expect(format.ago(then, now)).toEqual(expected));
});

it("derives the avatar's letter from the name", () => {
  expect(format.avatarFallback("élodie")).toBe("É");
  expect(format.avatarFallback("  ")).toBe("NA");
  expect(format.avatarFallback(undefined)).toBe("NA");
  expect(format.initialsOf("Marie-Thérèse Désir-Beauvoir")).toBe("MD");
  expect(format.initialsOf("élodie")).toBe("É");
  expect(format.initialsOf(" ")).toBe("NA");
  expect(format.firstName("Marie-Thérèse Désir")).toBe("Marie-Thérèse");
});
