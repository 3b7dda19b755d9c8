import { describe, expect, it } from "vitest";
import { anOrganization, aSession, aUser } from "@/testing/factories";
import { dashboardTarget } from "./dashboard-target";
import { decide, type Access, type Verdict } from "./guard";
import { loginAfterFailure, safeNext } from "./paths";
import { audiences } from "./router";

const requester = aSession();
const withoutSelection = aSession({ selectedNonprofit: null });
const staff = (role: "admin" | "manager" | "employee") =>
  aSession({ user: aUser({ role: "nonprofit", nonprofitRole: role }), organization: anOrganization({ role }) });
const founder = aSession({ user: aUser({ role: "nonprofit", nonprofitRole: "admin" }), organization: null });
const uninvited = aSession({ user: aUser({ role: "nonprofit", nonprofitRole: "employee" }), organization: null });
const undecided = aSession({ user: aUser({ role: "nonprofit", nonprofitRole: null }), organization: null });
const donor = aSession({ user: aUser({ role: "donor" }) });
const roleless = aSession({ user: aUser({ role: null }) });
const signedOut = aSession({ status: "signed-out", user: null });

/** A verdict in one word: 'allow', or its redirect. */
const word = (verdict: Verdict) => ("to" in verdict ? `${verdict.kind} ${verdict.to}` : verdict.kind);

describe("decide", () => {
  it("waits while the session is loading and reports a failure", () => {
    expect(decide(aSession({ status: "loading", user: null }), {}, "/x").kind).toBe("wait");
    expect(decide(aSession({ status: "failed", user: null }), {}, "/x").kind).toBe("failed");
  });

  it("redirects a signed-out visitor to login with the specified toast", () => {
    expect(decide(signedOut, {}, "/my-requests")).toEqual({
      kind: "redirect",
      to: "/login?next=%2Fmy-requests",
      toast: { title: "Authentication required", description: "Please log in to access the dashboard." },
    });
  });

  it("continues to a mail's link through every choice on the way", () => {
    const link = "/request/REQ-001?tab=files";
    const next = `?next=${encodeURIComponent(link)}`;
    expect(word(decide(signedOut, {}, link))).toBe(`redirect /login${next}`);
    expect(word(decide(withoutSelection, { roles: ["requester"] }, link))).toBe(`redirect /select-nonprofit${next}`);
    // the dashboard is where everybody ends up anyway
    expect(word(decide(signedOut, {}, "/dashboard"))).toBe("redirect /login");
  });

  it("leads back after an expired session and shows no message after 'Logout'", () => {
    const expired = decide({ ...signedOut, ended: "expired" }, {}, "/request/1?tab=files");
    expect(word(expired)).toBe("redirect /login?next=%2Frequest%2F1%3Ftab%3Dfiles");
    expect(decide({ ...signedOut, ended: "choice" }, {}, "/my-requests")).toEqual({ kind: "redirect", to: "/login" });
  });

  it("signs out an account without a role", () => {
    expect(decide(roleless, {}, "/dashboard")).toEqual({
      kind: "sign-out",
      to: "/login",
      toast: {
        title: "Account setup incomplete",
        description: "Your account setup is incomplete. Please contact support.",
      },
    });
  });

  it("lets an account without a role choose one", () => {
    expect(decide(roleless, { withoutRole: true }, "/role-selection").kind).toBe("allow");
  });

  const table: [name: string, access: Access, expected: Record<string, string>][] = [
    [
      "a requester page",
      { roles: ["requester"] },
      {
        requester: "allow",
        withoutSelection: "redirect /select-nonprofit?next=%2Fhere",
        donor: "redirect /dashboard",
        admin: "redirect /dashboard",
        employee: "redirect /dashboard",
      },
    ],
    [
      "select a nonprofit",
      { roles: ["requester"], withoutSelectedNonprofit: true },
      { requester: "allow", withoutSelection: "allow", donor: "redirect /dashboard" },
    ],
    [
      "a nonprofit page",
      { roles: ["nonprofit"] },
      {
        requester: "redirect /dashboard",
        donor: "redirect /dashboard",
        admin: "allow",
        manager: "allow",
        employee: "allow",
        undecided: "redirect /nonprofit-role-selection?next=%2Fhere",
        founder: "redirect /nonprofit-onboarding?next=%2Fhere",
        uninvited: "no-membership",
      },
    ],
    [
      "a page for managers and admins",
      { roles: ["nonprofit"], nonprofitRoles: ["admin", "manager"] },
      { admin: "allow", manager: "allow", employee: "redirect /nonprofit-dashboard", requester: "redirect /dashboard" },
    ],
    [
      "a page for admins",
      { roles: ["nonprofit"], nonprofitRoles: ["admin"] },
      { admin: "allow", manager: "redirect /nonprofit-dashboard", employee: "redirect /nonprofit-dashboard" },
    ],
    [
      "nonprofit role selection",
      { roles: ["nonprofit"], withoutNonprofitRole: true, withoutOrganization: true },
      { undecided: "allow", founder: "allow", uninvited: "allow", requester: "redirect /dashboard" },
    ],
    [
      "a donor page",
      { roles: ["donor"] },
      { donor: "allow", requester: "redirect /dashboard", admin: "redirect /dashboard" },
    ],
    [
      "a page for everyone",
      {},
      { requester: "allow", withoutSelection: "allow", donor: "allow", undecided: "allow", admin: "allow" },
    ],
  ];
  const people = {
    requester,
    withoutSelection,
    donor,
    undecided,
    founder,
    uninvited,
    admin: staff("admin"),
    manager: staff("manager"),
    employee: staff("employee"),
  };
  for (const [name, access, expected] of table) {
    for (const [who, verdict] of Object.entries(expected)) {
      it(`${name}, ${who}: ${verdict}`, () => {
        expect(word(decide(people[who as keyof typeof people], access, "/here"))).toBe(verdict);
      });
    }
  }

  it("gives the reason when the role in the organization is not sufficient", () => {
    const verdict = decide(staff("employee"), { roles: ["nonprofit"], nonprofitRoles: ["admin"] }, "/team-management");
    expect("toast" in verdict && verdict.toast).toEqual({
      title: "Access Denied",
      description: "You don't have permission to view this page.",
    });
  });
});

