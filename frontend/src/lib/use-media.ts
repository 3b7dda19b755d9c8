import { useCallback, useSyncExternalStore } from "react";

/** Below this width tables become cards and the sidebar a tab bar (section 9). */
export const PHONE = "(max-width: 47.99rem)";

export function useMedia(query: string): boolean {
  const subscribe = useCallback(
    (listener: () => void) => {
      const media = window.matchMedia(query);
      media.addEventListener("change", listener);
      return () => media.removeEventListener("change", listener);
    },
    [query],
  );
  return useSyncExternalStore(subscribe, () => window.matchMedia(query).matches);
}
