/** The three answers to a request. Each says what will happen; the typed text stays if the answer is refused. */
import { zodResolver } from "@hookform/resolvers/zod";
import { useQuery } from "@tanstack/react-query";
import { useId, useState, type ReactNode } from "react";
import { useForm, useWatch } from "react-hook-form";
import { Field, Form } from "@/components/form";
import { RuledSum } from "@/components/ruled-sum";
import { TickLine } from "@/components/ui/checkbox";
import { Dialog, DialogAnswers, DialogContent } from "@/components/ui/dialog";
import { Input, Textarea } from "@/components/ui/input";
import { Notice } from "@/components/ui/notice";
import { Select } from "@/components/ui/select";
import { errorDetails, errorHint, errorMessage } from "@/lib/errors";
import { formatList, formatMoney } from "@/lib/format";
import { forgetKept, readKept, useKeptForm } from "@/lib/kept-form";
import { toast } from "@/lib/toast";
import { localName } from "@/lib/local-name";
import { t } from "@/messages";
import "@/messages/en/incoming";
import { parseAmount, parseDollars } from "@/schemas/amount";
import { denialReasonsQuery, useApprove, useAskInfo, useDeny } from "../api";
import type { VisibleRequest } from "../types";
import { amountWords } from "../amount-words";
import {
  approveSchema,
  denySchema,
  infoSchema,
  missingItems,
  type ApproveForm,
  type DenyForm,
  type InfoForm,
} from "../schema";
import { SavedReplies } from "./saved-replies";

/** An inserted reply counts as typed. */
const put = { shouldDirty: true, shouldTouch: true, shouldValidate: true };

export type DecisionKind = "approve" | "deny" | "info";

export interface DecisionDialogProps {
  opened: VisibleRequest;
  nonprofitId: string;
  /** The author: another account in the same tab never sees the text. */
  userId: string;
  onClose: () => void;
}

interface AnswerProps extends DecisionDialogProps {
  /**
   * The typed text is kept under this name until it is sent or the dialog is closed, because the session may end first.
   */
  keptAs: string;
}

export function DecisionDialog({ kind, onClose, ...props }: DecisionDialogProps & { kind: DecisionKind | null }) {
  const keptAs = `${kind}-${props.opened.request.id}-${props.userId}`;
  const answer: AnswerProps = {
    ...props,
    keptAs,
    onClose: () => {
      forgetKept(keptAs);
      onClose();
    },
  };
  return (
    <Dialog open={kind !== null} onOpenChange={(open) => (open ? undefined : answer.onClose())}>
      {kind === "approve" ? <ApproveDialog {...answer} /> : null}
      {kind === "deny" ? <DenyDialog {...answer} /> : null}
      {kind === "info" ? <InfoDialog {...answer} /> : null}
    </Dialog>
  );
}

const personOf = ({ request }: VisibleRequest) => request.first_name;
const about = ({ request }: VisibleRequest) =>
  t("incoming.dialogAbout", {
    number: request.request_number,
    category: localName(request.category),
    name: `${request.first_name} ${request.last_name}`,
  });
const openElsewhere = ({ also_sent_to }: VisibleRequest) =>
  also_sent_to.filter((other) => other.state === "open" || other.state === "taken").map((other) => other.name);

/** If the request has changed meanwhile, says so and shows the new state behind the dialog. Returns whether it had. */
function isStale(error: unknown, onClose: () => void): boolean {
  const hint = errorHint(error);
  if (hint !== "request_already_decided" && hint !== "second_approval_by_other" && hint !== "amount_differs")
    return false;
  toast({ variant: "destructive", title: t("incoming.staleTitle"), description: errorMessage(error) });
  onClose();
  return true;
}

function Consequence({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="after">
      <strong className="block">{title}</strong>
      <p>{children}</p>
    </div>
  );
}

function Buttons({
  submit,
  busyLabel,
  busy,
  missing,
  danger,
}: {
  submit: string;
  busyLabel: string;
  busy: boolean;
  /** What is still missing; null if nothing is. */
  missing: string | null;
  danger?: boolean;
}) {
  const why = useId();
  return (
    <div className="grid gap-3">
      {missing ? (
        <p id={why} className="small text-soft">
          {missing}
        </p>
      ) : null}
      <DialogAnswers
        submit={submit}
        variant={danger ? "danger" : "primary"}
        busy={busy}
        busyLabel={busyLabel}
        disabled={missing !== null}
        aria-describedby={missing ? why : undefined}
      />
    </div>
  );
}

