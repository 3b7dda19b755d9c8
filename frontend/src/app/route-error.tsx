import { useEffect } from "react";
import { useRouteError } from "react-router-dom";
import { GapArt } from "@/components/art/gap";
import { State } from "@/components/state";
import { Button } from "@/components/ui/button";
import { t } from "@/messages";
import { paths } from "./paths";

/** A screen broke, or its file could not be loaded (a new version went live, the connection dropped). */
export function RouteError() {
  const error = useRouteError();
  useEffect(() => {
    // oxlint-disable-next-line no-console -- the only trace of a fault in the page
    console.error(error);
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
