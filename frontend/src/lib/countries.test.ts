import { afterEach, expect, it } from "vitest";
import { speakLocale } from "@/messages/locale";
import { countryOptions } from "./countries";

const label = (value: string) => countryOptions().find((country) => country.value === value)?.label;

afterEach(() => speakLocale("en"));

it("stores countries by their English names and shows them in the reader's language", async () => {
  expect(label("United States")).toBe("United States");
  await speakLocale("fr");
  expect(label("United States")).toBe("États-Unis");
});

it("has everyday names in Creole, which no engine knows, in their place of the list", async () => {
  await speakLocale("ht");
  expect([label("United States"), label("Haiti")]).toEqual(["Etazini", "Ayiti"]);
  const shown = countryOptions().map((country) => country.label);
  expect(shown.indexOf("Etazini")).toBeGreaterThan(shown.indexOf("Espagne"));
  expect(shown.indexOf("Etazini")).toBeLessThan(shown.indexOf("Finlande"));
});
