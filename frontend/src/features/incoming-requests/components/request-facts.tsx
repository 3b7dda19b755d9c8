/** The request: the person's own words first, then facts, documents and answers to questions. */
import { useMutation } from "@tanstack/react-query";
import { FileText, Image as ImageIcon } from "lucide-react";
import type { ReactNode } from "react";
import { SectionHead } from "@/components/pages";
import { Button } from "@/components/ui/button";
import { addressLines } from "@/lib/address";
import { errorMessage } from "@/lib/errors";
import { formatDate, formatDateTime, formatMegabytes } from "@/lib/format";
import { toast } from "@/lib/toast";
import { localName } from "@/lib/local-name";
import { t } from "@/messages";
import "@/messages/en/incoming";
import "@/styles/serif.css";
import { amountWords } from "../amount-words";
import { documentUrl } from "@/lib/request-documents";
import type { RequestDocument, VisibleRequest } from "../types";

export function PersonsWords({ opened: { request } }: { opened: VisibleRequest }) {
  return (
    <section>
      <h2 className="visually-hidden">{t("incoming.request")}</h2>
      <p className="text-sm text-faint">
        {t("incoming.writes", { name: `${request.first_name} ${request.last_name}` })}
      </p>
      <blockquote className="own-words">{request.description}</blockquote>
    </section>
  );
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export function RequestFacts({ opened: { request } }: { opened: VisibleRequest }) {
  const [street, town] = addressLines(request.address, request.city, request.state, request.postal_code);
  return (
    <section>
      <SectionHead title={t("incoming.details")} />
      <dl className="answers tight">
        <Fact label={t("incoming.detailCategory")}>{localName(request.category)}</Fact>
        <Fact label={t("incoming.detailAmount")}>
          <span className="num">{amountWords(request.amount)}</span>
        </Fact>
        <Fact label={t("incoming.detailContact")}>
          <a className="contact" href={`mailto:${request.email}`}>
            {request.email}
          </a>
          <br />
          <a className="contact num" href={`tel:${request.phone.replace(/[^+\d]/g, "")}`}>
            {request.phone}
          </a>
        </Fact>
        <Fact label={t("incoming.detailAddress")}>
          {street}
          <br />
          {town}
        </Fact>
        {request.urgency ? (
          <Fact label={t("incoming.detailUrgency")}>{t(`incoming.urgency.${request.urgency}`)}</Fact>
        ) : null}
        {request.preferred_contact ? (
          <Fact label={t("incoming.detailPreferred")}>{t(`incoming.preferred.${request.preferred_contact}`)}</Fact>
        ) : null}
      </dl>
    </section>
  );
}

function DocumentRow({ document }: { document: RequestDocument }) {
  const open = useMutation({
    mutationFn: async () => {
      // opened before the URL is known, because a window opened after waiting counts as a pop-up
      const tab = window.open("", "_blank");
      try {
        const url = await documentUrl(document.path);
        if (tab) {
          tab.opener = null;
          tab.location.replace(url);
        } else window.location.assign(url);
      } catch (error) {
        tab?.close();
        throw error;
      }
    },
    onError: (error) =>
      toast({
        variant: "destructive",
        title: t("incoming.documentFailedTitle"),
        description: errorMessage(error, "incoming.documentFailed"),
      }),
  });
  const Icon = document.mime_type.startsWith("image/") ? ImageIcon : FileText;
  return (
    <li>
      <Icon aria-hidden="true" />
      <span className="name">
        {document.name}
        <span className="block text-sm text-faint">
          {formatMegabytes(document.size_bytes)}
          {document.kind === "additional"
            ? `, ${t("incoming.sentLater", { date: formatDate(document.created_at) })}`
            : null}
        </span>
      </span>
      <Button
        variant="quiet"
        className="no-print"
        busy={open.isPending}
        aria-label={t("incoming.viewDocumentNamed", { name: document.name })}
        onClick={() => open.mutate()}
      >
        {t("incoming.viewDocument")}
      </Button>
    </li>
  );
}

export function RequestDocuments({ opened: { documents } }: { opened: VisibleRequest }) {
  return (
    <section>
      <SectionHead title={t("incoming.documents")} />
      {documents.length === 0 ? (
        <p className="text-soft">{t("incoming.noDocuments")}</p>
      ) : (
        <ul className="files">
          {documents.map((document) => (
            <DocumentRow key={document.id} document={document} />
          ))}
        </ul>
      )}
    </section>
  );
}

/** Questions of the staff and what the person answered, oldest first. */
export function RequestAnswers({ opened: { request, timeline } }: { opened: VisibleRequest }) {
  const talk = timeline.filter(
    (event) => (event.type === "info_requested" || event.type === "info_answered") && event.note,
  );
  if (talk.length === 0) return null;
  return (
    <section>
      <SectionHead title={t("incoming.answers")} />
      <ul className="list ruled">
        {talk.map((event) => (
          <li key={event.created_at} className="py-4">
            <p className="text-sm text-soft">
              {event.type === "info_requested"
                ? t("incoming.youAsked", { name: event.staff_name ?? event.nonprofit_name ?? "" })
                : t("incoming.theyAnswered", { name: request.first_name })}
              {", "}
              <time dateTime={event.created_at}>{formatDateTime(event.created_at)}</time>
            </p>
            <p className="mt-1 whitespace-pre-line">{event.note}</p>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Why this organization declined it. */
export function DenialReason({ opened: { request } }: { opened: VisibleRequest }) {
  if (request.status !== "declined" || !request.denial_reason) return null;
  return (
    <section>
      <SectionHead title={t("incoming.reasonGiven")} />
      <p className="whitespace-pre-line">{request.denial_reason}</p>
    </section>
  );
}
