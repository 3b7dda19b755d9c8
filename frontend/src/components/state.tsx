import { Children, type ComponentType, type ReactNode } from "react";
import { cn } from "@/lib/cn";
import type { PictureProps } from "./art/picture";

export interface StateProps {
  art?: ComponentType<PictureProps>;
  title: ReactNode;
  children?: ReactNode;
  /** The first step, or the way out: buttons. */
  actions?: ReactNode;
  /** `h1` when the state is the whole page. */
  heading?: "h1" | "h2" | "h3";
  role?: "alert" | "status";
  className?: string;
}

/** The layout of all states: picture, what happened, what to do. */
export function State({ art: Art, title, children, actions, heading: Heading = "h2", role, className }: StateProps) {
  const parts = Children.toArray(children);
  const isText = parts.length > 0 && parts.every((part) => typeof part === "string");
  return (
    <div className={cn("state", className)} role={role}>
      {Art ? <Art /> : null}
      <Heading>{title}</Heading>
      {isText ? <p>{children}</p> : children}
      {actions ? <div className="actions">{actions}</div> : null}
    </div>
  );
}
