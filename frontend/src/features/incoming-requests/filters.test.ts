import { describe, expect, it } from "vitest";
import { changeFilters, isFiltered, readFilters, writeFilters, type IncomingFilters } from "./filters";

const read = (query: string) => readFilters(new URLSearchParams(query));
const defaults: IncomingFilters = { status: "all", search: "", mine: false, sort: null, page: 1 };

describe("the list's filters in the URL", () => {
  it("reads an empty URL as the defaults and writes the defaults as an empty URL", () => {
    expect(read("")).toEqual(defaults);
    expect(writeFilters(defaults)).toBe("");
  });

  it.each<[string, IncomingFilters]>([
    [
      "status=pending&q=rent&sort=-date&page=2",
      { ...defaults, status: "pending", search: "rent", sort: { key: "date", direction: "desc" }, page: 2 },
    ],
    ["status=declined", { ...defaults, status: "declined" }],
    ["q=REQ-004", { ...defaults, search: "REQ-004" }],
    ["mine=true", { ...defaults, mine: true }],
    ["sort=amount", { ...defaults, sort: { key: "amount", direction: "asc" } }],
  ])("reads %s and writes it back", (query, filters) => {
    expect(read(query)).toEqual(filters);
    expect(writeFilters(filters)).toBe(`?${query}`);
  });

  it.each([
    "status=withdrawn",
    "status=",
    "page=0",
    "page=-1",
    "page=1.5",
    "page=two",
    "page=1e9",
    "sort=colour",
    "sort=-",
  ])("takes %s for the default", (query) => {
    expect(read(query)).toEqual(defaults);
  });

  it("trims the search and cuts it at 100 characters", () => {
    expect(read(`q=${encodeURIComponent("  food  ")}`).search).toBe("food");
    expect(read(`q=${"x".repeat(300)}`).search).toHaveLength(100);
  });

  it("returns to the first page when a filter changes and stays when the page changes", () => {
    const third = { ...defaults, page: 3 };
    expect(changeFilters(third, { status: "approved" }).page).toBe(1);
    expect(changeFilters(third, { page: 4 }).page).toBe(4);
  });

  it("counts status, search and assignee as filters, not order or page", () => {
    expect(isFiltered({ ...defaults, search: "x" })).toBe(true);
    expect(isFiltered({ ...defaults, status: "pending" })).toBe(true);
    expect(isFiltered({ ...defaults, mine: true })).toBe(true);
    expect(isFiltered({ ...defaults, page: 2, sort: { key: "date", direction: "asc" } })).toBe(false);
  });
});
