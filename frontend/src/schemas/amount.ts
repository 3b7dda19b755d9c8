/** Money: typed text and the database's text. The only place that parses amounts. */
import { z } from "zod";
import { t } from "@/messages";
import "@/messages/en/validation";

/** The database's maximum. */
export const MOST_DOLLARS = 9_999_999.99;

/**
 * Whole dollars and cents as English, French, Haitian and Spanish speakers type them. `\s` includes the spaces that do not
 * break. A point or comma before three digits groups thousands; before one or two digits it begins the cents. '1,200' is
 * 1200 in each language, as it always was. '1.200' alone is refused, because in English it is most likely a slip.
 */
const WAYS = [
  /^(\d{1,12})(?:[.,](\d{1,2}))?$/,
  /^(\d{1,3}(?:\s\d{3})+)(?:[.,](\d{1,2}))?$/,
  /^(\d{1,3}(?:,\d{3})+)(?:\.(\d{1,2}))?$/,
  /^(\d{1,3}(?:\.\d{3})+),(\d{1,2})$/,
  /^(\d{1,3}(?:\.\d{3}){2,})$/,
];

/**
 * '250', '250.5', '99,50', '1,200', '1 200,50', '1.200,50', '$250', '250 $', '0' → dollars; null for invalid amounts ('',
 * 'Not specified', '1.234', '-5').
 */
export function parseDollars(text: string): number | null {
  // the sign stands before the number in English and Spanish, behind it in French and Creole
  const plain = text.trim().replace(/^\$\s*|\s*\$$/, "");
  for (const way of WAYS) {
    const found = way.exec(plain);
    if (found) return Number(`${found[1]?.replace(/\D/g, "")}.${found[2] ?? "0"}`);
  }
  return null;
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
