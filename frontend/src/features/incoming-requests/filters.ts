/** The list's state as the address bar holds it: `?status=pending&q=rent&sort=-date&page=2`. */
import {
  createLoader,
  createParser,
  createSerializer,
  parseAsBoolean,
  parseAsStringLiteral,
  type inferParserType,
} from "nuqs";
import { parseAsPage, parseAsSearch } from "@/lib/url-state";

export const statusFilters = ["all", "pending", "processing", "approved", "declined"] as const;
export type StatusFilter = (typeof statusFilters)[number];

export const sortKeys = ["number", "category", "date", "amount"] as const;
export type SortKey = (typeof sortKeys)[number];

export interface Sort {
  key: SortKey;
  direction: "asc" | "desc";
}

const parseAsSort = createParser<Sort>({
  parse(text) {
    const key = sortKeys.find((known) => known === text.replace(/^-/, ""));
    return key ? { key, direction: text.startsWith("-") ? "desc" : "asc" } : null;
  },
  serialize: ({ key, direction }) => `${direction === "desc" ? "-" : ""}${key}`,
  eq: (one, other) => one.key === other.key && one.direction === other.direction,
});

export const filterParsers = {
  status: parseAsStringLiteral(statusFilters).withDefault("all"),
  search: parseAsSearch,
  /** Those assigned to the reader. */
  mine: parseAsBoolean.withDefault(false),
  /** Null: longest wait first, then the newest. */
  sort: parseAsSort,
  page: parseAsPage,
};
export const filterAddress = { urlKeys: { search: "q" } } as const;

export type IncomingFilters = inferParserType<typeof filterParsers>;

export const PAGE_SIZE = 20;

export const readFilters = createLoader(filterParsers, filterAddress);
export const writeFilters = createSerializer(filterParsers, filterAddress);

/** A changed filter goes back to the first page. */
export const changeFilters = (filters: IncomingFilters, change: Partial<IncomingFilters>): IncomingFilters => ({
  ...filters,
  page: 1,
  ...change,
});

export const isFiltered = ({ status, search, mine }: IncomingFilters): boolean =>
  status !== "all" || search !== "" || mine;
