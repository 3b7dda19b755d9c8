/** Light, dark or the system's choice. Kept in localStorage; `public/theme.js` applies it before the first paint. */
import { useSyncExternalStore } from "react";
import { readStored, removeStored, store } from "./stored";

export type Theme = "light" | "dark" | "system";

const KEY = "theme";
const listeners = new Set<() => void>();

function read(): Theme {
  const stored = readStored("browser", KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

export function setTheme(theme: Theme): void {
  if (theme === "system") removeStored("browser", KEY);
  else store("browser", KEY, theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  for (const notify of listeners) notify();
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, read, read);
}
