import { useEffect, useState, type ComponentProps } from "react";
import { SearchInput } from "./search-input";

export interface SearchFieldProps extends Omit<ComponentProps<typeof SearchInput>, "value" | "onChange"> {
  /** What is searched for, as the address bar holds it. */
  value: string;
  /** Puts the trimmed words into the address. */
  onSearch: (words: string) => void;
  /** How long typing rests before it is a search, ms. */
  restMs?: number;
}

/**
 * A search that lives in the address. What is typed is the field's own until then: the address follows some moments later,
 * and a letter typed meanwhile must not be taken away.
 */
export function SearchField({ value, onSearch, restMs = 300, ...props }: SearchFieldProps) {
  const [typed, setTyped] = useState(value);
  const [known, setKnown] = useState(value);
  /** What this field asked for and the address does not say yet. */
  const [asked, setAsked] = useState<readonly string[]>([]);
  // The address changed without typing (Back, a tab, 'Clear Filters'): follow it.
  if (value !== known) {
    setKnown(value);
    const own = asked.lastIndexOf(value);
    setAsked(own < 0 ? [] : asked.slice(own + 1));
    if (own < 0) setTyped(value);
  }
  useEffect(() => {
    const words = typed.trim();
    if (words === (asked.at(-1) ?? value)) return;
    const rest = setTimeout(() => {
      setAsked([...asked, words]);
      onSearch(words);
    }, restMs);
    return () => clearTimeout(rest);
  });
  return <SearchInput value={typed} maxLength={100} onChange={(event) => setTyped(event.target.value)} {...props} />;
}
