import { useEffect } from "react";
import { t } from "@/messages";

/** Names the page: the browser's title, and what a screen reader hears after navigation. */
export function usePageTitle(page: string | null): void {
  useEffect(() => {
    document.title = page ? t("common.pageTitle", { page }) : t("common.siteName");
  }, [page]);
}
