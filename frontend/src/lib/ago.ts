import { t } from "@/messages";
import { ago } from "./format";

/** 'Just now', '5 minutes ago', '4 days ago'. */
export function agoWords(value: string | number | Date, now?: Date): string {
  const passed = ago(value, now);
  switch (passed.unit) {
    case "now":
      return t("common.justNow");
    case "minutes":
      return t("common.minutesAgo", { count: passed.count });
    case "hours":
      return t("common.hoursAgo", { count: passed.count });
    case "days":
      return t("common.daysAgo", { count: passed.count });
  }
}
