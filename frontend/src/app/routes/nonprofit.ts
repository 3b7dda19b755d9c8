import { t } from "@/messages";
import "@/messages/en/shell";
import { paths } from "../paths";
import type { AppRoute } from "./types";

const managers = ["admin", "manager"] as const;
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
  { path: paths.nonprofitTeam, lazy: () => import("./nonprofit/team"), access: { nonprofitRoles: managers } },
  {
    path: paths.teamManagement,
    lazy: () => import("./nonprofit/team"),
    access: { nonprofitRoles: ["admin"], denied: { description: t("shell.accessDeniedTeam") } },
  },
  { path: paths.nonprofitSettings, lazy: () => import("./nonprofit/settings"), access: { nonprofitRoles: managers } },
  {
    path: paths.categoriesManagement,
    lazy: () => import("./nonprofit/categories"),
    access: { nonprofitRoles: managers },
  },
  ...[paths.nonprofitBudget, paths.budget].map((path) => ({
    path,
    lazy: () => import("./nonprofit/budget"),
    access: { nonprofitRoles: managers, denied: { description: t("shell.accessDeniedBudget") } },
  })),
  {
    path: paths.donorCommunication,
    lazy: () => import("./nonprofit/donor-communication"),
    access: { nonprofitRoles: managers },
  },
];
