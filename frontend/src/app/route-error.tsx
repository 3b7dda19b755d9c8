import { useEffect } from "react";
import { useRouteError } from "react-router-dom";
import { GapArt } from "@/components/art/gap";
import { State } from "@/components/state";
import { Button } from "@/components/ui/button";
import { readStored, store } from "@/lib/stored";
import { t } from "@/messages";
import { paths } from "./paths";

const RELOADED = "reloaded-at";
const ONCE_IN_MS = 60_000;

/** Whether a screen's file could not be loaded; the words are Chromium's, Firefox's and Safari's. */
const isMissingFile = (error: unknown) =>
  error instanceof TypeError && /dynamically imported module|Importing a module script failed/i.test(error.message);

/** Whether to reload the page, which loads the current version's files: not repeatedly, and not offline. */
function mayReload(): boolean {
  if (!navigator.onLine) return false;
  if (Date.now() - Number(readStored("tab", RELOADED)) < ONCE_IN_MS) return false;
  return store("tab", RELOADED, String(Date.now()));
}

/**
 * A screen crashed, or its file could not be loaded (a new version went live, the connection dropped). In the second
 * case the page first reloads automatically.
 */
export function RouteError() {
  const error = useRouteError();
  useEffect(() => {
    // oxlint-disable-next-line no-console -- the only trace of a fault in the page
    console.error(error);
    if (isMissingFile(error) && mayReload()) window.location.reload();
  }, [error]);
  return (
    <main id="main" className="grid min-h-[60vh] flex-1 place-items-center">
      <State
        art={GapArt}
        role="alert"
        heading="h1"
        title={t("common.crashedTitle")}
        actions={
          <>
            <Button variant="primary" onClick={() => window.location.reload()}>
              {t("common.reload")}
            </Button>
            <Button asChild>
              <a href={paths.home}>{t("common.returnHome")}</a>
            </Button>
          </>
        }
      >
        {t("common.crashedBody")}
      </State>
    </main>
  );
}
