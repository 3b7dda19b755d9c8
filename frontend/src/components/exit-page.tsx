import { LogOut } from "lucide-react";
import { type MouseEvent, useLayoutEffect } from "react";
import { forgetShell } from "@/lib/offline-shell";
import { forgetEverythingTyped } from "@/lib/stored";
import { t } from "@/messages";
import { Button } from "./ui/button";

/** Where 'Exit this page' leads: harmless, and reachable from anywhere. */
export const EXIT_TARGET = "https://www.weather.gov/";

function exit() {
  forgetEverythingTyped();
  forgetShell();
  // Clears the screen at once, then the address and the history entry.
  document.body.replaceChildren();
  // The back button may bring this page back as it was, empty and with what was typed in its memory: it begins anew.
  window.addEventListener("pageshow", ({ persisted }) => {
    if (persisted) window.location.reload();
  });
  window.location.replace(EXIT_TARGET);
}

function leave(event: MouseEvent) {
  event.preventDefault();
  exit();
}

/** For people who may be observed: leaves the site at once. Pressing Shift three times does the same. */
export function ExitPage() {
  // Before the first paint, not some moments later.
  useLayoutEffect(() => {
    let presses: number[] = [];
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Shift" || event.repeat) {
        if (!event.repeat) presses = [];
        return;
      }
      presses = [...presses.filter((at) => event.timeStamp - at < 2_000), event.timeStamp];
      if (presses.length >= 3) exit();
    };
    const { dataset } = document.documentElement;
    window.addEventListener("keydown", onKey);
    dataset.exit = "";
    return () => {
      window.removeEventListener("keydown", onKey);
      delete dataset.exit;
    };
  }, []);
  return (
    <Button asChild variant="dangerQuiet" className="no-print exit-page">
      {/* A link, so that it leads away before the app's code has come, too. */}
      <a href={EXIT_TARGET} rel="noreferrer" title={t("common.exitPageHint")} onClick={leave}>
        <LogOut aria-hidden="true" />
        {t("common.exitPage")}
      </a>
    </Button>
  );
}
