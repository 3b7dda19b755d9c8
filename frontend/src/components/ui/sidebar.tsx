/** The sidebar's fold: kept in a cookie for 7 days, toggled by Ctrl/Cmd+B (section 9). */
import { useCallback, useLayoutEffect, useState } from "react";

const COOKIE = "sidebar_state";
const COOKIE_MAX_AGE_S = 7 * 24 * 60 * 60;

export function readFolded(cookie: string): boolean {
  return /(?:^|;\s*)sidebar_state=false(?:;|$)/.test(cookie);
}

/** `[folded, toggle]`; the cookie holds `true` for open, `false` for folded. */
export function useSidebarFold(): [folded: boolean, toggle: () => void] {
  const [folded, setFolded] = useState(() => readFolded(document.cookie));
  const toggle = useCallback(() => {
    setFolded((before) => {
      document.cookie = `${COOKIE}=${before}; path=/; max-age=${COOKIE_MAX_AGE_S}; samesite=lax`;
      return !before;
    });
  }, []);
  // With the sidebar itself, not some moments after it is seen.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() === "b" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey) {
        event.preventDefault();
        toggle();
      }
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [toggle]);
  return [folded, toggle];
}
