import { useEffect, useRef } from "react";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { formatDateTime, formatList } from "@/lib/format";
import { t, type MessageKey } from "@/messages";
import "@/messages/en/requestForm";
import "@/messages/en/unsent";
import type { Answers } from "../answers";
import type { LoadedDraft } from "../api";
import { differences } from "../columns";

/** The questions to which the saved answers belong. */
const questionOf: Record<string, MessageKey> = {
  category_id: "requestForm.rowCategory",
  nonprofits: "requestForm.rowNonprofits",
  first_name: "requestForm.rowName",
  last_name: "requestForm.rowName",
  email: "requestForm.rowContact",
  phone: "requestForm.rowContact",
  sms_consent: "requestForm.rowContact",
  address: "requestForm.rowAddress",
  city: "requestForm.rowAddress",
  state: "requestForm.rowAddress",
  postal_code: "requestForm.rowAddress",
  description: "requestForm.rowDetails",
  amount: "requestForm.rowAmount",
};

export interface ChangedElsewhereProps {
  theirs: LoadedDraft;
  answers: Answers;
  onChoose: (which: "mine" | "theirs") => void;
  /** Another value leads to this notice, after a press of a button that may be far below. */
  shown: unknown;
}

/** The draft was saved on another device while it was changed here. Both versions are kept until the person chooses. */
export function ChangedElsewhere({ theirs, answers, onChoose, shown }: ChangedElsewhereProps) {
  const notice = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!shown) return;
    notice.current?.scrollIntoView({ block: "center" });
    notice.current?.focus({ preventScroll: true });
  }, [shown]);
  const questions = differences(answers, theirs.answers)
    .map((name) => questionOf[name])
    .filter((key) => key !== undefined);
  return (
    <Notice ref={notice} tabIndex={-1} tone="warn" role="alert" className="mb-6" title={t("unsent.meanwhileTitle")}>
      <p>{t("unsent.meanwhileBody", { time: formatDateTime(theirs.updatedAt) })}</p>
      {questions.length > 0 ? (
        <p>{t("unsent.meanwhileDiffers", { what: formatList([...new Set(questions)].map((key) => t(key))) })}</p>
      ) : null}
      <div className="actions mt-3">
        <Button onClick={() => onChoose("mine")}>{t("unsent.meanwhileMine")}</Button>
        <Button onClick={() => onChoose("theirs")}>{t("unsent.meanwhileTheirs")}</Button>
      </div>
    </Notice>
  );
}
