import { beforeEach, expect, it, vi } from "vitest";
import { shellWorker, type Build, type Scope, type Told } from "./shell";

const ORIGIN = "https://aid.example";
type Listener = (event: Record<string, unknown>) => void;

/** Caches of a browser, by name; one for all workers of a test. */
let shelves: Map<string, Map<string, string>>;
/** The server's answers; null when offline, 'silent' if it never answers. */
let server: Map<string, string> | null | "silent" | 503;
let asked: string[];
let pages: number;
/** The server leads every request elsewhere. */
let redirects: boolean;

beforeEach(() => {
  shelves = new Map();
  asked = [];
  pages = 1;
  redirects = false;
});

const pathOf = (request: Request | string) =>
  new URL(typeof request === "string" ? request : request.url, ORIGIN).pathname;

async function fetched(request: Request | string): Promise<Response> {
  const path = pathOf(request);
  asked.push(path);
  if (server === null) throw new TypeError("Failed to fetch");
  if (server === "silent") return new Promise(() => {});
  if (server === 503) return new Response("", { status: 503 });
  const body = server.get(path);
  const answer = new Response(body ?? "", { status: body === undefined ? 404 : 200 });
  Object.defineProperties(answer, { type: { value: "basic" }, redirected: { value: redirects } });
  return answer;
}

const cacheOf = (shelf: Map<string, string>) => ({
  match: async (request: Request | string) => {
    const body = shelf.get(pathOf(request));
    return body === undefined ? undefined : new Response(body);
  },
  put: async (request: Request | string, answer: Response) => void shelf.set(pathOf(request), await answer.text()),
  addAll: async (paths: string[]) => {
    const answers = await Promise.all(paths.map(fetched));
    if (answers.some(({ ok }) => !ok)) throw new TypeError("a file is missing");
    await Promise.all(paths.map(async (path, at) => shelf.set(path, (await answers[at]?.text()) ?? "")));
  },
});

function worker(build: Build) {
  const listeners = new Map<string, Listener>();
  const skipWaiting = vi.fn(() => Promise.resolve());
  const unregister = vi.fn(() => Promise.resolve(true));
  shellWorker(
    {
      location: { origin: ORIGIN },
      caches: {
        open: async (name: string) => {
          if (!shelves.has(name)) shelves.set(name, new Map());
          return cacheOf(shelves.get(name) as Map<string, string>);
        },
        has: async (name: string) => shelves.has(name),
        keys: async () => [...shelves.keys()],
        delete: async (name: string) => shelves.delete(name),
      },
      fetch: fetched,
      clients: { matchAll: async () => Array.from({ length: pages }), claim: async () => undefined },
      registration: { unregister },
      skipWaiting,
      addEventListener: (kind: string, listener: Listener) => void listeners.set(kind, listener),
    } as unknown as Scope,
    build,
  );
  const happen = async (kind: string, more: object = {}) => {
    let work: unknown;
    const hold = (promise: unknown) => void (work = promise);
    listeners.get(kind)?.({ waitUntil: hold, respondWith: hold, ...more });
    return work;
  };
  return {
    skipWaiting,
    unregister,
    install: () => happen("install"),
    activate: () => happen("activate"),
    told: (data: Told) => happen("message", { data }),
    /** The page's answer; null if the worker does not handle the request. */
    ask: async (path: string, mode = "cors", method = "GET") => {
      const answer = (await happen("fetch", { request: { method, mode, url: ORIGIN + path } })) as Response | undefined;
      return answer === undefined ? null : answer.text();
    },
  };
}

const version = (n: number): Build => ({
  version: `v${n}`,
  entry: `/assets/index-${n}.js`,
  files: [`/assets/index-${n}.js`],
});
const deployed = (n: number) =>
  new Map([
    ["/", `<script src="/assets/index-${n}.js">`],
    [`/assets/index-${n}.js`, `code ${n}`],
    ["/assets/es-1.js", "Spanish"],
    ["/theme.js", `theme ${n}`],
    ["/favicon.svg", "icon"],
    ["/app-config.json", `settings ${n}`],
    ["/rest/v1/requests", "somebody's requests"],
    ["/login", "login"],
  ]);
