/** The FAQ promises a first answer within 3–5 business days. */
const FIRST_ANSWER_BUSINESS_DAYS = 5;

/** Most people have a decision after 5–7 days. */
const DECISION_DAYS = 7;

/** Who was promised money and heard nothing may ask after as many business days. */
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

/** By when a request that was sent then has a first answer. */
export const firstAnswerBy = (sentAt: string): Date => addBusinessDays(new Date(sentAt), FIRST_ANSWER_BUSINESS_DAYS);

/** By when it has a decision. */
export const decisionBy = (sentAt: string): Date => addDays(new Date(sentAt), DECISION_DAYS);

/** By when there is word about money that was promised then. */
export const wordBy = (decidedAt: string): Date => addBusinessDays(new Date(decidedAt), WORD_BUSINESS_DAYS);
