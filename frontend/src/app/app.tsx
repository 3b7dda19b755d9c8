import { useEffect, useState, useSyncExternalStore, type ComponentType } from "react";
import { RouterProvider } from "react-router-dom";
import { SessionProvider } from "@/features/session/session-provider";
import { currentToasts, subscribeToasts } from "@/lib/toast";
import { createRouter } from "./router";

let made: ReturnType<typeof createRouter> | undefined;

/** Created on first use, after the language is settled, because a page's module reads its texts while loading. */
const theRouter = () => (made ??= createRouter());

/** Resolves when the page's code has loaded or failed to load. */
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
