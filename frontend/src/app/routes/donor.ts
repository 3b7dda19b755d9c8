import type { AppRoute } from "./types";

/** Pages of donors. */
export const donorRoutes: AppRoute[] = [];
