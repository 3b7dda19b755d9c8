import { formatMoney, parseAmountText } from "@/lib/format";
import { t } from "@/messages";
import "@/messages/en/incoming";

/** The amount as the row keeps it ('$1200', 'Not specified') → as people read it ('$1,200'). */
export const amountWords = (amount: string): string =>
  /\d/.test(amount) ? formatMoney(parseAmountText(amount)) : t("incoming.notSpecified");
