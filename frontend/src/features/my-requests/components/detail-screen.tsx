import { useMutation, useQuery } from "@tanstack/react-query";
import { Printer } from "lucide-react";
import { useState, type ReactNode } from "react";
import { Link, Navigate, useNavigate, useParams } from "react-router-dom";
import { paths } from "@/app/paths";
import { GapArt } from "@/components/art/gap";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { CopyButton } from "@/components/copy-button";
import { ExitPage } from "@/components/exit-page";
import { Logo } from "@/components/logo";
import { BackLink, DashboardPage, DetailPage } from "@/components/pages";
import { DetailSkeleton, FailedState, State } from "@/components/states";
import { StatusBadge } from "@/components/status-badge";
import { Timeline } from "@/components/timeline";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { errorMessage, isAccessEnded, isNotFound } from "@/lib/errors";
import { formatDate, formatDateTime, formatMegabytes, formatMoney } from "@/lib/format";
import { addressLines } from "@/lib/address";
import { localName } from "@/lib/local-name";
import { documentUrl } from "@/lib/request-documents";
import { useUser } from "@/lib/session";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/myRequests";
import "@/messages/en/texts";
import "@/styles/requests.css";
import "@/styles/serif.css";
import {
  detailQuery,
  useResubmit,
  useWithdraw,
  type GuestAccess,
  type RequestDetail,
  type RequestDocument,
} from "../api";
import { timelineOf } from "../timeline";
import { CorrectForm } from "./correct-form";
import { ProofPanel } from "./proof-panel";

/** A request of the caller at /request-details/{id} and /request/{id}; the id may be the number. */
export function RequestDetailScreen() {
  const { id = "" } = useParams();
  const user = useUser();
  const query = useQuery(detailQuery(user.id, id));
  if (query.data) {
    if (query.data.can.edit) return <Navigate to={paths.draft(query.data.request.id)} replace />;
    return <Detail detail={query.data} />;
  }
  return (
    <DashboardPage
      title={query.isError && isNotFound(query.error) ? t("myRequests.notFoundTitle") : t("myRequests.requestDetails")}
      heading={query.isPending ? undefined : ""}
      back={<BackLink to={paths.myRequests} />}
    >
      {query.isPending ? (
        <DetailSkeleton />
      ) : isNotFound(query.error) ? (
        <State
          art={GapArt}
          heading="h1"
          role="alert"
          title={t("myRequests.notFoundTitle")}
          actions={
            <Button asChild variant="primary">
              <Link to={paths.requesterDashboard}>{t("myRequests.returnToDashboard")}</Link>
            </Button>
          }
        >
          {t("myRequests.notFoundBody")}
        </State>
      ) : (
        <FailedState
          heading="h1"
          error={query.error}
          title={t("myRequests.requestFailed")}
          onRetry={() => void query.refetch()}
        />
      )}
    </DashboardPage>
  );
}

function DocumentLink({ document }: { document: RequestDocument }) {
  const open = useMutation({
    mutationFn: () => documentUrl(document.path, { download: document.name }),
    onSuccess: (url) => window.location.assign(url),
    onError: (error) =>
      toast({ variant: "destructive", title: t("myRequests.documentFailed"), description: errorMessage(error) }),
  });
  return (
    <span className="block">
      <button
        type="button"
        className="link text-start break-all"
        aria-busy={open.isPending}
        onClick={() => open.mutate()}
      >
        {document.name}
      </button>{" "}
      <span className="text-sm whitespace-nowrap text-faint">{formatMegabytes(document.size_bytes)}</span>
    </span>
  );
}

