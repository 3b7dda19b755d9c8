import { useEffect, useSyncExternalStore } from "react";
import { t } from "@/messages";

/** The last part of the breadcrumb; null between two pages. */
let crumb: string | null = null;
const listeners = new Set<() => void>();

function setCrumb(name: string | null): void {
  crumb = name;
  for (const notify of listeners) notify();
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Names the page: the browser's title, what a screen reader hears after navigation, and (shorter, if given) the breadcrumb. */
export function usePageTitle(page: string | null, short?: string): void {
  useEffect(() => {
    document.title = page ? t("common.pageTitle", { page }) : t("common.siteName");
    setCrumb(short ?? page);
    return () => setCrumb(null);
  }, [page, short]);
}

export const usePageName = (): string | null => useSyncExternalStore(subscribe, () => crumb);
