import { Link } from "react-router-dom";
import { t } from "@/messages";

export interface ProgressBridgeProps {
  /** Names of the steps, in order. */
  steps: readonly string[];
  /** The current step, from 1; one more than there are when all is done. */
  step: number;
  /** Addresses of the steps one can go back to. */
  links?: readonly (string | undefined)[];
  label: string;
}

/** Named progress steps: solid for done, a lamp for the current one, dots for the rest. */
export function ProgressBridge({ steps, step, links, label }: ProgressBridgeProps) {
  return (
    <nav aria-label={label} className="mt-3 mb-5">
      <p className="visually-hidden" role="status">
        {t("common.progress", {
          step: Math.min(step, steps.length),
          total: steps.length,
          name: steps[Math.min(step, steps.length) - 1] ?? "",
        })}
      </p>
      <ol className="span">
        {steps.map((name, index) => {
          const state = index + 1 < step ? "done" : index + 1 === step ? "now" : undefined;
          const to = links?.[index];
          return (
            <li key={name} className={state} aria-current={state === "now" ? "step" : undefined}>
              {to ? <Link to={to}>{name}</Link> : name}
              {state === "done" ? <span className="visually-hidden"> ({t("common.stepDone")})</span> : null}
            </li>
          );
        })}
      </ol>
    </nav>
  );
}