describe("the route table", () => {
  it("guards every audience's routes for that audience", () => {
    expect(audiences.requester.access.roles).toEqual(["requester"]);
    expect(audiences.nonprofit.access.roles).toEqual(["nonprofit"]);
    expect(audiences.donor.access.roles).toEqual(["donor"]);
    for (const { routes } of Object.values(audiences)) {
      expect(routes.filter((route) => route.access?.roles)).toEqual([]);
    }
  });

  it("declares no path twice", () => {
    const all = Object.values(audiences).flatMap(({ routes }) => routes.map((route) => route.path));
    expect(all.length).toBe(new Set(all).size);
  });
});

describe("dashboardTarget", () => {
  it.each([
    [{ role: "requester", nonprofitRole: null }, "/requester-dashboard"],
    [{ role: "nonprofit", nonprofitRole: "admin" }, "/nonprofit-dashboard"],
    [{ role: "nonprofit", nonprofitRole: "manager" }, "/nonprofit-dashboard"],
    [{ role: "nonprofit", nonprofitRole: "employee" }, "/nonprofit-dashboard"],
    [{ role: "nonprofit", nonprofitRole: "volunteer" }, "/nonprofit-role-selection"],
    [{ role: "nonprofit", nonprofitRole: null }, "/nonprofit-role-selection"],
    [{ role: "donor", nonprofitRole: null }, "/donor-dashboard"],
    [{ role: null, nonprofitRole: null }, null],
  ] as const)("%o goes to %s", (user, target) => {
    expect(dashboardTarget(user)).toBe(target);
  });
});

describe("loginAfterFailure", () => {
  const used = "#error=access_denied&error_code=otp_expired&error_description=Email+link+is+invalid";
  const told = "error=access_denied&error_code=otp_expired&error_description=Email+link+is+invalid";
  it.each([
    ["/request/REQ-001", "", used, `/login?next=%2Frequest%2FREQ-001&${told}`],
    ["/profile-settings", "?tab=password", "#error=x", "/login?next=%2Fprofile-settings%3Ftab%3Dpassword&error=x"],
    ["/dashboard", "", used, `/login?${told}`],
    ["/", "", used, `/login?${told}`],
    ["/login", "?next=%2Frequest%2FREQ-001", "#error=x", "/login?next=%2Frequest%2FREQ-001&error=x"],
    ["/login", "?next=https%3A%2F%2Fevil.example", "#error=x", "/login?error=x"],
    // it tells by itself what is wrong with its link
    ["/reset-password", "", used, null],
    ["/request/REQ-001", "", "#answers", null],
  ])("%s%s%s leads to %s", (pathname, search, hash, to) => {
    expect(loginAfterFailure({ pathname, search, hash })).toBe(to);
  });
});

describe("safeNext", () => {
  it.each([
    ["/team-invitation?token=a", "/team-invitation?token=a"],
    ["/request/REQ-001?tab=files#top", "/request/REQ-001?tab=files#top"],
    ["https://evil.example", null],
    ["/\t/evil.example", null],
    ["/\n//evil.example", null],
    ["//evil.example", null],
    ["/\\evil.example", null],
    ["javascript:alert(1)", null],
    ["", null],
    [null, null],
  ])("%s becomes %s", (next, expected) => {
    expect(safeNext(next)).toBe(expected);
  });
});
