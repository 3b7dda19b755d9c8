import { Check } from "lucide-react";
import { Checkbox as Radix } from "radix-ui";
import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";
import type { CardWords } from "./choice-card";

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
