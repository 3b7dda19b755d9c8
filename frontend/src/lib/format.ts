/** Dates, money, sizes and counts as people read them. Everything goes through `Intl`. */

import { dayWords, intlLocale } from "@/messages/locale";

/** Created on first use, when the language is known. */
function once<T>(make: (locale: string) => T): () => T {
  let made: T | undefined;
  return () => (made ??= make(intlLocale()));
}

/** Formats a date. No engine knows the months and days of Haitian Creole, so a language may have its own. */
const inDays = (format: Intl.DateTimeFormat, value: string | number | Date): string =>
  dayWords(format.format(toDate(value)));

const shortDate = once((l) => new Intl.DateTimeFormat(l, { year: "numeric", month: "short", day: "numeric" }));
const longDate = once((l) => new Intl.DateTimeFormat(l, { weekday: "long", month: "long", day: "numeric" }));
const dateTime = once((l) => new Intl.DateTimeFormat(l, { dateStyle: "medium", timeStyle: "short" }));
const timeOfDay = once((l) => new Intl.DateTimeFormat(l, { timeStyle: "short" }));
const filterDate = once((l) => new Intl.DateTimeFormat(l, { year: "numeric", month: "short", day: "2-digit" }));
const month = once((l) => new Intl.DateTimeFormat(l, { year: "numeric", month: "long" }));
const weekday = once((l) => new Intl.DateTimeFormat(l, { weekday: "long" }));
const wholeDate = once((l) => new Intl.DateTimeFormat(l, { dateStyle: "full" }));
const wholeMoney = once(
  (l) => new Intl.NumberFormat(l, { style: "currency", currency: "USD", maximumFractionDigits: 0 }),
);
const centMoney = once((l) => new Intl.NumberFormat(l, { style: "currency", currency: "USD" }));
const plainAmount = once(
  (l) => new Intl.NumberFormat(l, { minimumFractionDigits: 0, maximumFractionDigits: 2, useGrouping: false }),
);
const number = once((l) => new Intl.NumberFormat(l));
const oneDecimal = once((l) => new Intl.NumberFormat(l, { minimumFractionDigits: 1, maximumFractionDigits: 1 }));
const percent = once((l) => new Intl.NumberFormat(l, { style: "percent", maximumFractionDigits: 0 }));
const list = once((l) => new Intl.ListFormat(l, { style: "long", type: "conjunction" }));

function toDate(value: string | number | Date): Date {
  // A bare date (yyyy-mm-dd) is a day, not midnight UTC.
  if (typeof value === "string" && /^\d{4}-\d{2}-\d{2}$/.test(value)) return new Date(`${value}T00:00:00`);
  return new Date(value);
}

/** 'Nov 17, 2026' (the spec's en-US short). */
export const formatDate = (value: string | number | Date): string => inDays(shortDate(), value);

/** 'Friday, November 27': for 'by when'. */
export const formatLongDate = (value: string | number | Date): string => inDays(longDate(), value);

/** 'Nov 17, 2026, 3:05 PM'. */
export const formatDateTime = (value: string | number | Date): string => inDays(dateTime(), value);

/** '3:05 PM'. */
export const formatTime = (value: string | number | Date): string => timeOfDay().format(toDate(value));

/** The date filter's 'LLL dd, y': 'Nov 07, 2026'. */
export const formatFilterDate = (value: string | number | Date): string => inDays(filterDate(), value);

/** 'November 2026': above a month of the calendar. */
export const formatMonth = (value: Date): string => inDays(month(), value);

/** 'Friday'. */
export const formatWeekday = (value: Date): string => inDays(weekday(), value);

/** 'Friday, November 27, 2026': a day of the calendar, read aloud. */
export const formatWholeDate = (value: Date): string => inDays(wholeDate(), value);

/** '$250', '$1,250.50'. Amounts are dollars. */
export const formatMoney = (amount: number): string =>
  Number.isInteger(amount) ? wholeMoney().format(amount) : centMoney().format(amount);

/** '1250.5', in French '1250,5': dollars as `schemas/amount.ts` reads them again, for a field. */
export const formatAmount = (dollars: number): string => plainAmount().format(dollars);

export const formatNumber = (value: number): string => number().format(value);

/** 52 → '52%', in French '52 %'. The value is already in percent. */
export const formatPercent = (value: number): string => percent().format(Math.round(value) / 100);

/** 'Harbor Relief Fund, Lakeside Food Bank, and Open Door'. */
export const formatList = (items: readonly string[]): string => list().format(items);

/** A file's size in megabytes, one decimal: '0.4 MB', in French '0,4 Mo'; '<0.1 MB' for what would round to nothing. */
export const formatMegabytes = (bytes: number): string => {
  const megabytes = bytes / 1024 / 1024;
  const tiny = bytes > 0 && megabytes < 0.05;
  return `${tiny ? "<" : ""}${oneDecimal().format(tiny ? 0.1 : megabytes)}${intlLocale() === "fr" ? "\u00a0Mo" : " MB"}`;
};

export type Ago = { unit: "now" } | { unit: "minutes" | "hours" | "days"; count: number };

/** How long ago, in the notification list's steps. */
export function ago(value: string | number | Date, now: Date = new Date()): Ago {
  const minutes = Math.floor((now.getTime() - toDate(value).getTime()) / 60_000);
  if (minutes < 1) return { unit: "now" };
  if (minutes < 60) return { unit: "minutes", count: minutes };
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return { unit: "hours", count: hours };
  return { unit: "days", count: Math.floor(hours / 24) };
}

/** First letter of a full name, uppercased, or 'NA' (the spec's avatar fallback). */
export function avatarFallback(fullName: string | null | undefined): string {
  const first = [...(fullName ?? "").trim()][0];
  return first ? first.toLocaleUpperCase(intlLocale()) : "NA";
}

/** First letters of a name's first and last word ('MD' of 'Marie-Thérèse Désir'), or 'NA'. */
export function initialsOf(fullName: string | null | undefined): string {
  const words = (fullName ?? "").trim().split(/\s+/);
  const last = words.length > 1 ? [...(words.at(-1) ?? "")][0] : undefined;
  return avatarFallback(words[0]) + (last?.toLocaleUpperCase(intlLocale()) ?? "");
}

/** 'Marie-Thérèse' of 'Marie-Thérèse Désir'. */
export function firstName(fullName: string | null | undefined): string {
  return (fullName ?? "").trim().split(/\s+/)[0] ?? "";
}