function ApproveDialog({ opened, nonprofitId, keptAs, onClose }: AnswerProps) {
  const { request } = opened;
  const second = opened.can.second_approval;
  const asked = (second ? request.amount_approved : parseDollars(request.amount)) ?? 0;
  const form = useForm<ApproveForm>({
    resolver: zodResolver(approveSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: readKept(keptAs, { amount: asked > 0 ? String(asked) : "" }),
  });
  useKeptForm(form, keptAs);
  const approve = useApprove({ nonprofitId, requestId: request.id });
  /** The remaining budget according to the database, if this page's figure was outdated. */
  const [told, setTold] = useState<number | null>(null);
  const typed = useWatch({ control: form.control, name: "amount" });
  const amount = parseAmount(typed);
  const remaining = told ?? opened.budget_remaining;
  const over = amount !== null && remaining !== null && amount > remaining;
  const needsSecond =
    !second && amount !== null && opened.second_approval_above !== null && amount > opened.second_approval_above;
  const others = openElsewhere(opened);
  const tenfold = !second && amount !== null && asked > 0 && amount >= 10 * asked;
  /** The amount that was confirmed a second time, because it exceeds the budget or is far above the requested one. */
  const [sure, setSure] = useState<number | null>(null);
  const asksAgain = amount !== null && (over || tenfold) && sure === amount;

  const submit = async () => {
    if (amount === null) return;
    if ((over || tenfold) && sure !== amount) {
      setSure(amount);
      return;
    }
    try {
      const answer = await approve.mutateAsync({ amount, acceptOverBudget: over });
      toast(
        answer.second_approval_needed
          ? {
              title: t("incoming.firstApprovalToast"),
              description: t("incoming.firstApprovalToastBody", { number: request.request_number }),
            }
          : {
              title: t("incoming.approvedToast"),
              description: t("incoming.approvedToastBody", {
                number: request.request_number,
                amount: amountWords(answer.amount),
              }),
            },
      );
      onClose();
    } catch (error) {
      if (isStale(error, onClose)) return;
      const { remaining: left } = errorDetails(error);
      if (errorHint(error) === "over_budget" && typeof left === "number") setTold(left);
    }
  };
  const overBudgetOnly = errorHint(approve.error) === "over_budget";

  return (
    <DialogContent
      title={t(second ? "incoming.approveSecond" : "incoming.approveTitle")}
      description={about(opened)}
      dirty={form.formState.isDirty}
    >
      <Form
        form={form}
        onSubmit={submit}
        error={overBudgetOnly ? null : approve.error}
        errorTitle={t("incoming.decisionFailed")}
      >
        <Field<ApproveForm>
          name="amount"
          label={t("incoming.amount")}
          hint={t("incoming.askedFor", { amount: amountWords(request.amount) })}
        >
          {(control) => (
            <span className="affix money block">
              <span aria-hidden="true">$</span>
              <Input inputMode="decimal" autoComplete="off" className="num" readOnly={second} {...control} />
            </span>
          )}
        </Field>
        {remaining === null ? null : (
          <RuledSum
            rows={[
              { label: t("incoming.budgetRemaining"), value: formatMoney(remaining) },
              { label: t("incoming.after"), value: formatMoney(remaining - (amount ?? 0)) },
            ]}
          />
        )}
        {over && remaining !== null ? (
          <Notice tone="warn" role="status" title={t("incoming.overBudgetTitle")}>
            {t("incoming.overBudgetBody", { amount: formatMoney(remaining) })}
          </Notice>
        ) : null}
        {asksAgain ? (
          <Notice tone="warn" role="alert" title={t("incoming.sureTitle")}>
            {over ? <p>{t("incoming.sureOver", { amount: formatMoney(amount) })}</p> : null}
            {tenfold ? (
              <p>{t("incoming.sureTenfold", { amount: formatMoney(amount), asked: formatMoney(asked) })}</p>
            ) : null}
          </Notice>
        ) : null}
        <Consequence title={t("incoming.whenApprove")}>
          {needsSecond
            ? t("incoming.whenApproveFirst", { name: personOf(opened) })
            : others.length > 0 && opened.part === "open"
              ? t("incoming.whenApproveOthers", { name: personOf(opened), others: formatList(others) })
              : t("incoming.whenApproveBody", { name: personOf(opened) })}
        </Consequence>
        <Buttons
          submit={
            amount === null
              ? t("incoming.approve")
              : t(asksAgain ? "incoming.approveAnyway" : "incoming.approveFor", { amount: formatMoney(amount) })
          }
          busyLabel={t("incoming.approving")}
          busy={approve.isPending}
          missing={typed.trim() === "" ? t("incoming.missingAmount") : null}
        />
      </Form>
    </DialogContent>
  );
}

function DenyDialog({ opened, nonprofitId, keptAs, onClose }: AnswerProps) {
  const { request } = opened;
  const reasons = useQuery(denialReasonsQuery);
  const form = useForm<DenyForm>({
    resolver: zodResolver(denySchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: readKept(keptAs, { reasonCode: "", reason: "" }),
  });
  useKeptForm(form, keptAs);
  const deny = useDeny({ nonprofitId, requestId: request.id });
  const [code, reason] = useWatch({ control: form.control, name: ["reasonCode", "reason"] });
  const others = openElsewhere(opened);
  const submit = async (values: DenyForm) => {
    try {
      await deny.mutateAsync(values);
      toast({
        title: t("incoming.declinedToast"),
        description: t("incoming.declinedToastBody", { number: request.request_number }),
      });
      onClose();
    } catch (error) {
      isStale(error, onClose);
    }
  };
  return (
    <DialogContent title={t("incoming.denyTitle")} description={about(opened)} dirty={code !== "" || reason !== ""}>
      <Form form={form} onSubmit={submit} error={deny.error ?? reasons.error} errorTitle={t("incoming.decisionFailed")}>
        <Field<DenyForm> name="reasonCode" label={t("incoming.denyReason")} hint={t("incoming.denyReasonHint")}>
          {(control) => (
            <Select
              {...control}
              options={(reasons.data ?? [])
                .filter((option) => option.code !== "organization_closed")
                .map((option) => ({ value: option.code, label: localName(option.label) }))}
            />
          )}
        </Field>
        <Field<DenyForm> name="reason" label={t("incoming.denyMessage")} hint={t("incoming.denyMessageHint")}>
          {(control) => <Textarea rows={4} className="min-h-28" {...control} />}
        </Field>
        <SavedReplies
          nonprofitId={nonprofitId}
          kind="denial"
          text={reason}
          onText={(text) => form.setValue("reason", text, put)}
        />
        <Consequence title={t("incoming.whenDeny")}>
          {t("incoming.whenDenyBody", { name: personOf(opened) })}
          {others.length > 0 ? ` ${t("incoming.whenDenyOthers", { others: formatList(others) })}` : null}
        </Consequence>
        <Buttons
          danger
          submit={t("incoming.deny")}
          busyLabel={t("incoming.denying")}
          busy={deny.isPending}
          missing={code === "" || reason.trim() === "" ? t("incoming.missingReason") : null}
        />
      </Form>
    </DialogContent>
  );
}

function InfoDialog({ opened, nonprofitId, keptAs, onClose }: AnswerProps) {
  const { request } = opened;
  const form = useForm<InfoForm>({
    resolver: zodResolver(infoSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: readKept<InfoForm>(keptAs, { items: [], notes: "" }),
  });
  useKeptForm(form, keptAs);
  const [items, notes] = useWatch({ control: form.control, name: ["items", "notes"] });
  const ask = useAskInfo({ nonprofitId, requestId: request.id });
  const submit = async (values: InfoForm) => {
    try {
      await ask.mutateAsync(values);
      toast({
        title: t("incoming.infoToast"),
        description: t("incoming.infoToastBody", { number: request.request_number }),
      });
      onClose();
    } catch (error) {
      isStale(error, onClose);
    }
  };
  return (
    <DialogContent title={t("incoming.infoTitle")} description={about(opened)} dirty={notes !== "" || items.length > 0}>
      <Form form={form} onSubmit={submit} error={ask.error} errorTitle={t("incoming.decisionFailed")}>
        <fieldset className="m-0 border-0 p-0">
          <legend className="label">{t("incoming.infoItems")}</legend>
          <p className="hint">{t("incoming.infoItemsHint", { name: personOf(opened) })}</p>
          <div className="mt-2 grid gap-1 sm:grid-cols-2">
            {missingItems.map((item) => (
              <TickLine
                key={item}
                checked={items.includes(item)}
                onCheckedChange={(on) =>
                  form.setValue(
                    "items",
                    missingItems.filter((other) => (other === item ? on === true : items.includes(other))),
                    { shouldValidate: form.formState.isSubmitted },
                  )
                }
              >
                {t(`incoming.item.${item}`)}
              </TickLine>
            ))}
          </div>
        </fieldset>
        <Field<InfoForm> name="notes" label={t("incoming.infoNotes")} hint={t("incoming.infoNotesHint")}>
          {(control) => <Textarea rows={4} className="min-h-28" {...control} />}
        </Field>
        <SavedReplies
          nonprofitId={nonprofitId}
          kind="info"
          text={notes}
          onText={(text) => form.setValue("notes", text, put)}
        />
        <Consequence title={t("incoming.whenInfo")}>
          {t("incoming.whenInfoBody", { name: personOf(opened) })}
        </Consequence>
        <Buttons
          submit={t("incoming.askInfo")}
          busyLabel={t("incoming.asking")}
          busy={ask.isPending}
          missing={notes.trim() === "" && items.length === 0 ? t("incoming.missingNotes") : null}
        />
      </Form>
    </DialogContent>
  );
}
