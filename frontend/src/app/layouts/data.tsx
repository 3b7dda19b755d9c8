/** Wraps every page that reads or writes server data. Static pages do not need it, nor its download. */
import { QueryClientProvider } from "@tanstack/react-query";
import { NuqsAdapter } from "nuqs/adapters/react-router/v7";
import { Outlet } from "react-router-dom";
import { queryClient } from "@/lib/query-client";

export function Component() {
  return (
    <QueryClientProvider client={queryClient}>
      {/* every change of the address goes through the router: guards and links see it */}
      <NuqsAdapter defaultOptions={{ shallow: false }}>
        <Outlet />
      </NuqsAdapter>
    </QueryClientProvider>
  );
}
