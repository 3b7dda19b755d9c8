import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { FailedState, ListSkeleton } from "./states";

export interface QueryViewProps<T> {
  query: Pick<UseQueryResult<T>, "isPending" | "isError" | "data" | "error"> & { refetch: () => unknown };
  /** Skeleton in the shape of what will come. */
  loading?: ReactNode;
  /** Shown instead of the children when `isEmpty` holds. */
  empty?: ReactNode;
  isEmpty?: (data: T) => boolean;
  failedTitle?: ReactNode;
  children: (data: T) => ReactNode;
}

/** Shows loading, failed, empty or the data, so that no screen forgets a state. */
export function QueryView<T>({ query, loading, empty, isEmpty, failedTitle, children }: QueryViewProps<T>) {
  if (query.isPending) return loading ?? <ListSkeleton />;
  if (query.isError && query.data === undefined) {
    return <FailedState error={query.error} title={failedTitle} onRetry={() => void query.refetch()} />;
  }
  const data = query.data as T;
  if (empty !== undefined && (isEmpty ? isEmpty(data) : Array.isArray(data) && data.length === 0)) return empty;
  return children(data);
}
