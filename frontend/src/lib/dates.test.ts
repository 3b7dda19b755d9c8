import { describe, expect, it } from "vitest";
import { addBusinessDays } from "./dates";

describe("business days", () => {
  it.each([
    ["2026-11-20T12:00:00", 5, "2026-11-27"],
    ["2026-11-21T12:00:00", 1, "2026-11-23"],
    ["2026-11-23T12:00:00", 5, "2026-11-30"],
  ])("%s and %i more", (from, days, expected) => {
    const found = addBusinessDays(new Date(from), days);
    expect([found.getFullYear(), found.getMonth() + 1, found.getDate()].join("-")).toBe(expected.replace(/-0/g, "-"));
  });
});