function Facts({ detail: { request, documents }, downloads }: { detail: RequestDetail; downloads: boolean }) {
  return (
    <dl className="answers tight mt-5">
      <div>
        <dt>{t("myRequests.rowCategory")}</dt>
        <dd>{localName(request.category)}</dd>
      </div>
      <div>
        <dt>{t("myRequests.rowAsked")}</dt>
        <dd className="num">
          {request.amount_requested === null ? t("myRequests.noAmount") : formatMoney(request.amount_requested)}
        </dd>
      </div>
      {request.amount_approved !== null ? (
        <div>
          <dt>{t("myRequests.rowApproved")}</dt>
          <dd className="num">{formatMoney(request.amount_approved)}</dd>
        </div>
      ) : null}
      <div>
        <dt>{t("myRequests.rowContact")}</dt>
        <dd>
          {request.first_name} {request.last_name}
          <span className="block">{request.email}</span>
          <span className="num block">{request.phone}</span>
          {request.sms_consent ? <span className="block">{t("texts.row")}</span> : null}
        </dd>
      </div>
      <div>
        <dt>{t("myRequests.rowAddress")}</dt>
        <dd>
          {addressLines(request.address, request.city, request.state, request.postal_code).map((line) => (
            <span key={line} className="block">
              {line}
            </span>
          ))}
        </dd>
      </div>
      <div>
        <dt>{t("myRequests.rowDocuments")}</dt>
        <dd>
          {documents.length === 0
            ? t("myRequests.noDocuments")
            : documents.map((document) =>
                downloads ? (
                  <DocumentLink key={document.id} document={document} />
                ) : (
                  <span key={document.id} className="block break-all">
                    {document.name}{" "}
                    <span className="text-sm whitespace-nowrap text-faint">{formatMegabytes(document.size_bytes)}</span>
                  </span>
                ),
              )}
        </dd>
      </div>
    </dl>
  );
}

