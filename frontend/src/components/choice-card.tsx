import { ChevronRight } from "lucide-react";
import { Checkbox as Radix } from "radix-ui";
import { Check } from "lucide-react";
import type { ComponentProps, ReactNode } from "react";
import { cn } from "@/lib/cn";

interface CardWords {
  title: ReactNode;
  /** One line. */
  description?: ReactNode;
  /** A 48-px spot illustration. */
  art?: ReactNode;
}

/** A big choice that moves on at once (chevron); a double tap on it is one choice. */
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

export interface TickCardProps extends Omit<ComponentProps<typeof Radix.Root>, "title">, CardWords {}

/** A big choice that waits for Continue (box). */
export function TickCard({ title, description, className, checked, ...props }: TickCardProps) {
  return (
    <Radix.Root
      className={cn("choice tick-card", checked === true && "on", className)}
      checked={checked}
      aria-disabled={props.disabled || undefined}
      {...props}
    >
      <span className={cn("box", checked === true && "on", props.disabled && "off")} aria-hidden="true">
        <Check />
      </span>
      <span className="min-w-0">
        <strong>{title}</strong>
        {description ? <span className="d">{description}</span> : null}
      </span>
    </Radix.Root>
  );
}
