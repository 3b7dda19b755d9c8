/** What a notification says, in the reader's language. */
import { formatMoney } from "@/lib/format";
import { localName } from "@/lib/local-name";
import { translated, type Params } from "@/messages/catalogue";
import type { Notification } from "./api";

/** The particulars as people read them. */
function readable(params: unknown): Params {
  if (typeof params !== "object" || params === null) return {};
  return Object.fromEntries(
    Object.entries(params).flatMap(([name, value]) => {
      if (name === "amount" && typeof value === "number") return [[name, formatMoney(value)]];
      if (name === "category" && typeof value === "string") return [[name, localName(value)]];
      return typeof value === "string" || typeof value === "number" ? [[name, value]] : [];
    }),
  );
}

/** In English as it was written; so too what has no code, or one that this app does not know. */
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
