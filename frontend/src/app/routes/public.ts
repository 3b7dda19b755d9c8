import { paths } from "../paths";
import type { AppRoute } from "./types";

/** Open to everyone, inside header and footer. */
export const publicRoutes: AppRoute[] = [
  { path: paths.home, lazy: () => import("./public/home") },
  { path: paths.notFound, lazy: () => import("./public/not-found") },
];
