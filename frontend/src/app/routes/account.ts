import { paths } from "../paths";
import type { AppRoute } from "./types";

/** Any signed-in user. */
export const accountRoutes: AppRoute[] = [
  { path: paths.dashboard, lazy: () => import("./account/dashboard"), layout: "site" },
  {
    path: paths.roleSelection,
    lazy: () => import("./account/role-selection"),
    access: { withoutRole: true },
    layout: "site",
  },
  { path: paths.profileSettings, lazy: () => import("./account/profile-settings") },
  { path: paths.profile, lazy: () => import("./account/my-profile") },
  { path: paths.userProfile, lazy: () => import("./account/my-profile") },
  { path: paths.notifications, lazy: () => import("./account/notifications") },
];
