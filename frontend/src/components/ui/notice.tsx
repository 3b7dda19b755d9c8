import { CircleAlert, CircleCheck, Info, TriangleAlert } from "lucide-react";
import type { ComponentProps, ReactNode } from "react";
import { cn } from "@/lib/cn";

const tones = {
  info: { className: "info", Icon: Info },
  good: { className: "good", Icon: CircleCheck },
  warn: { className: "warn", Icon: TriangleAlert },
  bad: { className: "bad", Icon: CircleAlert },
} as const;

export interface NoticeProps extends Omit<ComponentProps<"div">, "title"> {
  tone?: keyof typeof tones;
  title?: ReactNode;
}

/** A message in the page, where the thing happened. It stays. `role="alert"` is for what just went wrong. */
export function Notice({ tone = "info", title, children, className, ...props }: NoticeProps) {
  const { className: toneClass, Icon } = tones[tone];
  return (
    <div className={cn("notice", toneClass, className)} {...props}>
      <Icon aria-hidden="true" />
      <div>
        {title ? <strong className="t block">{title}</strong> : null}
        {typeof children === "string" ? <p>{children}</p> : children}
      </div>
    </div>
  );
}
