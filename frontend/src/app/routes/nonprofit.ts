import type { AppRoute } from "./types";

/** Pages of nonprofit staff. */
export const nonprofitRoutes: AppRoute[] = [];
