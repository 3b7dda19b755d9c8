import { paths } from "../paths";
import type { AppRoute } from "./types";

/** Any signed-in user. */
export const accountRoutes: AppRoute[] = [
  {
    path: paths.dashboard,
    lazy: () => import("./account/dashboard"),
    access: { withoutNonprofitRole: true },
    layout: "site",
  },
];
