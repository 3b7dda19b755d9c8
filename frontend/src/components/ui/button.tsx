import { Slot } from "radix-ui";
import type { ComponentProps } from "react";
import { cn } from "@/lib/cn";

const variants = {
  /** The one solid button of a view. */
  primary: "primary",
  plain: "plain",
  quiet: "quiet",
  /** Solid red: only inside the dialog that explains it. */
  danger: "danger",
  /** Outlined red: on pages, apart from the rest. */
  dangerQuiet: "danger-quiet",
  onBand: "on-band",
  onBandPlain: "on-band-plain",
} as const;

const sizes = { default: "", big: "big", icon: "icon" } as const;

export interface ButtonProps extends ComponentProps<"button"> {
  variant?: keyof typeof variants;
  size?: keyof typeof sizes;
  /** Full width. */
  full?: boolean;
  /**
   * While the work runs: a spinner, no second press, and `busyLabel` instead of the label. On such a button the second
   * tap of a double tap, which comes before the work can show, is ignored.
   */
  busy?: boolean;
  busyLabel?: string;
  /** Puts the look on the child (a Link). */
  asChild?: boolean;
}

export function Button({
  variant = "plain",
  size = "default",
  full,
  busy,
  busyLabel,
  asChild,
  className,
  children,
  onClick,
  ...props
}: ButtonProps) {
  const classes = cn("btn", size !== "icon" && variants[variant], sizes[size], full && "full", className);
  if (asChild) {
    return (
      <Slot.Root className={classes} onClick={onClick} {...props}>
        {children}
      </Slot.Root>
    );
  }
  return (
    <button
      type="button"
      className={classes}
      aria-busy={busy || undefined}
      aria-disabled={busy || undefined}
      onClick={(event) => {
        if (busy) event.preventDefault();
        else if (busy === undefined || event.detail < 2) onClick?.(event);
      }}
      {...props}
    >
      {busy ? <span className="spin" aria-hidden="true" /> : null}
      {busy && busyLabel ? busyLabel : children}
    </button>
  );
}
