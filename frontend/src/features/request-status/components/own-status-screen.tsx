import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "react-router-dom";
import { paths } from "@/app/paths";
import { GapArt } from "@/components/art/gap";
import { ExitPage } from "@/components/exit-page";
import { BackLink, DashboardPage } from "@/components/pages";
import { FailedState, ListSkeleton, State } from "@/components/states";
import { Button } from "@/components/ui/button";
import { isNotFound } from "@/lib/errors";
import { useUser } from "@/lib/session";
import { t } from "@/messages";
import "@/messages/en/lookup";
import "@/styles/requests.css";
import { ownStatusQuery } from "../api";
import { ResultCard } from "./result-card";

/** /request-status/{id}: the owner's short look at one request. */
export function OwnStatusScreen() {
  const { id = "" } = useParams();
  const user = useUser();
  const query = useQuery(ownStatusQuery(user.id, id));
  return (
    <DashboardPage
      title={t("lookup.title")}
      lead={t("lookup.ownLead")}
      back={
        <div className="wiz-top max-w-(--width-form)">
          <BackLink to={paths.myRequests} />
          <ExitPage />
        </div>
      }
    >
      <div className="max-w-(--width-form)">
        {query.data ? (
          <>
            <ResultCard found={query.data} />
            <div className="actions mt-6">
              <Button asChild variant="primary">
                <Link to={paths.requestDetails(query.data.id)}>{t("lookup.wholeRequest")}</Link>
              </Button>
              <Button asChild>
                <Link to={paths.requestStatusLookup}>{t("lookup.another")}</Link>
              </Button>
            </div>
          </>
        ) : query.isPending ? (
          <ListSkeleton rows={3} label={t("lookup.loading")} />
        ) : isNotFound(query.error) ? (
          <State
            art={GapArt}
            role="alert"
            title={t("lookup.notFoundTitle")}
            actions={
              <Button asChild variant="primary">
                <Link to={paths.requestStatusLookup}>{t("lookup.another")}</Link>
              </Button>
            }
          >
            {t("lookup.notFoundBody")}
          </State>
        ) : (
          <FailedState error={query.error} title={t("lookup.failedTitle")} onRetry={() => void query.refetch()} />
        )}
      </div>
    </DashboardPage>
  );
}
