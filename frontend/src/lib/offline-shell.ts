/** The page's side of the service worker (`src/worker`), registered once the request form has loaded. */
import type { Told } from "@/worker/shell";

const WORKER = "/sw.js";
const tell = (worker: ServiceWorker | null, told: Told) => worker?.postMessage(told);

/** Built files that this page has loaded; copying them from the browser's cache needs no download. */
const used = (): string[] =>
  performance
    .getEntriesByType("resource")
    .map(({ name }) => new URL(name))
    .filter(({ origin }) => origin === window.location.origin)
    .map(({ pathname }) => pathname);

const entry = (): string =>
  new URL(document.querySelector<HTMLScriptElement>('script[type="module"]')?.src ?? "/", window.location.origin)
    .pathname;

let left = false;

async function register(): Promise<void> {
  if (left) return;
  const { serviceWorker } = navigator;
  const registration = await serviceWorker.register(WORKER);
  if (left) return void (await registration.unregister());
  const loaded = () => tell(registration.waiting, { kind: "loaded", entry: entry() });
  loaded();
  // a newer worker may arrive, and the other pages that kept it waiting may close
  registration.addEventListener("updatefound", () => registration.installing?.addEventListener("statechange", loaded));
  document.addEventListener("visibilitychange", loaded);
  const share = () => tell(registration.active, { kind: "used", files: used() });
  serviceWorker.addEventListener("controllerchange", share);
  await serviceWorker.ready;
  share();
}

/**
 * Stores the form's files on this device once the page has finished loading. Without a service worker (old, private, or
 * forbidden by the browser) everything works as long as the page stays open.
 */
export function keepShell(): void {
  if (!import.meta.env.PROD || !("serviceWorker" in navigator)) return;
  const begin = () => void register().catch(() => undefined);
  if (document.readyState === "complete") setTimeout(begin);
  else window.addEventListener("load", begin, { once: true });
}

/** Deletes the stored files and the worker, for 'Exit this page'. The worker continues after the page is gone. */
export function forgetShell(): void {
  left = true;
  if ("serviceWorker" in navigator) tell(navigator.serviceWorker.controller, { kind: "forget" });
}
