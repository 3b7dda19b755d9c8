import { t } from "@/messages";

export interface ProgressBridgeProps {
  /** Names of the steps, in order. */
  steps: readonly string[];
  /** The current step, from 1. */
  step: number;
  label: string;
}

/** Progress with names: solid where you have been, a lamp where you are, dots where you go. */
export function ProgressBridge({ steps, step, label }: ProgressBridgeProps) {
  return (
    <nav aria-label={label} className="mt-3 mb-5">
      <p className="visually-hidden" role="status">
        {t("common.progress", { step, total: steps.length, name: steps[step - 1] ?? "" })}
      </p>
      <ol className="span">
        {steps.map((name, index) => {
          const state = index + 1 < step ? "done" : index + 1 === step ? "now" : undefined;
          return (
            <li key={name} className={state} aria-current={state === "now" ? "step" : undefined}>
              {name}
              {state === "done" ? <span className="visually-hidden"> ({t("common.stepDone")})</span> : null}
            </li>
          );
        })}
      </ol>
    </nav>
  );
}
