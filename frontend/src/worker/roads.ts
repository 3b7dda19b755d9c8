/** Decides how the service worker handles each request of a page. Pure. */
import { paths } from "@/app/paths";

/**
 * `file`: a built file with a content hash in its name, served from the cache. `fresh`: small files of the shell
 * without such a name, and `page`: a page of the app; both come from the server, or from the cache if it does not
 * answer. `network`: everything else, above all the APIs, which the worker does not touch.
 */
export type Road = "file" | "fresh" | "page" | "network";

/** The installation's, not a person's. */
export const SETTINGS = "/app-config.json";
/** Files used by `index.html` besides built files. */
export const FRESH: readonly string[] = ["/theme.js", "/favicon.svg", SETTINGS];

export const isBuiltFile = (path: string): boolean => /^\/assets\/[\w.-]+$/.test(path);

const firstPart = (path: string): string => path.split(/[/?]/)[1] ?? "";
/**
 * The first segments of the app's paths. An allow-list, because a mailed link to `/auth/v1/verify` is a page for the
 * browser, too.
 */
const ours: ReadonlySet<string> = new Set(
  Object.values(paths).map((path) => firstPart(typeof path === "string" ? path : path(":id"))),
);

export function roadOf({ method, mode, url }: Pick<Request, "method" | "mode" | "url">, origin: string): Road {
  const { origin: host, pathname } = new URL(url);
  if (method !== "GET" || host !== origin) return "network";
  if (isBuiltFile(pathname)) return "file";
  if (FRESH.includes(pathname)) return "fresh";
  return mode === "navigate" && ours.has(firstPart(pathname)) ? "page" : "network";
}
