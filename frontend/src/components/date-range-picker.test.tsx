import { cleanup, render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";
import type { Locale } from "@/messages/locale";

// a visit has one language, which its modules read once
beforeEach(() => vi.resetModules());

async function open(locale: Locale) {
  const { allWords, speakLocale } = await import("@/messages/locale");
  await speakLocale(locale);
  await allWords();
  const { DateRangePicker } = await import("./date-range-picker");
  render(<DateRangePicker value={{ from: "2026-08-03", to: "2026-08-04" }} onChange={() => undefined} />);
  await userEvent.click(screen.getByRole("button"));
  return within(screen.getAllByRole("grid")[0] as HTMLElement);
}

it.each([
  ["en", "August 2026", "SuMoTuWeThFrSa", "Monday, August 3, 2026, selected", "Go to the next month"],
  ["es", "agosto de 2026", "dolumamijuvisá", "lunes, 3 de agosto de 2026, elegido", "Ir al mes siguiente"],
  ["fr", "août 2026", "lumamejevesadi", "lundi 3 août 2026, choisi", "Aller au mois suivant"],
  ["ht", "out 2026", "lemamèjevasadi", "lendi 3 out 2026, chwazi", "Ale nan mwa apre a"],
] as const)("shows the calendar in the reader's language: %s", async (locale, month, weekdays, day, next) => {
  const grid = await open(locale);
  expect(screen.getAllByRole("grid")[0]).toHaveAccessibleName(month);
  expect(screen.getByText(month)).toBeVisible();
  expect([...document.querySelectorAll("thead")][0]?.textContent).toBe(weekdays);
  expect(grid.getByRole("button", { name: day })).toBeVisible();
  expect(screen.getByRole("button", { name: next })).toBeVisible();
  expect(document.querySelector(".cal")).toHaveAttribute("lang", locale);
  cleanup();
});

it("marks today in the reader's language", async () => {
  vi.setSystemTime("2026-08-01T12:00:00Z");
  const grid = await open("fr");
  expect(grid.getByRole("button", { name: "Aujourd’hui, samedi 1er août 2026" })).toBeVisible();
  vi.useRealTimers();
});
