/** The rail's 'Your decision': the state, who may act, and the three answers. */
import { ChevronUp } from "lucide-react";
import { RuledSum } from "@/components/ruled-sum";
import { Button } from "@/components/ui/button";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuTrigger,
} from "@/components/ui/dropdown-menu";
import { Notice } from "@/components/ui/notice";
import { formatDate, formatList, formatMoney } from "@/lib/format";
import { t } from "@/messages";
import "@/messages/en/incoming";
import { amountWords } from "../amount-words";
import type { VisibleRequest } from "../types";
import type { DecisionKind } from "./decision-dialogs";

export interface DecisionPanelProps {
  opened: VisibleRequest;
  /** The reader is an admin or manager. */
  mayDecide: boolean;
  userId: string;
  onDecide: (kind: DecisionKind) => void;
}

const canApprove = ({ can }: VisibleRequest) => can.approve || can.second_approval;
export const canAct = (opened: VisibleRequest): boolean => canApprove(opened) || opened.can.deny || opened.can.ask_info;

/** Whether this answer is possible now. */
export const canAnswer = (opened: VisibleRequest, kind: DecisionKind): boolean =>
  kind === "approve" ? canApprove(opened) : kind === "deny" ? opened.can.deny : opened.can.ask_info;

const approveWords = ({ can }: VisibleRequest) =>
  t(can.second_approval ? "incoming.approveSecond" : "incoming.approve");

function Standing({ opened, mayDecide, userId }: Omit<DecisionPanelProps, "onDecide">) {
  const { request, part, also_sent_to: others } = opened;
  const lastAsked = opened.timeline.findLast((event) => event.type === "info_requested");
  const lastAnswer = opened.timeline.findLast((event) => event.type === "info_answered");
  if (part === "denied" && request.status === "declined") {
    const open = others
      .filter((other) => other.state === "open" || other.state === "claimed")
      .map((other) => other.name);
    return (
      <Notice tone="info" title={t("incoming.deniedByYou")}>
        {open.length > 0
          ? t("incoming.deniedByYouBody", { names: formatList(open) })
          : t("incoming.alreadyDecided", { status: t("common.status.declined").toLowerCase() })}
      </Notice>
    );
  }
  if (request.status === "withdrawn") {
    return (
      <Notice tone="info" title={t("incoming.withdrawnTitle")}>
        {t("incoming.alreadyDecided", { status: t("common.status.withdrawn").toLowerCase() })}{" "}
        {t("incoming.withdrawnBody")}
      </Notice>
    );
  }
  if (opened.own && mayDecide && (request.status === "pending" || request.status === "processing")) {
    return (
      <Notice tone="info" title={t("incoming.ownTitle")}>
        {t("incoming.ownBody")}
      </Notice>
    );
  }
  if (request.status === "processing") {
    const facts = {
      name: opened.first_approver ?? t("incoming.anotherNonprofit"),
      amount: formatMoney(request.amount_approved ?? 0),
      date: formatDate(request.first_approved_at ?? request.submitted_at),
    };
    return (
      <Notice tone={opened.can.second_approval ? "warn" : "info"} title={t("incoming.firstApprovalTitle")}>
        {t(request.first_approved_by === userId ? "incoming.firstApprovalYours" : "incoming.firstApprovalBy", facts)}
      </Notice>
    );
  }
  if (request.status !== "pending") {
    return (
      <Notice tone="info">
        {t("incoming.alreadyDecided", { status: t(`common.status.${request.status}`).toLowerCase() })}
      </Notice>
    );
  }
  if (request.needs_more_proof) {
    return (
      <Notice tone="info" title={t("incoming.waitsForProof")}>
        {t("incoming.waitsForProofBody")}
      </Notice>
    );
  }
  if (mayDecide && lastAnswer && lastAsked && lastAnswer.created_at > lastAsked.created_at) {
    return (
      <Notice tone="warn" title={t("incoming.answeredTitle")}>
        {t("incoming.answeredBody")}
      </Notice>
    );
  }
  return null;
}

function Elsewhere({ opened }: { opened: VisibleRequest }) {
  const { part, request, also_sent_to: others } = opened;
  if (request.status !== "pending" && request.status !== "processing") return null;
  if (part === "claimed") return <p className="text-sm text-soft">{t("incoming.claimedByYou")}</p>;
  const open = others.filter((other) => other.state === "open").map((other) => other.name);
  return (
    <p className="text-sm text-soft">
      {open.length > 0 ? t("incoming.alsoSentOpen", { names: formatList(open) }) : t("incoming.onlyYou")}
    </p>
  );
}

export function DecisionPanel({ opened, mayDecide, userId, onDecide }: DecisionPanelProps) {
  const { request } = opened;
  return (
    <section className="panel decide" aria-labelledby="decision-heading">
      <header>
        <h2 id="decision-heading">{t(mayDecide && !opened.own ? "incoming.decision" : "incoming.stepDecision")}</h2>
      </header>
      <div className="in grid gap-3">
        <RuledSum
          rows={[
            {
              label: t(request.status === "approved" ? "incoming.approvedAmount" : "incoming.asked"),
              value: amountWords(request.amount),
            },
            ...(opened.budget_remaining === null
              ? []
              : [{ label: t("incoming.budgetRemaining"), value: formatMoney(opened.budget_remaining) }]),
          ]}
        />
        <Standing opened={opened} mayDecide={mayDecide} userId={userId} />
        {canAct(opened) ? (
          <div className="wide-only grid gap-3">
            {canApprove(opened) ? (
              <Button variant="primary" full onClick={() => onDecide("approve")}>
                {approveWords(opened)}
              </Button>
            ) : null}
            {opened.can.ask_info ? (
              <Button full onClick={() => onDecide("info")}>
                {t("incoming.moreInfo")}
              </Button>
            ) : null}
            {opened.can.deny ? (
              <Button variant="dangerQuiet" full onClick={() => onDecide("deny")}>
                {t("incoming.deny")}
              </Button>
            ) : null}
          </div>
        ) : null}
        {mayDecide ? null : <Notice tone="info">{t("incoming.limited")}</Notice>}
        <Elsewhere opened={opened} />
      </div>
    </section>
  );
}

/** The same on phones: the first answer in the dock, the others in a menu; a single one needs no menu. */
export function DecisionDock({ opened, onDecide }: Pick<DecisionPanelProps, "opened" | "onDecide">) {
  if (!canAct(opened)) return null;
  const approve = canApprove(opened);
  if (!approve && !opened.can.ask_info) {
    return (
      <Button variant="dangerQuiet" onClick={() => onDecide("deny")}>
        {t("incoming.deny")}
      </Button>
    );
  }
  return (
    <>
      {approve ? (
        <Button variant="primary" onClick={() => onDecide("approve")}>
          {approveWords(opened)}
        </Button>
      ) : null}
      <DropdownMenu>
        <DropdownMenuTrigger asChild>
          <Button>
            {t("incoming.otherAnswers")}
            <ChevronUp aria-hidden="true" />
          </Button>
        </DropdownMenuTrigger>
        <DropdownMenuContent side="top">
          {opened.can.ask_info ? (
            <DropdownMenuItem onSelect={() => onDecide("info")}>{t("incoming.moreInfo")}</DropdownMenuItem>
          ) : null}
          {opened.can.deny ? (
            <DropdownMenuItem className="text-danger-text" onSelect={() => onDecide("deny")}>
              {t("incoming.deny")}
            </DropdownMenuItem>
          ) : null}
        </DropdownMenuContent>
      </DropdownMenu>
    </>
  );
}
