/** Wraps every page that reads or writes server data. Static pages do not need it, nor its download. */
import { QueryClientProvider } from "@tanstack/react-query";
import { NuqsAdapter } from "nuqs/adapters/react-router/v7";
import { useEffect } from "react";
import { Outlet } from "react-router-dom";
import { queryClient } from "@/lib/query-client";

/** A line that breaks is told by a toast: its region has to be here before the line goes. */
function useToastsAtHand() {
  useEffect(() => {
    // after what the page itself asks for
    const waiting = setTimeout(() => void import("@/components/ui/toaster").catch(() => undefined));
    return () => clearTimeout(waiting);
  }, []);
}

export function Component() {
  useToastsAtHand();
  return (
    <QueryClientProvider client={queryClient}>
      {/* every change of the address goes through the router: guards and links see it */}
      <NuqsAdapter defaultOptions={{ shallow: false }}>
        <Outlet />
      </NuqsAdapter>
    </QueryClientProvider>
  );
}
