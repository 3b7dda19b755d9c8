import { paths } from "../paths";
import type { AppRoute } from "./types";

const staff = ["admin", "manager", "employee"] as const;

/** Pages of nonprofit staff. */
export const nonprofitRoutes: AppRoute[] = [
  {
    path: paths.nonprofitDashboard,
    lazy: () => import("./nonprofit/dashboard"),
    access: { withoutOrganization: true },
  },
  {
    path: paths.nonprofitOnboarding,
    lazy: () => import("./nonprofit/onboarding"),
    access: { withoutOrganization: true, withoutNonprofitRole: true },
    layout: "site",
  },
  {
    path: paths.nonprofitRoleSelection,
    lazy: () => import("./nonprofit/role-selection"),
    access: { withoutOrganization: true, withoutNonprofitRole: true },
    layout: "site",
  },
  { path: paths.nonprofitRequests, lazy: () => import("./nonprofit/requests"), access: { nonprofitRoles: staff } },
  { path: paths.nonprofitRequest(":id"), lazy: () => import("./nonprofit/request"), access: { nonprofitRoles: staff } },
  {
    path: paths.nonprofitRequestDetails(":id"),
    lazy: () => import("./nonprofit/request"),
    access: { nonprofitRoles: staff },
  },
];
