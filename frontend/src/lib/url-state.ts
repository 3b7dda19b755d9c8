/**
 * State kept in the URL: the tab, filters, the page of a list, an open dialog. Reloading, going back and sharing keep
 * it; invalid values mean the default, and the default is not written. (Parameters of links, such as `next` or a token,
 * are not state and are read with `useSearchParams`.)
 */
import { createParser, parseAsStringLiteral, useQueryState, type Options } from "nuqs";

/** A change replaces the history entry and keeps the scroll position. */
export const replacing = { history: "replace", scroll: false } as const satisfies Options;
/** Going back shows the previous state. */
export const pushing = { history: "push", scroll: false } as const satisfies Options;

/** One of `tabs`, by default the first; `?tab=`. */
export function useTab<Tab extends string>(tabs: readonly [Tab, ...Tab[]]) {
  const [tab, setTab] = useQueryState(
    "tab",
    parseAsStringLiteral<Tab>(tabs).withDefault(tabs[0]).withOptions(replacing),
  );
  return [tab, (next: string) => void setTab(tabs.find((known) => known === next) ?? null)] as const;
}

/** Words that are searched for; '' for none. */
export const parseAsSearch = createParser<string>({
  parse: (text) => text.trim().slice(0, 100),
  serialize: (words) => words.trim(),
}).withDefault("");

/** A page of a list, from 1. */
export const parseAsPage = createParser<number>({
  parse: (text) => (/^[1-9]\d{0,4}$/.test(text) ? Number(text) : null),
  serialize: String,
}).withDefault(1);

/** A day as yyyy-mm-dd. */
export const parseAsDay = createParser<string>({
  parse: (text) => (/^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)) ? text : null),
  serialize: String,
});

/** A parameter without a value: `?donate`. */
export const parseAsMark = createParser<true>({ parse: () => true, serialize: () => "" });
