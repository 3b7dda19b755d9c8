import { Link, useSearchParams } from "react-router-dom";
import { GapArt } from "@/components/art/gap";
import { LetterArt } from "@/components/art/letter";
import { SentArt } from "@/components/art/sent";
import { PublicPage } from "@/components/pages";
import { FailedState, State } from "@/components/states";
import { Button } from "@/components/ui/button";
import { useUnsubscribe, type Unsubscribed } from "@/features/newsletter/api";
import { t } from "@/messages";
import "@/messages/en/marketing";
import { paths } from "../../paths";

function doneTitle({ list, organization }: Unsubscribed): string {
  if (list !== "donors") return t("marketing.unsubscribedNewsletter");
  return organization ? t("marketing.unsubscribedDonors", { organization }) : t("marketing.unsubscribedDonorsPlain");
}

/** The unsubscribe link of every mail. It needs a press, because mail scanners open links, too. */
export function Component() {
  const [search] = useSearchParams();
  const token = search.get("token") ?? "";
  const unsubscribe = useUnsubscribe();
  const home = (
    <Button asChild variant="primary">
      <Link to={paths.home}>{t("common.returnHome")}</Link>
    </Button>
  );
  return (
    <PublicPage title={t("marketing.unsubscribePage")} className="lone">
      {unsubscribe.isError ? (
        <FailedState heading="h1" error={unsubscribe.error} onRetry={() => unsubscribe.mutate(token)} />
      ) : unsubscribe.data?.unsubscribed ? (
        <State art={SentArt} heading="h1" role="status" title={doneTitle(unsubscribe.data)} actions={home}>
          {t("marketing.unsubscribedBody")}
        </State>
      ) : unsubscribe.data || token === "" ? (
        <State art={GapArt} heading="h1" role="alert" title={t("marketing.newsletterBad")} actions={home}>
          {t("marketing.unsubscribeBadBody")}
        </State>
      ) : (
        <State
          art={LetterArt}
          className="[&_.art]:w-16"
          heading="h1"
          title={t("marketing.unsubscribeHeadline")}
          actions={
            <Button
              variant="primary"
              busy={unsubscribe.isPending}
              busyLabel={t("marketing.unsubscribing")}
              onClick={() => unsubscribe.mutate(token)}
            >
              {t("marketing.unsubscribeButton")}
            </Button>
          }
        >
          {t("marketing.unsubscribeBody")}
        </State>
      )}
    </PublicPage>
  );
}
