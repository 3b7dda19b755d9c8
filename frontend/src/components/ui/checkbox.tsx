import { Check } from "lucide-react";
import { Checkbox as Radix } from "radix-ui";
import type { ComponentProps, ReactNode } from "react";
import { cn } from "@/lib/cn";

export function Checkbox({ className, ...props }: ComponentProps<typeof Radix.Root>) {
  return (
    <Radix.Root className={cn("box cursor-pointer", className)} {...props}>
      <Radix.Indicator>
        <Check aria-hidden="true" />
      </Radix.Indicator>
    </Radix.Root>
  );
}

/** A box with its words; the whole line is the target. */
export function TickLine({ children, ...props }: ComponentProps<typeof Radix.Root> & { children: ReactNode }) {
  return (
    <label className="tick">
      <Checkbox {...props} />
      <span>{children}</span>
    </label>
  );
}
