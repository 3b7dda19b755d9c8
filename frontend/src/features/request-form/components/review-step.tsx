import { zodResolver } from "@hookform/resolvers/zod";
import type { ReactNode } from "react";
import { useForm } from "react-hook-form";
import { Link } from "react-router-dom";
import { Form, TickField } from "@/components/form";
import { Button } from "@/components/ui/button";
import { TickLine } from "@/components/ui/checkbox";
import { Notice } from "@/components/ui/notice";
import { paths } from "@/app/paths";
import { errorDetails, errorHint } from "@/lib/errors";
import { formatMegabytes, formatMoney } from "@/lib/format";
import { addressLines } from "@/lib/address";
import { localName } from "@/lib/local-name";
import { canGetTexts } from "@/lib/text-number";
import { t } from "@/messages";
import "@/messages/en/requestForm";
import "@/messages/en/unsent";
import "@/messages/en/texts";
import type { Answers, Step } from "../answers";
import { parseDollars } from "@/schemas/amount";
import { reviewSchema } from "../schema";
import { complaintsOf, whyNotSent } from "../use-submit";

/** These answers were already sent, without later changes. */
export function AlreadySent({ error, onRenew }: { error: unknown; onRenew: () => void }) {
  const number = errorDetails(error).request_number;
  if (errorHint(error) !== "key_reused" || typeof number !== "string") return null;
  return (
    <Notice tone="warn" role="alert" title={t("unsent.alreadySentTitle", { number })}>
      <p>{t("unsent.alreadySentBody")}</p>
      <div className="actions mt-3">
        <Button asChild variant="primary">
          <Link to={`${paths.requestStatusLookup}?id=${number}`}>{t("unsent.alreadySentSee", { number })}</Link>
        </Button>
        <Button onClick={onRenew}>{t("unsent.alreadySentNew")}</Button>
      </div>
    </Notice>
  );
}

/** Fields that the server refused, each with a link to its question. */
export function Complaints({ error, hrefOf }: { error: unknown; hrefOf: (step: Step) => string }) {
  if (!error || errorHint(error) === "key_reused") return null;
  const complaints = complaintsOf(error);
  return (
    <Notice
      tone="bad"
      role="alert"
      title={t(complaints.length > 0 ? "requestForm.fixTitle" : "requestForm.submitErrorTitle")}
    >
      {complaints.length > 0 ? (
        <ul className="links grid">
          {complaints.map(({ field, message, step }) => (
            <li key={field}>
              <Link to={hrefOf(step)}>{message}</Link>
            </li>
          ))}
        </ul>
      ) : (
        <p>{whyNotSent(error)}</p>
      )}
    </Notice>
  );
}

function Row({ name, href, children }: { name: string; href: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
      <dd className="c">
        <Link to={href}>
          {t("requestForm.change")}
          <span className="visually-hidden"> {name}</span>
        </Link>
      </dd>
    </div>
  );
}

export interface ReviewStepProps {
  answers: Answers;
  hrefOf: (step: Step) => string;
  onConsent: (consent: boolean) => void;
  onSubmit: () => void;
  onRenew: () => void;
  busy: boolean;
  error: unknown;
}

/** The summary before sending. */
export function ReviewStep({ answers, hrefOf, onConsent, onSubmit, onRenew, busy, error }: ReviewStepProps) {
  const { identity, category, nonprofits, documents } = answers;
  const amount = parseDollars(answers.amount);
  const form = useForm({
    resolver: zodResolver(reviewSchema),
    shouldFocusError: false,
    defaultValues: { consent: answers.consent },
  });
  return (
    <>
      <dl className="answers">
        <Row name={t("requestForm.rowCategory")} href={hrefOf("category")}>
          {category && localName(category.name)}
        </Row>
        <Row name={t("requestForm.rowNonprofits")} href={hrefOf("nonprofits")}>
          {nonprofits.map(({ id, name }) => (
            <span key={id} className="block">
              {name}
            </span>
          ))}
          <span className="block text-sm text-faint">{t("requestForm.chosenOf", { count: nonprofits.length })}</span>
        </Row>
        <Row name={t("requestForm.rowName")} href={hrefOf("info")}>
          {identity.firstName} {identity.lastName}
        </Row>
        <Row name={t("requestForm.rowContact")} href={hrefOf("info")}>
          <span className="block">{identity.email}</span>
          <span className="num block">{identity.phone}</span>
          {answers.texts && canGetTexts(identity.phone) ? <span className="block">{t("texts.row")}</span> : null}
        </Row>
        <Row name={t("requestForm.rowAddress")} href={hrefOf("info")}>
          {addressLines(identity.address, identity.city, identity.state, identity.postalCode).map((line) => (
            <span key={line} className="block">
              {line}
            </span>
          ))}
        </Row>
        <Row name={t("requestForm.rowDetails")} href={hrefOf("details")}>
          <span className="whitespace-pre-line">{answers.description.trim()}</span>
        </Row>
        <Row name={t("requestForm.rowAmount")} href={hrefOf("details")}>
          <span className="num">{amount ? formatMoney(amount) : t("requestForm.notSpecified")}</span>
        </Row>
        <Row name={t("requestForm.rowDocuments")} href={hrefOf("details")}>
          {documents.length === 0
            ? t("requestForm.none")
            : documents.map((document) => (
                <span key={document.id} className="block">
                  {document.name}{" "}
                  <span className="text-sm whitespace-nowrap text-faint">{formatMegabytes(document.size)}</span>
                </span>
              ))}
        </Row>
      </dl>
      <Form form={form} onSubmit={() => onSubmit()} className="mt-6">
        <AlreadySent error={error} onRenew={onRenew} />
        <Complaints error={error} hrefOf={hrefOf} />
        <TickField name="consent">
          {({ onCheckedChange, ...control }) => (
            <TickLine
              {...control}
              onCheckedChange={(on) => {
                onCheckedChange(on);
                onConsent(on === true);
              }}
            >
              {t("requestForm.consent")}
            </TickLine>
          )}
        </TickField>
        <div className="grid gap-3">
          <Button
            type="submit"
            variant="primary"
            size="big"
            full
            busy={busy}
            busyLabel={t("requestForm.submitting")}
            disabled={!category || nonprofits.length === 0}
          >
            {t("requestForm.submit")}
          </Button>
          <p className="small text-soft">{t("requestForm.submitNote")}</p>
        </div>
      </Form>
    </>
  );
}
