import { paths } from "../paths";
import type { AppRoute } from "./types";

/** Pages of donors. */
export const donorRoutes: AppRoute[] = [{ path: paths.donorDashboard, lazy: () => import("./donor/dashboard") }];
