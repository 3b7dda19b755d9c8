/**
 * Whether texts can reach a phone number as it was typed: with a country code, or one of the United States without. The database
 * says the same (`private.sms_number`).
 */
export function canGetTexts(typed: string): boolean {
  const number = typed.replace(/[\s()./-]/g, "");
  return /^(?:\+|00)[1-9]\d{7,14}$/.test(number) || /^1?[2-9]\d{9}$/.test(number);
}
