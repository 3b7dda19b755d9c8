/** The FAQ promises a first answer within 3–5 business days. */
export const FIRST_ANSWER_BUSINESS_DAYS = 5;

/** Most people have a decision after 5–7 days. */
export const DECISION_DAYS = 7;

/** Who was promised money and heard nothing may ask after as many business days. */
export const WORD_BUSINESS_DAYS = 5;

export function addDays(from: Date, days: number): Date {
  const date = new Date(from);
  date.setDate(date.getDate() + days);
  return date;
}

/** Whether a day is over: 'by Friday' holds until Friday ends. */
export const isOver = (day: Date, now: Date): boolean => new Date(day).setHours(24, 0, 0, 0) <= now.getTime();

/** The day `days` business days (Monday to Friday) after `from`. */
export function addBusinessDays(from: Date, days: number): Date {
  const date = new Date(from);
  for (let left = days; left > 0;) {
    date.setDate(date.getDate() + 1);
    if (date.getDay() !== 0 && date.getDay() !== 6) left -= 1;
  }
  return date;
}
