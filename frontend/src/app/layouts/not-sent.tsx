import { useState } from "react";
import { Link, useLocation } from "react-router-dom";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { forgetUnsent, unsentRequest } from "@/lib/stored";
import { t } from "@/messages";
import "@/messages/en/notSent";
import { paths } from "../paths";

/** The form says it itself. */
const forms: ReadonlySet<string> = new Set([paths.submitRequest, paths.requestSubmission]);

/** Above a public page: a guest's request that was to be sent is not. Nobody should believe that it is on its way. */
export default function NotSent() {
  const { pathname } = useLocation();
  const [closed, setClosed] = useState(false);
  const what = unsentRequest();
  if (what === null || closed || (what !== "deleted" && forms.has(pathname))) return null;
  return (
    <div className="wrap no-print">
      {what !== "deleted" ? (
        <Notice tone="warn" role="status" className="my-4" title={t("notSent.waits")}>
          <p>{t(what === "waits" ? "notSent.waitsBody" : "notSent.stoppedBody")}</p>
          <Button asChild className="mt-3">
            <Link to={`${paths.submitRequest}?step=review`}>{t("notSent.open")}</Link>
          </Button>
        </Notice>
      ) : (
        <Notice tone="warn" role="status" className="my-4" title={t("notSent.deleted")}>
          <p>{t("notSent.deletedBody")}</p>
          <div className="actions mt-3">
            {forms.has(pathname) ? null : (
              <Button asChild>
                <Link to={paths.submitRequest}>{t("notSent.again")}</Link>
              </Button>
            )}
            <Button
              variant="quiet"
              onClick={() => {
                forgetUnsent();
                setClosed(true);
              }}
            >
              {t("common.close")}
            </Button>
          </div>
        </Notice>
      )}
    </div>
  );
}
