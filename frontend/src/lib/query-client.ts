/** The cache of server state. Reads are `queryOptions` of the features; writes invalidate by the same keys. */
import { QueryClient } from "@tanstack/react-query";
import { isAccessEnded, isNetworkError, isNotFound, isRefused, isSessionExpired } from "./errors";
import { onPersonChange } from "./person-change";
import { reads } from "./query-keys";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // report being offline at once instead of waiting silently for the connection
      networkMode: "always",
      staleTime: 30_000,
      gcTime: 10 * 60_000,
      // Only temporary failures are retried. supabase-js already retries requests that did not arrive; retrying these
      // again would delay the error by half a minute.
      retry: (failures, error) =>
        failures < 1 &&
        !isNetworkError(error) &&
        !isRefused(error) &&
        !isNotFound(error) &&
        !isSessionExpired(error) &&
        !isAccessEnded(error),
      refetchOnWindowFocus: true,
    },
    mutations: { retry: false, networkMode: "always" },
  },
});

// Not `clear()`, which would leave a visible page waiting for a removed query. The person is already known.
onPersonChange(() => {
  queryClient.removeQueries({ type: "inactive" });
  void queryClient.resetQueries({ type: "active", predicate: ({ queryKey }) => queryKey[0] !== reads.me[0] });
});
