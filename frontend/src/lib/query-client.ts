/** The cache of server state. Reads are `queryOptions` of the features; writes invalidate by the same keys. */
import { QueryClient } from "@tanstack/react-query";
import { isNetworkError, isNotFound, isRefused, isSessionExpired } from "./errors";
import { onPersonChange } from "./person-change";
import { reads } from "./query-keys";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // offline is an answer too, and is told at once; nothing waits in silence for the connection
      networkMode: "always",
      staleTime: 30_000,
      gcTime: 10 * 60_000,
      // An answer is an answer; only what may pass is tried again. supabase-js repeats by itself what did not arrive:
      // repeating that again would keep people waiting for half a minute before they are told.
      retry: (failures, error) =>
        failures < 1 && !isNetworkError(error) && !isRefused(error) && !isNotFound(error) && !isSessionExpired(error),
      refetchOnWindowFocus: true,
    },
    mutations: { retry: false, networkMode: "always" },
  },
});

// Not `clear()`: it would leave a shown page waiting for a query that is no longer kept. Who is here is known already.
onPersonChange(() => {
  queryClient.removeQueries({ type: "inactive" });
  void queryClient.resetQueries({ type: "active", predicate: ({ queryKey }) => queryKey[0] !== reads.me[0] });
});
