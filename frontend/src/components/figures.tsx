import type { ReactNode } from "react";
import { cn } from "@/lib/cn";

export interface Figure {
  label: ReactNode;
  value: ReactNode;
  /** A quiet line under the figure. */
  sub?: ReactNode;
}

/** Figures as a ruled strip. */
export function Figures({ figures }: { figures: readonly Figure[] }) {
  return (
    <dl className={cn("figures", figures.length === 3 ? "three" : "four")}>
      {figures.map((figure, index) => (
        <div key={index}>
          <dt>{figure.label}</dt>
          <dd>
            {figure.value}
            {figure.sub ? <span className="sub">{figure.sub}</span> : null}
          </dd>
        </div>
      ))}
    </dl>
  );
}
