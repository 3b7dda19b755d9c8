import { Button } from "@/components/ui/button";
import { formatList } from "@/lib/format";
import { t } from "@/messages";
import "@/messages/en/requestForm";
import type { Chosen } from "../answers";
import { NonprofitPicker } from "./nonprofit-picker";

export interface NonprofitsStepProps {
  /** The kind of help that is asked for. */
  need: Chosen | null;
  /** Where the person is, as far as it is known. */
  place: string;
  chosen: readonly Chosen[];
  onChange: (chosen: readonly Chosen[]) => void;
  onContinue: () => void;
}

/** Step 2: one to three, then Continue. */
export function NonprofitsStep({ need, place, chosen, onChange, onContinue }: NonprofitsStepProps) {
  const none = chosen.length === 0;
  return (
    <>
      <NonprofitPicker need={need} place={place} chosen={chosen} onChange={onChange} toastOn="wizard" />
      <div className="wiz-go">
        <p role="status">
          <strong className="num">{t("requestForm.counter", { count: chosen.length })}</strong>{" "}
          {t("requestForm.chosen")}
          {none ? null : (
            <span className="visually-hidden">
              {" "}
              {t("requestForm.chosenNames", { names: formatList(chosen.map(({ name }) => name)) })}
            </span>
          )}
        </p>
        <Button
          variant="primary"
          disabled={none}
          aria-describedby={none ? "why-not-continue" : undefined}
          onClick={onContinue}
        >
          {t("common.continue")}
        </Button>
        {none ? (
          <p id="why-not-continue" className="why small text-soft">
            {t("requestForm.nonprofitRequired")}
          </p>
        ) : null}
      </div>
    </>
  );
}
