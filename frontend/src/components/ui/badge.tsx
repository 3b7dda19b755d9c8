import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";

/** A small word about a thing ('Active', 'Coming Soon'). For a request's state use `components/status-badge`. */
export function Tag({ className, ...props }: ComponentProps<"span">) {
  return <span className={cn("tag", className)} {...props} />;
}

/** A number behind a word. `hot` (amber) only for work that waits for this person. */
export function Count({ hot, className, ...props }: ComponentProps<"span"> & { hot?: boolean }) {
  return <span className={cn("count", hot && "hot", className)} {...props} />;
}
