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
 * A search kept in the URL. The field has its own value while typing; the URL follows after a moment, and must not
 * overwrite letters typed meanwhile.
 */
export function SearchField({ value, onSearch, restMs = 300, ...props }: SearchFieldProps) {
  const [typed, setTyped] = useState(value);
  const [known, setKnown] = useState(value);
  /** The search that the URL does not show yet. */
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
