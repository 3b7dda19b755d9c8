/** Money: typed text and the database's text. The only place that parses amounts. */
import { z } from "zod";
import { t } from "@/messages";
import "@/messages/en/validation";

/** The database's maximum. */
export const MOST_DOLLARS = 9_999_999.99;

/** '250', '250.5', '1,200', '$250', '0' → dollars; null for invalid amounts ('', 'Not specified', '1.234', '-5'). */
export function parseDollars(text: string): number | null {
  const plain = /^\$?\s*(\d{1,12}|\d{1,3}(?:,\d{3})+)(\.\d{1,2})?$/.exec(text.trim());
  return plain ? Number(`${plain[1]?.replaceAll(",", "")}${plain[2] ?? ""}`) : null;
}

/** Dollars above 0 and below ten million, as the database checks it; null for anything else. */
export function parseAmount(text: string): number | null {
  const dollars = parseDollars(text);
  return dollars !== null && dollars > 0 && dollars <= MOST_DOLLARS ? dollars : null;
}

/** A required amount, kept as the text that was typed. */
export const amountText = (messages: { required: string; invalid: string }) =>
  z
    .string()
    .trim()
    .min(1, messages.required)
    .refine((text) => text === "" || parseAmount(text) !== null, messages.invalid);

/** An amount that may be left out: then the text is empty. */
export const optionalAmount = () =>
  z
    .string()
    .trim()
    .refine((text) => text === "" || parseDollars(text) !== null, t("validation.amount"));
