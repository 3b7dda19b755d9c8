import type { AppUser } from "@/lib/session";
import { paths } from "./paths";

/** Where `/dashboard` leads (section 4, 'Dashboard routing by role'); null for a role the app does not know. */
export function dashboardTarget(user: Pick<AppUser, "role" | "nonprofitRole">): string | null {
  switch (user.role) {
    case "requester":
      return paths.requesterDashboard;
    case "nonprofit":
      return user.nonprofitRole === "admin" || user.nonprofitRole === "manager" || user.nonprofitRole === "employee"
        ? paths.nonprofitDashboard
        : paths.nonprofitRoleSelection;
    case "donor":
      return paths.donorDashboard;
    default:
      return null;
  }
}
