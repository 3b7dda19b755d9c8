/**
 * Whether texts can reach a typed phone number: with a country code, or a US number without. Same rule as in the
 * database (`private.sms_number`).
 */
export function canGetTexts(typed: string): boolean {
  const number = typed.replace(/[\s()./-]/g, "");
  return /^(?:\+|00)[1-9]\d{7,14}$/.test(number) || /^1?[2-9]\d{9}$/.test(number);
}
