import type { AppRoute } from "./types";

/** Pages of requesters. */
export const requesterRoutes: AppRoute[] = [];
