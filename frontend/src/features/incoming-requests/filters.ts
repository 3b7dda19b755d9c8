/** The list's state as the address bar holds it: `?status=pending&q=rent&sort=-date&page=2`. */

export const statusFilters = ["all", "pending", "processing", "approved", "declined"] as const;
export type StatusFilter = (typeof statusFilters)[number];

export const sortKeys = ["number", "category", "date", "amount"] as const;
export type SortKey = (typeof sortKeys)[number];

export interface IncomingFilters {
  status: StatusFilter;
  /** Trimmed; empty when nothing is searched. */
  search: string;
  /** Null: what waits first (the longest on top), then the newest. */
  sort: { key: SortKey; direction: "asc" | "desc" } | null;
  /** From 1. */
  page: number;
}

export const PAGE_SIZE = 20;

/** Reads an address, also one typed by hand: what makes no sense is the default. */
export function readFilters(params: URLSearchParams): IncomingFilters {
  const status = params.get("status");
  const sort = params.get("sort") ?? "";
  const key = sort.replace(/^-/, "");
  const page = Number(params.get("page") ?? "1");
  return {
    status: statusFilters.find((known) => known === status) ?? "all",
    search: (params.get("q") ?? "").trim().slice(0, 100),
    sort: sortKeys.includes(key as SortKey)
      ? { key: key as SortKey, direction: sort.startsWith("-") ? "desc" : "asc" }
      : null,
    page: Number.isInteger(page) && page >= 1 && page <= 100_000 ? page : 1,
  };
}

/** The shortest address that reads back as `filters`. */
export function writeFilters({ status, search, sort, page }: IncomingFilters): URLSearchParams {
  const params = new URLSearchParams();
  if (status !== "all") params.set("status", status);
  if (search.trim()) params.set("q", search.trim());
  if (sort) params.set("sort", `${sort.direction === "desc" ? "-" : ""}${sort.key}`);
  if (page > 1) params.set("page", String(page));
  return params;
}

/** A change of what is shown goes back to the first page. */
export const changeFilters = (filters: IncomingFilters, change: Partial<IncomingFilters>): IncomingFilters => ({
  ...filters,
  page: 1,
  ...change,
});

export const isFiltered = ({ status, search }: IncomingFilters): boolean => status !== "all" || search !== "";
