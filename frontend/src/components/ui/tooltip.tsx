import { Tooltip as Radix } from "radix-ui";
import type { ReactNode } from "react";

/** Opens after 700 ms; moving on to the next within 300 ms opens at once (section 9). */
export function TooltipProvider({ children }: { children: ReactNode }) {
  return (
    <Radix.Provider delayDuration={700} skipDelayDuration={300}>
      {children}
    </Radix.Provider>
  );
}

export interface TooltipProps {
  label: ReactNode;
  children: ReactNode;
  side?: "top" | "right" | "bottom" | "left";
  disabled?: boolean;
}

/** A short name for an icon. Never the only place of important information. */
export function Tooltip({ label, children, side = "right", disabled }: TooltipProps) {
  if (disabled) return children;
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className="tip" side={side} sideOffset={6}>
          {label}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
