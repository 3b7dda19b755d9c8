import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";

/** A grey bar in place of text. The list around it has `aria-busy` and a name. */
export function Skeleton({ className, ...props }: ComponentProps<"span">) {
  return <span className={cn("sk", className)} aria-hidden="true" {...props} />;
}
