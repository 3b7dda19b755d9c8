/** Which way each request of a page goes through the service worker. Pure. */
import { paths } from "@/app/paths";

/**
 * `file`: a built file whose name says what is in it: the kept copy is as good as any. `fresh`: small files of the shell without such
 * a name, and `page`: an address of the app; both come from the server, and from the kept copy when it does not answer.
 * `network`: everything else, which the worker does not touch: above all what the APIs answer.
 */
export type Road = "file" | "fresh" | "page" | "network";

/** The installation's, not a person's. */
export const SETTINGS = "/app-config.json";
/** What `index.html` asks for besides built files. */
export const FRESH: readonly string[] = ["/theme.js", "/favicon.svg", SETTINGS];

export const isBuiltFile = (path: string): boolean => /^\/assets\/[\w.-]+$/.test(path);

const firstPart = (path: string): string => path.split(/[/?]/)[1] ?? "";
/** Of every address of the app. A list of what is ours: a mailed link to `/auth/v1/verify` is a page to the browser, too. */
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
