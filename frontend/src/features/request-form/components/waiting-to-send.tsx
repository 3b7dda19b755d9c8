import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { t } from "@/messages";
import "@/messages/en/requestForm";

export interface WaitingToSendProps {
  busy: boolean;
  onSend: () => void;
  onStop: () => void;
}

/** Says clearly that a request is not sent yet, and what will happen. */
export function WaitingToSend({ busy, onSend, onStop }: WaitingToSendProps) {
  return (
    <Notice tone="warn" role="status" className="mb-6" title={t("requestForm.waitsTitle")}>
      <p>{t("requestForm.waitsBody")}</p>
      <div className="actions mt-3">
        <Button busy={busy} busyLabel={t("requestForm.submitting")} onClick={onSend}>
          {t("requestForm.waitsSend")}
        </Button>
        <Button variant="quiet" disabled={busy} onClick={onStop}>
          {t("requestForm.waitsStop")}
        </Button>
      </div>
    </Notice>
  );
}
