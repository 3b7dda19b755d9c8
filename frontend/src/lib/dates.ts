/** The FAQ promises a first answer within 3–5 business days. */
const FIRST_ANSWER_BUSINESS_DAYS = 5;

/** Most people have a decision after 5–7 days. */
const DECISION_DAYS = 7;

/** The business days after which somebody who was promised money may ask. */
const WORD_BUSINESS_DAYS = 5;

function addDays(from: Date, days: number): Date {
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

/** The date of the first answer for a request sent at that time. */
export const firstAnswerBy = (sentAt: string): Date => addBusinessDays(new Date(sentAt), FIRST_ANSWER_BUSINESS_DAYS);

/** The date of the decision. */
export const decisionBy = (sentAt: string): Date => addDays(new Date(sentAt), DECISION_DAYS);

/** The date of news about money promised at that time. */
export const wordBy = (decidedAt: string): Date => addBusinessDays(new Date(decidedAt), WORD_BUSINESS_DAYS);
