/** The text of a notification in the reader's language. */
import { formatDate, formatMoney } from "@/lib/format";
import { localName } from "@/lib/local-name";
import { translated, type Params } from "@/messages/catalogue";
import type { Notification } from "./api";

/** Formats the parameters. */
function readable(params: unknown): Params {
  if (typeof params !== "object" || params === null) return {};
  return Object.fromEntries(
    Object.entries(params).flatMap(([name, value]) => {
      if (name === "amount" && typeof value === "number") return [[name, formatMoney(value)]];
      if (name === "date" && typeof value === "string") return [[name, formatDate(value)]];
      if (name === "category" && typeof value === "string") return [[name, localName(value)]];
      // who gave or wrote without a name
      if (name === "donor" && value === "") return [[name, translated("notification.aDonor") ?? value]];
      return typeof value === "string" || typeof value === "number" ? [[name, value]] : [];
    }),
  );
}

/** The original English text, also for notifications without a known code. */
export function notificationWords({
  title,
  message,
  code,
  params,
}: Pick<Notification, "title" | "message" | "code" | "params">): { title: string; message: string } {
  if (code === null) return { title, message };
  const particulars = readable(params);
  return {
    title: translated(`notification.${code}.title`, particulars) ?? title,
    message: translated(`notification.${code}.body`, particulars) ?? message,
  };
}
