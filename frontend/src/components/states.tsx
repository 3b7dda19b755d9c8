/** The states of loaded content: empty, failed, refused, and skeletons while loading. */
import type { ReactNode } from "react";
import { cn } from "@/lib/cn";
import { errorMessage, isNetworkError } from "@/lib/errors";
import { t } from "@/messages";
import { EmptyArt } from "./art/empty";
import { ErrorArt } from "./art/error";
import { GateArt } from "./art/gate";
import { OfflineArt } from "./art/offline";
import { State, type StateProps } from "./state";
import { Button } from "./ui/button";
import { Skeleton } from "./ui/skeleton";

export { LoadingView } from "./loading-view";
export { State, type StateProps } from "./state";

/** Nothing here yet: says what will appear, and offers the first step. */
export function EmptyState({ art = EmptyArt, ...props }: StateProps) {
  return <State art={art} {...props} />;
}

export interface FailedStateProps {
  error: unknown;
  /** What could not be loaded; the default says 'this'. */
  title?: ReactNode;
  onRetry?: () => void;
  heading?: StateProps["heading"];
}

/** Loading failed: what is safe, and 'Try again'. */
export function FailedState({ error, title, onRetry, heading }: FailedStateProps) {
  const offline = isNetworkError(error);
  return (
    <State
      art={offline ? OfflineArt : ErrorArt}
      role="alert"
      heading={heading}
      title={title ?? t(offline ? "common.offlineTitle" : "common.failedTitle")}
      actions={
        onRetry ? (
          <Button variant="primary" onClick={onRetry}>
            {t("common.retry")}
          </Button>
        ) : null
      }
    >
      <p>{offline ? t(title ? "common.offlineNamed" : "common.offlineBody") : errorMessage(error)}</p>
    </State>
  );
}

/** Not allowed: who can, and a way out. */
export function RefusedState({ title, children, actions, heading }: Partial<StateProps>) {
  return (
    <State art={GateArt} heading={heading} title={title ?? t("common.refusedTitle")} actions={actions}>
      {children ?? <p>{t("common.refusedBody")}</p>}
    </State>
  );
}

/** Skeleton rows in a list's own layout, with a name for screen readers. */
export function ListSkeleton({ rows = 4, label }: { rows?: number; label?: string }) {
  return (
    <div role="status" aria-busy="true" aria-label={label ?? t("common.loading")}>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="grid grid-cols-[1fr_auto] gap-4 border-b border-line py-5 first:border-t">
          <div className="grid gap-3">
            <Skeleton className="h-5! w-2/5" />
            <Skeleton className="w-4/5" />
          </div>
          <Skeleton className="h-7! w-24 rounded-full!" />
        </div>
      ))}
    </div>
  );
}

/** Labels and fields of a form that is being filled in; `photo` stands above them. */
export function FormSkeleton({ fields = 4, photo }: { fields?: number; photo?: boolean }) {
  return (
    <div className="form max-w-(--width-form)" role="status" aria-busy="true" aria-label={t("common.loading")}>
      {photo ? (
        <div className="flex items-center gap-5">
          <Skeleton className="size-20! shrink-0 rounded-full!" />
          <Skeleton className="h-11! w-40 rounded-md!" />
        </div>
      ) : null}
      {Array.from({ length: fields }, (_, field) => (
        <div key={field} className="grid gap-2">
          <Skeleton className="w-1/4" />
          <Skeleton className="h-12! w-full rounded-md!" />
        </div>
      ))}
    </div>
  );
}

/** One object's page: text and facts, with the rail beside them, or below on phones. */
export function DetailSkeleton({ label }: { label?: string }) {
  return (
    <div className="two wide" role="status" aria-busy="true" aria-label={label ?? t("common.loading")}>
      <div className="grid gap-8">
        <div className="grid gap-3">
          <Skeleton className="h-5! w-11/12" />
          <Skeleton className="h-5! w-full" />
          <Skeleton className="h-5! w-3/5" />
        </div>
        <div>
          {Array.from({ length: 4 }, (_, row) => (
            <div key={row} className="grid grid-cols-[1fr_2fr] gap-4 border-b border-line py-4 first:border-t">
              <Skeleton className="w-3/5" />
              <Skeleton className="w-2/5" />
            </div>
          ))}
        </div>
      </div>
      <div className="grid content-start gap-4">
        <Skeleton className="h-36! w-full rounded-lg!" />
        <Skeleton className="h-5! w-2/5" />
        <Skeleton className="w-4/5" />
        <Skeleton className="w-3/5" />
      </div>
    </div>
  );
}

/** A row of tabs whose words depend on what is loaded. */
export function TabsSkeleton({ count = 4 }: { count?: number }) {
  return (
    <div className="tabs" aria-hidden="true">
      {Array.from({ length: count }, (_, index) => (
        <span key={index} className="tab">
          <Skeleton className="w-20" />
        </span>
      ))}
    </div>
  );
}

/** A ruled strip of figures, not yet known. */
export function FiguresSkeleton({ count = 4 }: { count?: 3 | 4 }) {
  return (
    <div
      className={cn("figures", count === 4 ? "four" : "three")}
      role="status"
      aria-busy="true"
      aria-label={t("common.loading")}
    >
      {Array.from({ length: count }, (_, index) => (
        <div key={index}>
          <Skeleton className="w-3/5" />
          <Skeleton className="mt-3 h-7! w-2/5" />
        </div>
      ))}
    </div>
  );
}
