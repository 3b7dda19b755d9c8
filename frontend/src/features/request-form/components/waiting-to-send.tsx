import { useEffect, useRef } from "react";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { formatTime } from "@/lib/format";
import { t } from "@/messages";
import "@/messages/en/requestForm";
import "@/messages/en/unsent";
import type { Submit } from "../use-submit";

export interface WaitingToSendProps {
  submit: Submit;
  /** It was changed, so it no longer waits. */
  stopped: boolean;
  onSend: () => void;
  onStop: () => void;
}

/**
 * Says clearly that a request is not sent yet, and what will happen. Nothing else on the page says so: a press of the
 * form's button, which may be far below, leads here.
 */
export function WaitingToSend({ submit, stopped, onSend, onStop }: WaitingToSendProps) {
  const { isPending: busy, missed } = submit;
  const notice = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (missed.presses === 0) return;
    notice.current?.scrollIntoView({ block: "center" });
    notice.current?.focus({ preventScroll: true });
  }, [missed.presses]);
  return (
    <Notice ref={notice} tabIndex={-1} tone="warn" role="status" className="mb-6" title={t("unsent.waitsTitle")}>
      <p>
        {t(stopped ? "unsent.stoppedBody" : "unsent.waitsBody")}
        {stopped || missed.at === null ? null : ` ${t("unsent.waitsTried", { time: formatTime(missed.at) })}`}
      </p>
      {stopped ? null : (
        <div className="actions mt-3">
          <Button busy={busy} busyLabel={t("requestForm.submitting")} onClick={onSend}>
            {t("unsent.waitsSend")}
          </Button>
          <Button
            variant="quiet"
            disabled={busy}
            onClick={() => {
              onStop();
              submit.reset();
            }}
          >
            {t("unsent.waitsStop")}
          </Button>
        </div>
      )}
    </Notice>
  );
}
