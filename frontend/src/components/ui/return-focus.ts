import { useRef } from "react";

/**
 * Where the keyboard goes on when a dialog closes: to what opened it. Radix returns to its own trigger only, and ours are
 * opened by buttons elsewhere. Is that button gone meanwhile (a menu's item, a deleted row), the page itself takes over.
 */
export function useReturnFocus() {
  const opener = useRef<Element | null>(null);
  return {
    /** Still before the focus moves into the dialog. */
    onOpenAutoFocus: () => {
      opener.current = document.activeElement;
    },
    onCloseAutoFocus: (event: Event) => {
      const known = opener.current;
      const target =
        known instanceof HTMLElement && known.isConnected && known !== document.body
          ? known
          : document.querySelector<HTMLElement>("#main");
      if (!target) return;
      event.preventDefault();
      target.focus({ preventScroll: true });
    },
  };
}
