import { lazy, Suspense, useSyncExternalStore } from "react";
import { RouterProvider } from "react-router-dom";
import { SessionProvider } from "@/features/session/session-provider";
import { currentToasts, subscribeToasts } from "@/lib/toast";
import { createRouter } from "./router";

const router = createRouter();
const Toaster = lazy(() => import("@/components/ui/toaster"));

/** The notifications region, downloaded when the first toast is shown. */
function Toasts() {
  const wanted = useSyncExternalStore(subscribeToasts, () => currentToasts().length > 0);
  return wanted ? (
    <Suspense>
      <Toaster />
    </Suspense>
  ) : null;
}

export function App() {
  return (
    <SessionProvider>
      <RouterProvider router={router} />
      <Toasts />
    </SessionProvider>
  );
}
