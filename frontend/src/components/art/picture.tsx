import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";

export type PictureProps = ComponentProps<"svg">;

/** The frame of an illustration: two tones from the tokens, silent for screen readers. */
export function Picture({ className, ...props }: PictureProps) {
  return <svg className={cn("art", className)} aria-hidden="true" focusable="false" {...props} />;
}
