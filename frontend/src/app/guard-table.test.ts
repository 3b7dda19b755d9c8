/**
 * Who may open which address, and where everybody else is redirected: the whole table of the specification's section 6,
 * as decided by the router's guards. e2e/guards.spec.ts shows each rule once in a browser.
 */
import { matchPath } from "react-router-dom";
import { describe, expect, it } from "vitest";
import type { Session } from "@/lib/session";
import { anOrganization, aSession, aUser } from "@/testing/factories";
import { dashboardTarget } from "./dashboard-target";
import { decide, type Access } from "./guard";
import { paths } from "./paths";
import { audiences } from "./router";

const staffOf = (role: "admin" | "manager" | "employee") =>
  aSession({ user: aUser({ role: "nonprofit", nonprofitRole: role }), organization: anOrganization({ role }) });

const VISITORS = {
  "signed out": aSession({ status: "signed-out", user: null }),
  "requester without a nonprofit": aSession({ selectedNonprofit: null }),
  requester: aSession(),
  admin: staffOf("admin"),
  manager: staffOf("manager"),
  employee: staffOf("employee"),
  "admin without an organization": aSession({ user: aUser({ role: "nonprofit", nonprofitRole: "admin" }) }),
  "nonprofit without a role in it": aSession({ user: aUser({ role: "nonprofit", nonprofitRole: null }) }),
  donor: aSession({ user: aUser({ role: "donor" }) }),
} satisfies Record<string, Session>;
type Visitor = keyof typeof VISITORS;

/** Where an address redirects, and the toasts on the way; null: it stays. */
type Outcome = { to: string; says?: readonly string[] } | null;
const STAYS = null;

const LOGIN: Outcome = {
  to: "/login",
  says: ["Authentication required", "Please log in to access the dashboard."],
};
const SELECT: Outcome = { to: "/select-nonprofit", says: ["Nonprofit selection required"] };
const ONBOARDING: Outcome = {
  to: "/nonprofit-onboarding",
  says: ["Organization not found", "Please complete your organization setup first"],
};
const denied = (sentence: string): Outcome => ({ to: "/nonprofit-dashboard", says: ["Access Denied", sentence] });
const DENIED = denied("You don't have permission to view this page.");
const DENIED_TEAM = denied("Only administrators can manage team members.");
const DENIED_BUDGET = denied("You don't have permission to view the budget page.");

/** Where `/dashboard` leads each of them, and with it every page of another audience. */
const HOME: Record<Visitor, Outcome> = {
  "signed out": LOGIN,
  "requester without a nonprofit": SELECT,
  requester: { to: "/requester-dashboard" },
  admin: { to: "/nonprofit-dashboard" },
  manager: { to: "/nonprofit-dashboard" },
  employee: { to: "/nonprofit-dashboard" },
  "admin without an organization": { to: "/nonprofit-dashboard" },
  "nonprofit without a role in it": { to: "/nonprofit-role-selection" },
  donor: { to: "/donor-dashboard" },
};

type Row = Partial<Record<Visitor, Outcome>>;

const visitors = Object.keys(VISITORS) as Visitor[];
const everybody: Row = Object.fromEntries(
  visitors.map((visitor) => [visitor, visitor === "signed out" ? LOGIN : STAYS]),
);
const requesters: Row = { requester: STAYS, "requester without a nonprofit": SELECT };
const staff: Row = { admin: STAYS, manager: STAYS, employee: STAYS, "admin without an organization": ONBOARDING };
const managers: Row = { ...staff, employee: DENIED };
const budget: Row = { ...staff, employee: DENIED_BUDGET };
const founders: Row = {
  ...staff,
  "admin without an organization": STAYS,
  "nonprofit without a role in it": STAYS,
};

/** Visitors not named in a row are redirected home. */
const TABLE: Record<string, Row> = {
  "/role-selection": everybody,
  "/profile-settings": everybody,
  "/profile": everybody,
  "/user-profile": everybody,
  "/notifications": everybody,

  "/requester-dashboard": requesters,
  "/my-requests": requesters,
  "/request-drafts": requesters,
  "/request/REQ-001": requesters,
  "/request-details/REQ-001": requesters,
  "/request-status/REQ-001": requesters,
  "/select-nonprofit": { requester: STAYS, "requester without a nonprofit": STAYS },

  "/nonprofit-dashboard": { ...staff, "admin without an organization": STAYS },
  // the page itself redirects those who already have an organization: e2e/guards.spec.ts
  "/nonprofit-onboarding": founders,
  "/nonprofit-role-selection": founders,
  "/nonprofit-requests": staff,
  "/nonprofit-request/REQ-001": staff,
  "/nonprofit-request-details/REQ-001": staff,
  "/nonprofit-team": managers,
  "/team-management": { ...staff, manager: DENIED_TEAM, employee: DENIED_TEAM },
  "/nonprofit-settings": managers,
  "/categories-management": managers,
  "/nonprofit-budget": budget,
  "/budget": budget,
  "/nonprofit-donor-communication": managers,

  "/donor-dashboard": { donor: STAYS },
};

/** The router's guard for an address; null: the page is public. */
function guardOf(address: string): Access | null {
  for (const { routes, access } of Object.values(audiences)) {
    const route = routes.find(({ path }) => path && matchPath(path, address));
    if (route) return { ...access, ...route.access };
  }
  return null;
}

/** Follows the redirects of the guards and `/dashboard` until a page lets the visitor in. */
function open(session: Session, address: string): Outcome {
  const says: string[] = [];
  let here = address;
  for (let steps = 0; steps < 5; steps++) {
    const { pathname, searchParams } = new URL(here, "https://here.invalid");
    // visitors stopped on the way continue afterwards
    expect(searchParams.get("next") ?? address).toBe(address);
    const access = guardOf(pathname);
    const verdict = access ? decide(session, access, here) : { kind: "allow" as const };
    if (verdict.kind === "redirect") {
      if (verdict.toast) says.push(verdict.toast.title, verdict.toast.description ?? "");
      here = verdict.to;
    } else if (verdict.kind !== "allow") {
      throw new Error(`${here}: ${verdict.kind}`);
    } else if (here === paths.dashboard && session.user) {
      here = dashboardTarget(session.user) ?? paths.home;
    } else {
      return here === address ? STAYS : { to: pathname, says: says.filter(Boolean) };
    }
  }
  throw new Error(`${address} leads in circles`);
}

describe.each(Object.entries(TABLE))("%s", (address, row) => {
  it("is guarded", () => expect(guardOf(address)).not.toBeNull());

  it.each(visitors)("%s", (visitor) => {
    const outcome = visitor in row ? (row[visitor] ?? STAYS) : HOME[visitor];
    expect(open(VISITORS[visitor], address)).toEqual(outcome && { says: [], ...outcome });
  });
});

it.each(visitors)("/dashboard redirects to the home page: %s", (visitor) => {
  expect(open(VISITORS[visitor], paths.dashboard)).toEqual({ says: [], ...HOME[visitor] });
});

it("lists every guarded route", () => {
  const guardedPaths = Object.values(audiences).flatMap(({ routes }) => routes.map(({ path }) => path ?? ""));
  const listed = [...Object.keys(TABLE), paths.dashboard];
  expect(guardedPaths.filter((path) => !listed.some((address) => matchPath(path, address)))).toEqual([]);
});
