/** The FAQ promises a first answer within 3–5 business days. */
export const FIRST_ANSWER_BUSINESS_DAYS = 5;

/** The day `days` business days (Monday to Friday) after `from`. */
export function addBusinessDays(from: Date, days: number): Date {
  const date = new Date(from);
  for (let left = days; left > 0;) {
    date.setDate(date.getDate() + 1);
    if (date.getDay() !== 0 && date.getDay() !== 6) left -= 1;
  }
  return date;
}
