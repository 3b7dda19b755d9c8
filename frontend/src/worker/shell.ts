/**
 * The service worker: offline, pages open with cached files, so that a reloaded request form shows the typed answers
 * (which the page stores, never the worker). It caches built files and the installation's settings, but no API answers
 * and no personal data. See docs/decisions/request-form-offline.md.
 */
import { FRESH, isBuiltFile, roadOf, SETTINGS } from "./roads";

/** What the page tells the worker. */
export type Told =
  /** Built files that a page has loaded, including language and fonts. */
  | { kind: "used"; files: readonly string[] }
  /** A page was loaded; `entry` is the app's first file, which names its version. */
  | { kind: "loaded"; entry: string }
  /** Deletes everything, including the worker. */
  | { kind: "forget" };

/** What a build writes into the worker. */
export interface Build {
  version: string;
  /** The app's first file. */
  entry: string;
  /** Built files that are kept from the start. */
  files: readonly string[];
}

interface Extendable {
  waitUntil(work: Promise<unknown>): void;
}
interface Fetched extends Extendable {
  request: Request;
  respondWith(answer: Promise<Response>): void;
}
interface Messaged extends Extendable {
  data: Told;
}

/** The used part of `ServiceWorkerGlobalScope`, whose types conflict with a page's. */
export interface Scope {
  location: { origin: string };
  caches: CacheStorage;
  fetch: (request: Request | string, init?: RequestInit) => Promise<Response>;
  registration: { unregister(): Promise<boolean> };
  clients: { matchAll(options: object): Promise<readonly unknown[]>; claim(): Promise<void> };
  skipWaiting(): Promise<void>;
  addEventListener(kind: "install" | "activate", listener: (event: Extendable) => void): void;
  addEventListener(kind: "fetch", listener: (event: Fetched) => void): void;
  addEventListener(kind: "message", listener: (event: Messaged) => void): void;
}

const OURS = "aidbridge-shell-";
const PAGE = "/";
/** How long to wait for the server before using the cached copy; at 280 kbit/s the page takes three seconds. */
const PAGE_MS = 8_000;
const FRESH_MS = 3_000;
/** `Vary` on encodings does not matter here, because the browser has decompressed the files. */
const match = { ignoreVary: true };

export function shellWorker(scope: Scope, build: Build): void {
  const name = OURS + build.version;
  const open = () => scope.caches.open(name);
  /** Does not recreate a deleted cache. */
  const opened = async () => ((await scope.caches.has(name)) ? open() : null);

  /** All or nothing: without its whole shell the worker is not installed, and the browser tries again later. */
  async function keepShell(): Promise<void> {
    const cache = await open();
    const page = await scope.fetch(PAGE, { cache: "no-cache" });
    // A server that is being replaced may send another version's page. A redirected answer cannot be stored for a path.
    if (!page.ok || page.redirected || !(await page.clone().text()).includes(build.entry))
      throw new Error("the page is another version's");
    await cache.addAll([...build.files, ...FRESH]);
    await cache.put(PAGE, page);
  }

  async function forget(which: (shelf: string) => boolean): Promise<void> {
    const ours = (await scope.caches.keys()).filter((shelf) => shelf.startsWith(OURS) && which(shelf));
    await Promise.all(ours.map((shelf) => scope.caches.delete(shelf)));
  }

  async function forgetAll(): Promise<void> {
    await scope.registration.unregister();
    await forget(() => true);
  }

  async function file(request: Request): Promise<Response> {
    const cache = await opened();
    const kept = await cache?.match(request, match);
    if (kept) return kept;
    const answer = await scope.fetch(request);
    if (answer.ok && answer.type === "basic") await cache?.put(request, answer.clone());
    return answer;
  }

  /** The server's answer, unless it is late or a server error. */
  async function fromServer(asked: Promise<Response>, key: string, ms: number): Promise<Response> {
    const kept = await (await opened())?.match(key, match);
    if (!kept) return asked;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<Response>((done) => (timer = setTimeout(done, ms, kept)));
    const answered = asked.then(
      (answer) => (answer.status >= 500 ? kept : answer),
      () => kept,
    );
    return Promise.race([answered, late]).finally(() => clearTimeout(timer));
  }

  /** Settings are cached as they change; the rest belongs to this version's shell. */
  async function fresh(request: Request, path: string): Promise<Response> {
    const asked = scope.fetch(request).then(async (answer) => {
      if (answer.ok && path === SETTINGS) await (await opened())?.put(path, answer.clone());
      return answer;
    });
    return fromServer(asked, path, FRESH_MS);
  }

  async function keepUsed(files: readonly string[]): Promise<void> {
    const cache = await opened();
    if (!cache) return;
    const wanted = files.filter(isBuiltFile);
    const missing = await Promise.all(wanted.map(async (path) => ((await cache.match(path, match)) ? [] : [path])));
    await cache.addAll(missing.flat());
  }

  /**
   * A waiting worker takes over when the only open page has its version. An older page keeps its worker and files until
   * it is closed or reloaded.
   */
  async function takeOver(entry: string): Promise<void> {
    if (entry !== build.entry) return;
    const pages = await scope.clients.matchAll({ type: "window", includeUncontrolled: true });
    if (pages.length <= 1) await scope.skipWaiting();
  }

  scope.addEventListener("install", (event) => event.waitUntil(keepShell()));
  scope.addEventListener("activate", (event) =>
    event.waitUntil(
      (async () => {
        await forget((shelf) => shelf !== name);
        await scope.clients.claim();
      })(),
    ),
  );
  scope.addEventListener("message", (event) => {
    const { data } = event;
    const work =
      data.kind === "used"
        ? keepUsed(data.files).catch(() => undefined)
        : data.kind === "loaded"
          ? takeOver(data.entry)
          : forgetAll();
    event.waitUntil(work);
  });
  scope.addEventListener("fetch", (event) => {
    const { request } = event;
    const road = roadOf(request, scope.location.origin);
    if (road === "file") event.respondWith(file(request));
    else if (road === "page") event.respondWith(fromServer(scope.fetch(request), PAGE, PAGE_MS));
    else if (road === "fresh") event.respondWith(fresh(request, new URL(request.url).pathname));
  });
}