const kept = () => [...shelves.values()].flatMap((shelf) => [...shelf.keys()]);

it("serves cached page and files offline and the server's online", async () => {
  server = deployed(1);
  const one = worker(version(1));
  await one.install();
  await one.activate();
  expect(await one.ask("/login", "navigate")).toBe("login");
  asked = [];
  expect(await one.ask("/assets/index-1.js")).toBe("code 1");
  expect(asked).toEqual([]);

  for (const down of [null, 503] as const) {
    server = down;
    expect(await one.ask("/submit-request", "navigate")).toContain("index-1.js");
    expect(await one.ask("/theme.js")).toBe("theme 1");
    expect(await one.ask("/app-config.json")).toBe("settings 1");
  }
  // files reported by the page are cached too, but only built files
  server = deployed(1);
  await one.told({ kind: "used", files: ["/assets/es-1.js", "/rest/v1/requests", "/assets/index-1.js"] });
  server = null;
  expect(await one.ask("/assets/es-1.js")).toBe("Spanish");
  expect(kept()).not.toContain("/rest/v1/requests");
});

it("does not wait indefinitely for an unresponsive server", async () => {
  server = deployed(1);
  const one = worker(version(1));
  await one.install();
  server = "silent";
  vi.useFakeTimers();
  const page = one.ask("/submit-request", "navigate");
  await vi.advanceTimersByTimeAsync(8_000);
  expect(await page).toContain("index-1.js");
  vi.useRealTimers();
});

it("passes API responses through without caching them", async () => {
  server = deployed(1);
  const one = worker(version(1));
  await one.install();
  const before = kept();
  for (const [path, mode, method] of [
    ["/rest/v1/requests", "cors", "GET"],
    ["/auth/v1/verify", "navigate", "GET"],
    ["/storage/v1/object/logos/a", "no-cors", "GET"],
    ["/functions/v1/get-categories", "cors", "GET"],
    ["/submit-request", "navigate", "POST"],
  ] as const)
    expect([path, await one.ask(path, mode, method)]).toEqual([path, null]);
  expect(kept()).toEqual(before);
});

it("installs a complete shell of one version or nothing", async () => {
  server = deployed(2);
  await expect(worker(version(1)).install()).rejects.toThrow("another version");
  server = deployed(1);
  redirects = true;
  await expect(worker(version(1)).install()).rejects.toThrow("another version");
  redirects = false;
  server.delete("/assets/index-1.js");
  await expect(worker(version(1)).install()).rejects.toThrow("missing");
});

it("an update keeps files for open pages and takes over when the only page has its version", async () => {
  server = deployed(1);
  const one = worker(version(1));
  await one.install();
  await one.activate();
  shelves.set("another-site-part", new Map());

  server = deployed(2);
  const two = worker(version(2));
  await two.install();
  expect(two.skipWaiting).not.toHaveBeenCalled();
  server = null;
  expect(await one.ask("/assets/index-1.js")).toBe("code 1");
  expect(await one.ask("/", "navigate")).toContain("index-1.js");

  server = deployed(2);
  await two.told({ kind: "loaded", entry: "/assets/index-1.js" });
  pages = 2;
  await two.told({ kind: "loaded", entry: "/assets/index-2.js" });
  expect(two.skipWaiting).not.toHaveBeenCalled();
  pages = 1;
  await two.told({ kind: "loaded", entry: "/assets/index-2.js" });
  expect(two.skipWaiting).toHaveBeenCalledOnce();
  await two.activate();
  expect([...shelves.keys()]).toEqual(["another-site-part", "aidbridge-shell-v2"]);
});

it("removes itself and its caches on request", async () => {
  server = deployed(1);
  const one = worker(version(1));
  await one.install();
  await one.told({ kind: "forget" });
  expect(one.unregister).toHaveBeenCalledOnce();
  expect(await one.ask("/submit-request", "navigate")).toBe("");
  expect(await one.ask("/assets/index-1.js")).toBe("code 1");
  expect(await one.ask("/app-config.json")).toBe("settings 1");
  await one.told({ kind: "used", files: ["/assets/es-1.js"] });
  expect([...shelves.keys()]).toEqual([]);
});