function Nonprofits({ nonprofits }: Pick<RequestDetail, "nonprofits">) {
  return (
    <section aria-labelledby="submitted-to">
      <h2 id="submitted-to" className="mb-3 text-xl">
        {t("myRequests.submittedTo")}
      </h2>
      {nonprofits.length === 0 ? (
        <p className="text-soft">{t("myRequests.noNonprofits")}</p>
      ) : (
        <ul className="list ruled">
          {nonprofits.map((nonprofit) => (
            <li key={nonprofit.id} className="item">
              <h3 className="text-base">{nonprofit.name}</h3>
              <span className="text-sm text-soft">
                {nonprofit.state ? t(`myRequests.part.${nonprofit.state}`) : null}
              </span>
              <p className="meta">
                {nonprofit.location ? <span>{nonprofit.location}</span> : null}
                {nonprofit.average_response_time_days === null ? null : (
                  <span>{t("myRequests.answersIn", { count: nonprofit.average_response_time_days })}</span>
                )}
              </p>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** The questions and answers about this request. `above`: what the page shows at its top; alone it is not repeated. */
function Conversation({
  timeline,
  above,
}: Pick<RequestDetail, "timeline"> & { above: "info_requested" | "denied" | null }) {
  const messages = timeline.filter(
    ({ type, note }) => note && (type === "info_requested" || type === "info_answered" || type === "denied"),
  );
  if (messages.length === 0 || (messages.length === 1 && messages[0]?.type === above)) return null;
  return (
    <section aria-labelledby="messages" className="no-print">
      <h2 id="messages" className="mb-3 text-xl">
        {t("myRequests.conversation")}
      </h2>
      <ol className="list ruled list-none p-0">
        {messages.map((message) => (
          <li key={message.created_at} className="py-4">
            <p className="flex flex-wrap justify-between gap-x-4">
              <strong>
                {message.actor === "requester"
                  ? t("myRequests.youWrote")
                  : (message.nonprofit_name ?? t("myRequests.aNonprofit"))}
              </strong>
              <time className="text-sm text-faint" dateTime={message.created_at}>
                {formatDateTime(message.created_at)}
              </time>
            </p>
            <p className="mt-1 break-words whitespace-pre-line">{message.note}</p>
          </li>
        ))}
      </ol>
    </section>
  );
}

export interface DetailProps {
  detail: RequestDetail;
  guest?: GuestAccess;
  /** Replaces the link back to all requests. */
  leave?: ReactNode;
}

/** One request for its requester, with all actions. */
export function Detail({ detail, guest, leave }: DetailProps) {
  const { request, can } = detail;
  const navigate = useNavigate();
  const [asking, setAsking] = useState(false);
  const [today] = useState(() => new Date());
  const withdraw = useWithdraw(guest?.access);
  const resubmit = useResubmit();
  const number = request.request_number;
  return (
    <DetailPage
      title={t("myRequests.detailTitle", { number, category: localName(request.category) })}
      crumb={number}
      heading={localName(request.category)}
      meta={
        <span className="row gap-x-2 gap-y-0">
          {t("myRequests.meta", { number, date: formatDate(request.submitted_at) })}
          <CopyButton value={number} />
        </span>
      }
      back={
        <>
          <div className="print-only">
            <Logo />
            <p className="small">
              {t("myRequests.printed", { name: `${request.first_name} ${request.last_name}`, date: formatDate(today) })}
            </p>
          </div>
          <div className="wiz-top">
            {guest ? <span className="kicker">{t("myRequests.yourRequest")}</span> : <BackLink to={paths.myRequests} />}
            <ExitPage />
          </div>
        </>
      }
      badge={<StatusBadge status={request.status} needsMoreProof={request.needs_more_proof} size="big" />}
    >
      <div className="detail">
        {can.add_documents ? <ProofPanel detail={detail} guest={guest} /> : null}
        {request.status === "declined" && request.denial_reason ? (
          <Notice tone="info" title={t("myRequests.deniedTitle")}>
            <p className="break-words whitespace-pre-line">{request.denial_reason}</p>
            <h2 className="mt-4 text-base">{t("myRequests.nowTitle")}</h2>
            <ul className="mt-1 list-disc ps-5 text-ui">
              <li>
                <Link to={paths.requestSubmission}>{t("myRequests.nowAskOthers")}</Link>
              </li>
              <li>
                <Link to={paths.blogPost("1")}>{t("myRequests.nowGuide")}</Link>
              </li>
            </ul>
          </Notice>
        ) : null}
        {request.status === "approved" ? (
          <Notice
            tone="good"
            title={t("myRequests.approvedTitle", { amount: formatMoney(request.amount_approved ?? 0) })}
          >
            {t("myRequests.approvedBody")}
          </Notice>
        ) : null}
        <section className="tl" aria-labelledby="timeline-title">
          <h2 id="timeline-title" className="mb-4 text-lg">
            {t("myRequests.timeline")}
          </h2>
          <Timeline label={t("myRequests.timeline")} steps={timelineOf(request)} />
        </section>
        <section aria-labelledby="details">
          <h2 id="details" className="mb-3 text-xl">
            {t("myRequests.details")}
          </h2>
          <blockquote className="own-words">{request.description}</blockquote>
          <Facts detail={detail} downloads={!guest} />
          {can.correct ? <CorrectForm request={request} guest={guest} /> : null}
        </section>
        <Nonprofits nonprofits={detail.nonprofits} />
        <Conversation
          timeline={detail.timeline}
          above={
            can.add_documents
              ? "info_requested"
              : request.status === "declined" && request.denial_reason
                ? "denied"
                : null
          }
        />
        {can.resubmit ? (
          <div className="no-print grid justify-items-start gap-2">
            <Button
              variant="primary"
              busy={resubmit.isPending}
              onClick={() =>
                resubmit.mutate(request.id, {
                  onSuccess: (draftId) => void navigate(paths.draft(draftId)),
                  onError: (error) =>
                    toast({
                      variant: "destructive",
                      title: t("myRequests.resubmitFailed"),
                      description: errorMessage(error),
                    }),
                })
              }
            >
              {t("myRequests.resubmit")}
            </Button>
            <p className="small text-soft">{t("myRequests.resubmitBody")}</p>
          </div>
        ) : null}
        <div className="apart">
          <span className="row">
            {leave ?? (
              <Button asChild>
                <Link to={paths.myRequests}>{t("myRequests.allRequests")}</Link>
              </Button>
            )}
            <Button onClick={() => window.print()}>
              <Printer aria-hidden="true" />
              {t("myRequests.print")}
            </Button>
          </span>
          {can.cancel ? (
            <Button variant="dangerQuiet" onClick={() => setAsking(true)}>
              {t("myRequests.cancel")}
            </Button>
          ) : null}
        </div>
      </div>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={t("myRequests.cancelTitle")}
        description={t("myRequests.cancelBody", { number })}
        confirmLabel={t("myRequests.cancel")}
        cancelLabel={t("myRequests.keep")}
        busyLabel={t("myRequests.cancelling")}
        busy={withdraw.isPending}
        onConfirm={() =>
          withdraw.mutate(request.id, {
            onSuccess: () => {
              setAsking(false);
              toast({ title: t("myRequests.cancelled"), description: t("myRequests.cancelledBody", { number }) });
            },
            onError: (error) => {
              setAsking(false);
              if (isAccessEnded(error)) guest?.onEnded();
              toast({ variant: "destructive", title: t("myRequests.cancelFailed"), description: errorMessage(error) });
            },
          })
        }
      />
    </DetailPage>
  );
}
