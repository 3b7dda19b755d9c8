import { useId } from "react";
import { useAppConfig } from "@/lib/env";
import { formatDate } from "@/lib/format";
import { canGetTexts } from "@/lib/text-number";
import { t } from "@/messages";
import "@/messages/en/texts";
import { TickLine } from "./ui/checkbox";

export interface TextConsentProps {
  /** The phone number as it stands beside the box. */
  number: string;
  checked: boolean;
  onChange: (on: boolean) => void;
  /** When a STOP ended the consent. */
  stoppedAt?: string | null;
}

/** The consent to texts, below a phone number; nothing if the server cannot send texts. */
export function TextConsent({ number, checked, onChange, stoppedAt }: TextConsentProps) {
  const config = useAppConfig();
  const hint = useId();
  if (!config?.sms) return null;
  return (
    <div className="col-span-full">
      <TickLine checked={checked} onCheckedChange={(on) => onChange(on === true)} aria-describedby={hint}>
        {t("texts.consent")}
      </TickLine>
      <p id={hint} className="hint mt-1">
        {t("texts.hint")}
      </p>
      {/* stands before it has words, so that they are read out when they come */}
      <p className="small mt-1 font-[600]" role="status">
        {checked && number.trim() !== "" && !canGetTexts(number) ? t("texts.unreachable") : null}
        {!checked && stoppedAt ? t("texts.stopped", { date: formatDate(stoppedAt) }) : null}
      </p>
    </div>
  );
}
