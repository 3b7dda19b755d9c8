import { compileMessage } from "@lingui/message-utils/compileMessage";
import { readFileSync } from "node:fs";
import { afterEach, expect, it } from "vitest";
import { t } from ".";
import { setTranslator, type Messages } from "./catalogue";
import "./en/auth";
import "./en/requestForm";
import { chooseLocale, locales, type Locale } from "./locale";
import { poFormat } from "./po-format";
import { formsOf, wordsSql } from "../../scripts/words.mjs";
import { daysOf, translate, translateMore } from "./translate";

const read = async (locale: Locale) => {
  const filename = new URL(`./po/${locale}.po`, import.meta.url).pathname;
  return poFormat.parse(readFileSync(filename, "utf8"), { locale, sourceLocale: "en", filename });
};
const placesOf = (message: string) =>
  [...new Set([...message.matchAll(/\{(\w+)[,}]/g)].map(([, name]) => name))].sort();

afterEach(() => setTranslator(null));

it.each(locales.filter((locale) => locale !== "en"))("%s is whole", async (locale) => {
  const source = await read("en");
  const catalogue = await read(locale);
  // `npm run messages` brings the catalogues up to date with `messages/en`
  expect(Object.keys(catalogue)).toEqual(Object.keys(source));
  const missing = Object.entries(catalogue)
    .filter(([, { translation }]) => !translation)
    .map(([key]) => key);
  expect(missing).toEqual([]);
  for (const [key, { translation }] of Object.entries(catalogue)) {
    if (!translation) continue;
    compileMessage(translation);
    expect([key, ...placesOf(translation)]).toEqual([key, ...placesOf(source[key]?.translation ?? "")]);
  }
});

it("writes dates in Creole, which no engine knows", () => {
  const days = daysOf("ht");
  const write = (options: Intl.DateTimeFormatOptions) =>
    days?.(new Intl.DateTimeFormat("fr-HT", options).format(new Date("2026-08-05T12:00:00Z")));
  expect(write({ weekday: "long", month: "long", day: "numeric" })).toBe("mèkredi 5 out");
  expect(write({ year: "numeric", month: "short", day: "numeric" })).toBe("5 out 2026");
  expect(daysOf("es")).toBeNull();
  // both forms of July that engines write
  expect(days?.("6 juil. 2026, 6 juill. 2026")).toBe("6 jiy. 2026, 6 jiy. 2026");
});

it("writes the first of a month in French as it is read", () => {
  const write = (date: string, options: Intl.DateTimeFormatOptions) =>
    daysOf("fr")?.(new Intl.DateTimeFormat("fr", { timeZone: "UTC", ...options }).format(new Date(date)));
  expect(write("2026-12-01", { weekday: "long", month: "long", day: "numeric" })).toBe("mardi 1er décembre");
  expect(write("2026-12-01T11:01Z", { dateStyle: "medium", timeStyle: "short" })).toMatch(/^1er déc\. 2026\D+11:01$/);
  for (const day of ["11", "21", "31"])
    expect(write(`2026-12-${day}`, { month: "long", day: "numeric" })).toBe(`${day} décembre`);
});

it("the English catalogue says what the lists say (`npm run messages`)", async () => {
  const lists = import.meta.glob<Record<string, Messages>>("./en/*.ts", { eager: true });
  const source = await read("en");
  const stale = Object.values(lists)
    .flatMap((file) => Object.entries(file))
    .flatMap(([feature, messages]) =>
      Object.entries(messages).map(([key, words]) => [`${feature}.${key}`, words] as const),
    )
    .filter(([key, words]) => JSON.stringify(formsOf(source[key]?.translation ?? "")) !== JSON.stringify(words))
    .map(([key]) => key);
  expect(stale).toEqual([]);
});

it("the database's copy of the words is up to date (`npm run messages`)", async () => {
  const kept = readFileSync(new URL("../../../sql/app/words/functions.sql", import.meta.url), "utf8");
  expect(kept).toBe(await wordsSql());
  expect(formsOf("{count, plural, one {a {count} b} other {c {name}}}")).toEqual({
    one: "a {count} b",
    other: "c {name}",
  });
});

it("French never breaks a line before its marks", async () => {
  const loose = Object.values(await read("fr")).flatMap(({ translation }) =>
    translation && /( [?!;:»])|(« )/.test(translation) ? [translation] : [],
  );
  expect(loose).toEqual([]);
});

it("speaks the reader's language, with plurals and places, and English where it is not translated", async () => {
  await translate("es");
  expect(t("requestForm.submit")).toBe("Enviar la solicitud");
  expect(t("common.daysAgo", { count: 1 })).toBe("hace 1 día");
  expect(t("common.daysAgo", { count: 3 })).toBe("hace 3 días");
  expect(t("requestForm.sentMail")).toContain("{email}");
  await translate("ht");
  expect(t("requestForm.answersIn", { count: 2 })).toBe("reponn souvan nan 2 jou");
  // the other pages' words come in parts of their own
  expect(t("auth.login")).toBe("Login");
  await translateMore("ht", "rest");
  expect(t("auth.login")).toBe("Konekte");
  expect(t("requestForm.answersIn", { count: 2 })).toBe("reponn souvan nan 2 jou");
  await translate("en");
  expect(t("requestForm.submit")).toBe("Submit Request");
});

it.each([
  ["?lang=fr", "es", ["ht"], "fr"],
  ["?lang=xx", "es", ["ht"], "es"],
  ["", null, ["de-AT", "ht-HT", "en"], "ht"],
  ["", null, ["es-419"], "es"],
  ["", "klingon", [], "en"],
] as const)("chooses by address %j, what was kept %j and the browser's %j: %s", (search, kept, browser, locale) => {
  expect(chooseLocale({ search, kept, browser })).toBe(locale);
});
