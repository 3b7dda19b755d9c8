import { Check, Circle, Dot } from "lucide-react";
import type { ReactNode } from "react";
import { t } from "@/messages";

export interface TimelineStep {
  title: ReactNode;
  state: "complete" | "current" | "upcoming";
  /** When, already formatted. */
  when?: ReactNode;
  body?: ReactNode;
}

/** A vertical bridge: past, current and coming steps. */
export function Timeline({ steps, label }: { steps: readonly TimelineStep[]; label: string }) {
  return (
    <ol className="timeline" aria-label={label}>
      {steps.map((step, index) => (
        <li
          key={index}
          className={step.state === "complete" ? "done" : step.state === "current" ? "now" : undefined}
          aria-current={step.state === "current" ? "step" : undefined}
        >
          <span className="dot" aria-hidden="true">
            {step.state === "complete" ? (
              <Check />
            ) : step.state === "current" ? (
              <Dot />
            ) : (
              <Circle className="invisible" />
            )}
          </span>
          <strong>
            {step.title}
            {step.state === "complete" ? <span className="visually-hidden"> ({t("common.stepDone")})</span> : null}
          </strong>
          {step.when ? <time>{step.when}</time> : null}
          {typeof step.body === "string" ? <p>{step.body}</p> : step.body}
        </li>
      ))}
    </ol>
  );
}
