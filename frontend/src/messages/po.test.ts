import { compileMessage } from "@lingui/message-utils/compileMessage";
import { readFileSync } from "node:fs";
import { afterEach, expect, it } from "vitest";
import { t } from ".";
import { setTranslator } from "./catalogue";
import "./en/requestForm";
import { chooseLocale, locales, type Locale } from "./locale";
import { poFormat } from "./po-format";
import { translate } from "./translate";

/** What a person without an account meets on the way from the first question to the answer is whole in every language. */
const WHOLE = ["common", "errors", "validation", "files", "addressCode", "lookup", "openRequest", "requestForm"];

const read = async (locale: Locale) => {
  const filename = new URL(`./po/${locale}.po`, import.meta.url).pathname;
  return poFormat.parse(readFileSync(filename, "utf8"), { locale, sourceLocale: "en", filename });
};
const placesOf = (message: string) =>
  [...new Set([...message.matchAll(/\{(\w+)[,}]/g)].map(([, name]) => name))].sort();

afterEach(() => setTranslator(null));

it.each(locales.filter((locale) => locale !== "en"))("%s says all that the journey of a guest says", async (locale) => {
  const source = await read("en");
  const catalogue = await read(locale);
  // `npm run messages` brings the catalogues up to date with `messages/en`
  expect(Object.keys(catalogue)).toEqual(Object.keys(source));
  const missing = Object.entries(catalogue)
    .filter(([key, { translation }]) => WHOLE.includes(key.split(".")[0] ?? "") && !translation)
    .map(([key]) => key);
  expect(missing).toEqual([]);
  for (const [key, { translation }] of Object.entries(catalogue)) {
    if (!translation) continue;
    compileMessage(translation);
    expect([key, ...placesOf(translation)]).toEqual([key, ...placesOf(source[key]?.translation ?? "")]);
  }
});

it("speaks the reader's language, with plurals and places, and English where it is not translated", async () => {
  await translate("es");
  expect(t("requestForm.submit")).toBe("Enviar la solicitud");
  expect(t("common.daysAgo", { count: 1 })).toBe("hace 1 día");
  expect(t("common.daysAgo", { count: 3 })).toBe("hace 3 días");
  expect(t("requestForm.sentMail")).toContain("{email}");
  await translate("ht");
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
