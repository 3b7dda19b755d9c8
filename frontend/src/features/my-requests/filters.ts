/** The filters of My Requests in the URL, kept by reloading, going back and sharing. */

import {
  createLoader,
  createSerializer,
  parseAsString,
  parseAsStringLiteral,
  useQueryStates,
  type inferParserType,
} from "nuqs";
import { parseAsDay, parseAsPage, parseAsSearch } from "@/lib/url-state";

export const statusFilters = ["all", "pending", "processing", "approved", "declined"] as const;
export type StatusFilter = (typeof statusFilters)[number];

const parsers = {
  search: parseAsSearch,
  status: parseAsStringLiteral(statusFilters).withDefault("all"),
  /** A category's name; '' for all. */
  category: parseAsString.withDefault(""),
  /** Days, both inclusive. */
  from: parseAsDay,
  to: parseAsDay,
  page: parseAsPage,
};
const address = { urlKeys: { search: "q" } } as const;

export type RequestFilters = inferParserType<typeof parsers>;

export const noFilters: RequestFilters = { search: "", status: "all", category: "", from: null, to: null, page: 1 };

/** Drops an end before the beginning. */
const inOrder = (filters: RequestFilters): RequestFilters =>
  filters.from !== null && filters.to !== null && filters.to < filters.from ? { ...filters, to: null } : filters;

const load = createLoader(parsers, address);
export const readFilters = (params: URLSearchParams): RequestFilters => inOrder(load(params));
export const writeFilters = createSerializer(parsers, address);

/** The filters of the address, and how to set them. */
export function useRequestFilters() {
  const [filters, setFilters] = useQueryStates(parsers, address);
  return [inOrder(filters), setFilters] as const;
}

/** A changed filter goes back to the first page. */
export const changeFilters = (filters: RequestFilters, patch: Partial<RequestFilters>): RequestFilters => ({
  ...filters,
  page: 1,
  ...patch,
});

export const isFiltered = ({ search, status, category, from, to }: RequestFilters): boolean =>
  search.trim() !== "" || status !== "all" || category !== "" || from !== null || to !== null;

/** The instants a day range covers, in the reader's own time zone: from midnight up to, not with, the next one. */
export function instants({ from, to }: Partial<Pick<RequestFilters, "from" | "to">>): { gte?: string; lt?: string } {
  const end = to ? new Date(`${to}T00:00:00`) : null;
  end?.setDate(end.getDate() + 1);
  return {
    ...(from ? { gte: new Date(`${from}T00:00:00`).toISOString() } : {}),
    ...(end ? { lt: end.toISOString() } : {}),
  };
}
