/** The filters of My Requests as they live in the address: reloading, going back and sharing keep them. */

export const statusFilters = ["all", "pending", "processing", "approved", "declined"] as const;
export type StatusFilter = (typeof statusFilters)[number];

export interface RequestFilters {
  search: string;
  status: StatusFilter;
  /** A category's name; '' for all. */
  category: string;
  /** Days as yyyy-mm-dd, both inclusive. */
  from?: string;
  to?: string;
  /** From 1. */
  page: number;
}

export const noFilters: RequestFilters = { search: "", status: "all", category: "", page: 1 };

const day = (text: string | null): string | undefined =>
  text && /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)) ? text : undefined;

export function readFilters(params: URLSearchParams): RequestFilters {
  const status = params.get("status");
  const page = Number(params.get("page"));
  const from = day(params.get("from"));
  const to = day(params.get("to"));
  return {
    search: (params.get("q") ?? "").slice(0, 100),
    status: statusFilters.includes(status as StatusFilter) ? (status as StatusFilter) : "all",
    category: params.get("category") ?? "",
    ...(from ? { from } : {}),
    ...(to && (!from || to >= from) ? { to } : {}),
    page: Number.isInteger(page) && page > 0 ? page : 1,
  };
}

/** Only what differs from 'everything' goes into the address. */
export function writeFilters(filters: RequestFilters): URLSearchParams {
  const params = new URLSearchParams();
  if (filters.search.trim()) params.set("q", filters.search.trim());
  if (filters.status !== "all") params.set("status", filters.status);
  if (filters.category) params.set("category", filters.category);
  if (filters.from) params.set("from", filters.from);
  if (filters.to) params.set("to", filters.to);
  if (filters.page > 1) params.set("page", String(filters.page));
  return params;
}

/** A changed filter begins again at the first page. */
export const changeFilters = (filters: RequestFilters, patch: Partial<RequestFilters>): RequestFilters => ({
  ...filters,
  page: 1,
  ...patch,
});

export const isFiltered = ({ search, status, category, from, to }: RequestFilters): boolean =>
  search.trim() !== "" || status !== "all" || category !== "" || from !== undefined || to !== undefined;

/** The instants a day range covers, in the reader's own time zone: from midnight up to, not with, the next one. */
export function instants({ from, to }: Pick<RequestFilters, "from" | "to">): { gte?: string; lt?: string } {
  const end = to ? new Date(`${to}T00:00:00`) : null;
  end?.setDate(end.getDate() + 1);
  return {
    ...(from ? { gte: new Date(`${from}T00:00:00`).toISOString() } : {}),
    ...(end ? { lt: end.toISOString() } : {}),
  };
}
