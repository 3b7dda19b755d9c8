import { useEffect, useState, useSyncExternalStore, type ComponentType } from "react";
import { RouterProvider } from "react-router-dom";
import { SessionProvider } from "@/features/session/session-provider";
import { currentToasts, subscribeToasts } from "@/lib/toast";
import { createRouter } from "./router";

let made: ReturnType<typeof createRouter> | undefined;

/** Made at its first use, when the language of the visit is settled: a page reads words while its module loads. */
const theRouter = () => (made ??= createRouter());

/** When the page's own code is there, or it is known that it cannot be had. */
export function pageLoaded(): Promise<void> {
  const router = theRouter();
  if (router.state.initialized) return Promise.resolve();
  return new Promise((done) => {
    const stop = router.subscribe(({ initialized }) => {
      if (!initialized) return;
      stop();
      done();
    });
  });
}

/**
 * The notifications region, downloaded when the first toast is shown. Offline the download fails: the toast then
 * waits for the connection, and the page stays as it is.
 */
function Toasts() {
  const wanted = useSyncExternalStore(subscribeToasts, () => currentToasts().length > 0);
  const [Region, setRegion] = useState<ComponentType | null>(null);
  useEffect(() => {
    if (!wanted || Region) return;
    let here = true;
    const load = () =>
      void import("@/components/ui/toaster").then(
        (module) => here && setRegion(() => module.default),
        () => undefined,
      );
    load();
    window.addEventListener("online", load);
    return () => {
      here = false;
      window.removeEventListener("online", load);
    };
  }, [wanted, Region]);
  return Region ? <Region /> : null;
}

export function App() {
  return (
    <SessionProvider>
      <RouterProvider router={theRouter()} />
      <Toasts />
    </SessionProvider>
  );
}
