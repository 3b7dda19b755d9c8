/** A separate file, because formatters are created once per visit, in its language. */
import { expect, it, vi } from "vitest";
import { parseDollars } from "@/schemas/amount";
import { formatAmount, formatMegabytes, formatMoney, formatPercent } from "./format";

vi.mock("@/messages/locale", () => ({ intlLocale: () => "fr", dayWords: (date: string) => date }));

it("writes French percentages and money with a non-breaking space", () => {
  expect(formatPercent(52)).toMatch(/^52[\u00a0\u202f]%$/);
  expect(formatMoney(52)).toMatch(/^52[\u00a0\u202f]\$/);
});

it("writes sizes of files as in French", () => {
  expect(formatMegabytes(419_430)).toBe("0,4\u00a0Mo");
  expect(formatMegabytes(12)).toBe("<0,1\u00a0Mo");
});

it("writes amounts for fields as their readers type them", () => {
  expect(formatAmount(1200.5)).toBe("1200,5");
  expect(parseDollars(formatAmount(1200.5))).toBe(1200.5);
  expect(formatAmount(1200)).toBe("1200");
});
