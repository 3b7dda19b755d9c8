import {
  HandHeart,
  Inbox,
  LayoutDashboard,
  List,
  Settings,
  SquarePen,
  Users,
  Wallet,
  type LucideIcon,
} from "lucide-react";
import type { AppUser, Organization } from "@/lib/session";
import { t } from "@/messages";
import { paths } from "../paths";

export interface MenuItem {
  to: string;
  label: string;
  /** For the phone's tab bar, where the label is too long. */
  short?: string;
  Icon: LucideIcon;
  /** A second address of the same page. */
  alias?: string;
  /** Prefixes of the paths below this entry. */
  also?: readonly string[];
}

/** True when the page at `pathname` lies under this entry. */
export const isCurrent = ({ to, alias = to, also = [] }: MenuItem, pathname: string): boolean =>
  [to, alias, ...also].some((start) => pathname === start || pathname.startsWith(`${start}/`));

export interface Crumb {
  label: string;
  /** Absent for the page itself, and for a place that has none. */
  to?: string;
}

/** Where a page lies: `place` (the organization or the role), the menu's entry, and below an entry the page's own `name`. */
export function crumbsOf(place: string, items: readonly MenuItem[], pathname: string, name: string | null): Crumb[] {
  const entry = items.find((item) => isCurrent(item, pathname));
  if (entry && (pathname === entry.to || pathname === entry.alias)) return [{ label: place }, { label: entry.label }];
  return [
    { label: place },
    ...(entry ? [{ label: entry.label, to: entry.to }] : []),
    ...(name ? [{ label: name }] : []),
  ];
}

/** The sidebar's entries by role (section 6). */
export function shellMenu(
  user: Pick<AppUser, "role" | "nonprofitRole">,
  organization: Pick<Organization, "role"> | null,
): MenuItem[] {
  switch (user.role) {
    case "nonprofit": {
      const role = organization?.role ?? user.nonprofitRole;
      const all: MenuItem[] = [
        { to: paths.nonprofitDashboard, label: t("shell.menuDashboard"), Icon: LayoutDashboard },
        {
          to: paths.nonprofitRequests,
          label: t("shell.menuRequests"),
          Icon: Inbox,
          also: ["/nonprofit-request", "/nonprofit-request-details"],
        },
      ];
      if (role === "volunteer") return all.slice(0, 1);
      if (role !== "admin" && role !== "manager") return all;
      return [
        ...all,
        {
          to: paths.nonprofitBudget,
          label: t("shell.menuBudget"),
          Icon: Wallet,
          alias: paths.budget,
          also: [paths.donorCommunication],
        },
        {
          to: paths.nonprofitTeam,
          label: t("shell.menuTeam"),
          short: t("shell.menuTeamShort"),
          Icon: Users,
          alias: paths.teamManagement,
        },
        {
          to: paths.nonprofitSettings,
          label: t("shell.menuSettings"),
          Icon: Settings,
          also: [paths.categoriesManagement],
        },
      ];
    }
    case "donor":
      return [
        { to: paths.donorDashboard, label: t("shell.menuDashboard"), Icon: LayoutDashboard },
        { to: paths.donate, label: t("shell.menuDonate"), short: t("shell.menuDonateShort"), Icon: HandHeart },
      ];
    case "requester":
      return [
        { to: paths.requesterDashboard, label: t("shell.menuDashboard"), Icon: LayoutDashboard },
        { to: paths.submitRequest, label: t("shell.menuNewRequest"), Icon: SquarePen },
        {
          to: paths.myRequests,
          label: t("shell.menuMyRequests"),
          Icon: List,
          also: ["/request", "/request-details", "/request-status", paths.requestDrafts],
        },
      ];
    case null:
      return [];
  }
}
