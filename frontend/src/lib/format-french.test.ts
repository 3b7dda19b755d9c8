/** A separate file, because formatters are created once per visit, in its language. */
import { expect, it, vi } from "vitest";
import { formatMoney, formatPercent } from "./format";

vi.mock("@/messages/locale", () => ({ intlLocale: () => "fr", dayWords: (date: string) => date }));

it("writes French percentages and money with a non-breaking space", () => {
  expect(formatPercent(52)).toMatch(/^52[\u00a0\u202f]%$/);
  expect(formatMoney(52)).toMatch(/^52[\u00a0\u202f]\$/);
});
