import { formatMoney } from "@/lib/format";
import { t } from "@/messages";
import "@/messages/en/incoming";
import { parseDollars } from "@/schemas/amount";

/** The amount as the row keeps it ('$1200', 'Not specified') → as people read it ('$1,200'). */
export function amountWords(amount: string): string {
  const dollars = parseDollars(amount);
  return dollars === null ? t("incoming.notSpecified") : formatMoney(dollars);
}
