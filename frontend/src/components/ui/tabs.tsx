import { Tabs as Radix } from "radix-ui";
import type { ComponentProps, ReactNode } from "react";
import { cn } from "@/lib/cn";
import { formatNumber } from "@/lib/format";

export const Tabs = Radix.Root;

export function TabsList({ className, ...props }: ComponentProps<typeof Radix.List>) {
  return <Radix.List className={cn("tabs", className)} {...props} />;
}

export interface TabProps extends ComponentProps<typeof Radix.Trigger> {
  children: ReactNode;
  /** A count behind the word. */
  count?: number;
  /** The count is work that waits for this person: amber. */
  hot?: boolean;
}

export function Tab({ children, count, hot, className, ...props }: TabProps) {
  return (
    <Radix.Trigger className={cn("tab", className)} {...props}>
      {children}
      {count === undefined ? null : (
        <span className={cn("count", hot && count > 0 && "hot")}>{formatNumber(count)}</span>
      )}
    </Radix.Trigger>
  );
}

export function TabPanel({ className, ...props }: ComponentProps<typeof Radix.Content>) {
  return <Radix.Content className={cn("mt-6", className)} {...props} />;
}
