/**
 * Who may open a page, as one pure decision (section 6). It guides people to where they can
 * continue; the policies in the database protect the data.
 */
import type { AccountRole, NonprofitRole, Session } from "@/lib/session";
import { t } from "@/messages";
import "@/messages/en/shell";
import { loginThen, paths, withNext } from "./paths";

export interface Access {
  /** Account roles that may open it; absent: everyone signed in. */
  roles?: readonly AccountRole[];
  /** Roles inside the organization; absent: every member. */
  nonprofitRoles?: readonly NonprofitRole[];
  /** Requester pages that do not need a selected nonprofit. */
  withoutSelectedNonprofit?: boolean;
  /** Nonprofit pages that do not need an organization. */
  withoutOrganization?: boolean;
  /** Pages that choose the account role themselves. */
  withoutRole?: boolean;
  /** Nonprofit pages that choose the role inside the organization themselves. */
  withoutNonprofitRole?: boolean;
  /** The page's own text of 'Access Denied' for a wrong nonprofit role. */
  denied?: { description: string };
}

export interface GuardToast {
  title: string;
  description?: string;
  /** The next step of a new account, not a refusal. */
  variant?: "info";
}

export type Verdict =
  | { kind: "allow" }
  | { kind: "wait" }
  | { kind: "failed" }
  | { kind: "redirect"; to: string; toast?: GuardToast }
  /** The account has no role: end the session, then to login. */
  | { kind: "sign-out"; to: string; toast: GuardToast }
  /** Nonprofit staff without a membership: 'ask your admin for an invitation'. */
  | { kind: "no-membership" };

type Subject = Pick<Session, "status" | "ended" | "user" | "organization" | "selectedNonprofit">;

/** `here` is the address asked for, with its query. */
export function decide(session: Subject, access: Access, here: string): Verdict {
  if (session.status === "loading") return { kind: "wait" };
  if (session.status === "failed") return { kind: "failed" };
  if (session.status === "signed-out" || !session.user) {
    if (session.ended === "choice") return { kind: "redirect", to: paths.login };
    if (session.ended === "expired") {
      return {
        kind: "redirect",
        to: loginThen(here),
        toast: { title: t("shell.authRequired"), description: t("shell.sessionExpired") },
      };
    }
    return {
      kind: "redirect",
      to: loginThen(here),
      toast: { title: t("shell.authRequired"), description: t("shell.authRequiredBody") },
    };
  }

  const { role, nonprofitRole } = session.user;
  if (role === null && !access.withoutRole) {
    return {
      kind: "sign-out",
      to: paths.login,
      toast: { title: t("shell.setupIncomplete"), description: t("shell.setupIncompleteBody") },
    };
  }

  if (access.roles && (role === null || !access.roles.includes(role))) return { kind: "redirect", to: paths.dashboard };

  if (role === "requester" && access.roles?.includes("requester") && !access.withoutSelectedNonprofit) {
    if (!session.selectedNonprofit) {
      return {
        kind: "redirect",
        to: withNext(paths.selectNonprofit, here),
        toast: { title: t("shell.selectionRequired"), variant: "info" },
      };
    }
  }

  if (role === "nonprofit" && access.roles?.includes("nonprofit")) {
    if (!nonprofitRole && !access.withoutNonprofitRole)
      return { kind: "redirect", to: withNext(paths.nonprofitRoleSelection, here) };
    if (!session.organization && !access.withoutOrganization) {
      return nonprofitRole === "admin"
        ? {
            kind: "redirect",
            to: withNext(paths.nonprofitOnboarding, here),
            toast: { title: t("shell.organizationNotFound"), description: t("shell.organizationNotFoundBody") },
          }
        : { kind: "no-membership" };
    }
    const acting = session.organization?.role ?? nonprofitRole;
    if (access.nonprofitRoles && (!acting || !access.nonprofitRoles.includes(acting))) {
      return {
        kind: "redirect",
        to: paths.nonprofitDashboard,
        toast: {
          title: t("shell.accessDenied"),
          description: access.denied?.description ?? t("shell.accessDeniedPage"),
        },
      };
    }
  }
  return { kind: "allow" };
}
