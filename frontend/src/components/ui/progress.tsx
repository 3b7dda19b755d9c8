import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";

/** A thin bar for one thing's progress (a file on its way). `value` in percent. */
export function ProgressBar({ value, label }: { value: number; label: string }) {
  const width = Math.min(100, Math.max(0, value));
  return (
    <div
      className="bar"
      role="progressbar"
      aria-label={label}
      aria-valuenow={Math.round(width)}
      aria-valuemin={0}
      aria-valuemax={100}
    >
      <i style={{ width: `${width}%` }} />
    </div>
  );
}

export interface MeterProps extends ComponentProps<"div"> {
  /** Percent, 0 to 100. */
  value: number;
  label: string;
}

/** How much of a whole is used (a budget). The figures stand beside it in words. */
export function Meter({ value, label, className, ...props }: MeterProps) {
  const width = Math.min(100, Math.max(0, value));
  return (
    <div className={cn("meter", className)} role="img" aria-label={label} {...props}>
      <i style={{ width: `${width}%` }} />
    </div>
  );
}
