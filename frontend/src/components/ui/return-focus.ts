import { useRef, type FocusEvent } from "react";

/**
 * Returns the focus to the opener when a dialog closes. Radix only returns to its own trigger, and our dialogs are
 * opened by buttons elsewhere. If that button is gone (a menu's item, a deleted row), the page takes the focus.
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

/** Radix leads the focus round in a dialog without scrolling: the first control would have it out of sight. */
export const keepFocusInSight = (event: FocusEvent) =>
  (event.target as Element).scrollIntoView({ block: "nearest", inline: "nearest" });
