/** Money as people type it: dollars above 0 with at most two decimals, below ten million (as the database checks it). */
import { z } from "zod";

/** '250', '250.5', '1,200', '$250' → dollars; null for anything else. */
export function parseAmount(text: string): number | null {
  const plain = text
    .trim()
    .replace(/^\$\s*/, "")
    .replace(/,(?=\d{3}(\D|$))/g, "");
  if (!/^\d{1,7}(\.\d{1,2})?$/.test(plain)) return null;
  const value = Number(plain);
  return value > 0 ? value : null;
}

/** A required amount, kept as the text that was typed. */
export const amountText = (messages: { required: string; invalid: string }) =>
  z
    .string()
    .trim()
    .min(1, messages.required)
    .refine((text) => text === "" || parseAmount(text) !== null, messages.invalid);
