import { useQuery } from "@tanstack/react-query";
import { parseAsStringLiteral, useQueryState } from "nuqs";
import { useEffect, useRef } from "react";
import { Link, useNavigate, useParams } from "react-router-dom";
import { BackLink, DetailPage } from "@/components/pages";
import { DetailSkeleton, FailedState } from "@/components/states";
import { Timeline } from "@/components/timeline";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { openedRequestQuery, useMarkOpened } from "@/features/incoming-requests/api";
import { Assignee, canHandOver } from "@/features/incoming-requests/components/assignee";
import { DecisionDialog, type DecisionKind } from "@/features/incoming-requests/components/decision-dialogs";
import { canAct, canAnswer, DecisionDock, DecisionPanel } from "@/features/incoming-requests/components/decision-panel";
import { IncomingBadge } from "@/features/incoming-requests/components/incoming-badge";
import {
  DenialReason,
  PersonsWords,
  RequestAnswers,
  RequestDocuments,
  RequestFacts,
} from "@/features/incoming-requests/components/request-facts";
import { nonprofitDashboardQuery, type NonprofitDashboard } from "@/features/nonprofit-dashboard/api";
import { timelineSteps } from "@/features/incoming-requests/timeline-steps";
import { agoWords } from "@/lib/ago";
import { isNotFound } from "@/lib/errors";
import { formatDate } from "@/lib/format";
import { can, useOrganization, useSession, useUser } from "@/lib/session";
import { toast } from "@/lib/toast";
import { replacing } from "@/lib/url-state";
import { localName } from "@/lib/local-name";
import { t } from "@/messages";
import "@/messages/en/incoming";
import { paths } from "../../paths";
import "./request.css";

const kinds: readonly DecisionKind[] = ["approve", "deny", "info"];
const decision = parseAsStringLiteral(kinds).withOptions(replacing);

export function Component() {
  const { id = "" } = useParams();
  const session = useSession();
  const user = useUser();
  const organization = useOrganization();
  const navigate = useNavigate();
  const query = useQuery(openedRequestQuery(organization.id, id));
  const mayAct = can(session, "act_on_requests");
  // Loaded in parallel with the request.
  const { data: dashboard } = useQuery({ ...nonprofitDashboardQuery(organization.id), enabled: mayAct });
  // The open dialog is part of the URL, so it reopens after a reload or a new sign-in, with the typed text.
  const [kind, setKind] = useQueryState("decide", decision);

  const arrived = useRef(false);
  useEffect(() => {
    if (!query.data || arrived.current) return;
    arrived.current = true;
    // an old URL must not open an answer that is no longer possible
    const possible = kind === null || (query.data.visible && canAnswer(query.data, kind));
    if (!possible) void setKind(null);
  }, [query.data, kind, setKind]);

  const { mutate: markOpened } = useMarkOpened(organization.id);
  const unread = query.data?.visible === true && !query.data.opened && query.data.request.status === "pending";
  const requestId = query.data?.request.id;
  useEffect(() => {
    if (unread && requestId) markOpened(requestId);
  }, [unread, requestId, markOpened]);

  const missing = query.isError && isNotFound(query.error);
  useEffect(() => {
    if (!missing) return;
    toast({ variant: "destructive", title: t("incoming.notFoundTitle"), description: t("incoming.notFoundBody") });
    void navigate(paths.nonprofitRequests, { replace: true });
  }, [missing, navigate]);

  const back = <BackLink to={paths.nonprofitRequests}>{t("incoming.back")}</BackLink>;

  if (query.data === undefined) {
    return (
      <DetailPage title={t("incoming.request")} back={back}>
        {query.isError && !missing ? (
          <FailedState error={query.error} title={t("incoming.failedOne")} onRetry={() => void query.refetch()} />
        ) : (
          <DetailSkeleton label={t("incoming.loading")} />
        )}
      </DetailPage>
    );
  }

  const { request } = query.data;
  const meta = `${request.request_number} · ${t("incoming.sent", {
    date: formatDate(request.submitted_at),
    ago: agoWords(request.submitted_at),
  })}`;
  const title = t("incoming.dialogAboutNoName", {
    number: request.request_number,
    category: localName(request.category),
  });

  if (!query.data.visible) {
    return (
      <DetailPage
        title={title}
        crumb={request.request_number}
        heading={localName(request.category)}
        back={back}
        meta={meta}
        badge={<IncomingBadge status={query.data.request.status} size="big" />}
      >
        {query.data.request.status === "taken" ? (
          <Notice tone="info" title={t("incoming.takenTitle", { name: t("incoming.anotherNonprofit") })}>
            {t("incoming.takenBody")}
          </Notice>
        ) : (
          <Notice tone="info">
            {t("incoming.alreadyDecided", { status: t(`common.status.${query.data.request.status}`).toLowerCase() })}
          </Notice>
        )}
        <Button asChild className="justify-self-start">
          <Link to={paths.nonprofitRequests}>{t("incoming.takenAction")}</Link>
        </Button>
      </DetailPage>
    );
  }

  const opened = query.data;
  return (
    <>
      <DetailPage
        title={title}
        crumb={request.request_number}
        heading={localName(request.category)}
        back={back}
        meta={meta}
        badge={
          <IncomingBadge status={opened.request.status} needsMoreProof={opened.request.needs_more_proof} size="big" />
        }
        rail={
          <>
            <DecisionPanel
              opened={opened}
              mayDecide={mayAct}
              userId={user.id}
              onDecide={(next) => void setKind(next)}
            />
            {dashboard && (!canAct(opened) || opened.request.needs_more_proof) ? (
              <NextWaiting next={dashboard.longest_waiting} />
            ) : null}
            {canHandOver(opened) ? <Assignee opened={opened} nonprofitId={organization.id} /> : null}
            <section>
              <h2 className="mb-3 text-lg">{t("incoming.timeline")}</h2>
              <Timeline label={t("incoming.timeline")} steps={timelineSteps(opened)} />
            </section>
          </>
        }
        dock={canAct(opened) ? <DecisionDock opened={opened} onDecide={(next) => void setKind(next)} /> : undefined}
      >
        <PersonsWords opened={opened} />
        <RequestFacts opened={opened} />
        <RequestAnswers opened={opened} />
        <RequestDocuments opened={opened} />
        <DenialReason opened={opened} />
      </DetailPage>
      <DecisionDialog
        kind={kind}
        opened={opened}
        nonprofitId={organization.id}
        userId={user.id}
        onClose={() => void setKind(null)}
      />
    </>
  );
}

/** After a decision: leads to the request that waits longest, or to the end of the list. */
function NextWaiting({ next }: { next: NonprofitDashboard["longest_waiting"] }) {
  if (!next) {
    return (
      <Notice tone="good" role="status" title={t("incoming.allDone")}>
        {t("incoming.allDoneBody")}
      </Notice>
    );
  }
  return (
    <section aria-labelledby="next-waiting">
      <h2 id="next-waiting" className="mb-3 text-lg">
        {t("incoming.nextTitle")}
      </h2>
      <Button asChild full>
        <Link to={paths.nonprofitRequest(next.request_number)}>
          {t("incoming.nextOpen", { category: localName(next.category), number: next.request_number })}
        </Link>
      </Button>
    </section>
  );
}
