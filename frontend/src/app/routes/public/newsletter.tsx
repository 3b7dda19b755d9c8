import { useEffect, useRef } from "react";
import { Link, useSearchParams } from "react-router-dom";
import { GapArt } from "@/components/art/gap";
import { LoadingArt } from "@/components/art/loading";
import { SentArt } from "@/components/art/sent";
import { PublicPage } from "@/components/pages";
import { FailedState, State } from "@/components/states";
import { Button } from "@/components/ui/button";
import { useConfirmNewsletter } from "@/features/newsletter/api";
import { t } from "@/messages";
import "@/messages/en/marketing";
import { paths } from "../../paths";

/** The confirmation mail's link. */
export function Component() {
  const [search] = useSearchParams();
  const token = search.get("token") ?? "";
  const confirm = useConfirmNewsletter();
  const started = useRef(false);
  const { mutate } = confirm;
  useEffect(() => {
    if (started.current || token === "") return;
    started.current = true;
    mutate(token);
  }, [mutate, token]);
  const toBlog = (
    <Button asChild variant="primary">
      <Link to={paths.blog}>{t("marketing.toBlog")}</Link>
    </Button>
  );
  return (
    <PublicPage title={t("marketing.newsletterPage")} className="lone">
      {confirm.isError ? (
        <FailedState heading="h1" error={confirm.error} onRetry={() => mutate(token)} />
      ) : confirm.data === undefined && token !== "" ? (
        <State art={LoadingArt} heading="h1" role="status" title={t("marketing.newsletterConfirming")} />
      ) : confirm.data ? (
        <State art={SentArt} heading="h1" role="status" title={t("marketing.newsletterConfirmed")} actions={toBlog}>
          {t("marketing.newsletterConfirmedBody")}
        </State>
      ) : (
        <State art={GapArt} heading="h1" role="alert" title={t("marketing.newsletterBad")} actions={toBlog}>
          {t("marketing.newsletterBadBody")}
        </State>
      )}
    </PublicPage>
  );
}
