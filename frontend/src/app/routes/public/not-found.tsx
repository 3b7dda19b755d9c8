import { Link } from "react-router-dom";
import { GapArt } from "@/components/art/gap";
import { PublicPage } from "@/components/pages";
import { State } from "@/components/states";
import { Button } from "@/components/ui/button";
import { t } from "@/messages";
import { paths } from "../../paths";

/** The gap in the bridge. Both buttons lead home, as section 2 says. */
export function Component() {
  return (
    <PublicPage title={t("common.notFoundTitle")} className="lone">
      <State
        art={GapArt}
        heading="h1"
        title={t("common.notFoundTitle")}
        actions={
          <>
            <Button asChild variant="primary">
              <Link to={paths.home}>{t("common.returnHome")}</Link>
            </Button>
            <Button asChild>
              <Link to={paths.home}>{t("common.goBack")}</Link>
            </Button>
          </>
        }
      >
        {t("common.notFoundBody")}
      </State>
    </PublicPage>
  );
}
