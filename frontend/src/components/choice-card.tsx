import { ChevronRight } from "lucide-react";
import type { ComponentProps, ReactNode } from "react";
import { cn } from "@/lib/cn";

export interface CardWords {
  title: ReactNode;
  /** One line. */
  description?: ReactNode;
  /** A 48-px spot illustration. */
  art?: ReactNode;
}

/** A large choice that continues at once (chevron); a double tap counts once. */
export function ChoiceCard({
  title,
  description,
  art,
  className,
  onClick,
  ...props
}: Omit<ComponentProps<"button">, "title"> & CardWords) {
  return (
    <button
      type="button"
      className={cn("choice", className)}
      onClick={(event) => {
        if (event.detail < 2) onClick?.(event);
      }}
      {...props}
    >
      {art ?? <span />}
      <span className="min-w-0">
        <strong>{title}</strong>
        {description ? <span className="d">{description}</span> : null}
      </span>
      <ChevronRight aria-hidden="true" />
    </button>
  );
}
