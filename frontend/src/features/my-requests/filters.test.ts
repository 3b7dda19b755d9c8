import { describe, expect, it } from "vitest";
import { changeFilters, instants, isFiltered, noFilters, readFilters, writeFilters } from "./filters";

const read = (query: string) => readFilters(new URLSearchParams(query));

describe("filters in the URL", () => {
  it("are absent from a plain URL and not written to it", () => {
    expect(read("")).toEqual(noFilters);
    expect(writeFilters(noFilters)).toBe("");
    expect(isFiltered(noFilters)).toBe(false);
  });

  it("survive a round trip", () => {
    const filters = {
      search: "school fee",
      status: "pending",
      category: "Food & Co",
      from: "2026-10-01",
      to: "2026-11-30",
      page: 3,
    } as const;
    expect(read(writeFilters(filters))).toEqual(filters);
    expect(isFiltered(filters)).toBe(true);
  });

  it("ignore unknown values", () => {
    expect(read("status=withdrawn&page=-2&from=yesterday&to=2026-13-45")).toEqual(noFilters);
    expect(read("page=2.5").page).toBe(1);
  });

  it("drop an end before the start", () => {
    expect(read("from=2026-11-10&to=2026-11-01")).toEqual({ ...noFilters, from: "2026-11-10" });
  });

  it("return to the first page when one changes", () => {
    expect(changeFilters({ ...noFilters, page: 4 }, { status: "approved" })).toEqual({
      ...noFilters,
      status: "approved",
    });
  });
});

describe("a range of days", () => {
  it("includes its whole last day in the user's time zone", () => {
    const { gte, lt } = instants({ from: "2026-11-01", to: "2026-11-01" });
    expect(new Date(gte ?? "").getHours()).toBe(0);
    expect(Date.parse(lt ?? "") - Date.parse(gte ?? "")).toBe(24 * 3600 * 1000);
  });

  it("may be open at either end", () => {
    expect(instants({})).toEqual({});
    expect(instants({ from: "2026-11-01" }).lt).toBeUndefined();
  });
});
