import { RadioGroup as Radix } from "radix-ui";
import type { ComponentProps, ReactNode } from "react";
import { cn } from "@/lib/cn";

export function RadioGroup({ className, ...props }: ComponentProps<typeof Radix.Root>) {
  return <Radix.Root className={cn("grid", className)} {...props} />;
}

/** One answer of a group; the whole line is the target. */
export function RadioLine({
  children,
  className,
  ...props
}: ComponentProps<typeof Radix.Item> & { children: ReactNode }) {
  return (
    <label className="tick">
      <Radix.Item className={cn("box round cursor-pointer", className)} {...props} />
      <span>{children}</span>
    </label>
  );
}
