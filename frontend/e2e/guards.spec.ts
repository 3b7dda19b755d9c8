/**
 * Who may open which address, and where others are redirected: the guards of the specification's section 6, rule by
 * rule.
 */
import { type APIRequestContext, type Page } from "@playwright/test";
import { DEMO_PASSWORD } from "./fixtures/api";
import { write } from "./fixtures/staff";
import { expect, test, type People } from "./fixtures/test";
import { watchToasts } from "./fixtures/toasts";

type Credentials = { email: string; password: string };
const demo = (name: string): Credentials => ({ email: `${name}@demo.aidbridge.test`, password: DEMO_PASSWORD });

/** Null: signed out. */
const VISITORS: Record<
  string,
  ((tools: { people: People; request: APIRequestContext }) => Promise<Credentials> | Credentials) | null
> = {
  "signed out": null,
  "requester without a nonprofit": ({ people }) => people.create("requester"),
  requester: () => demo("requester"),
  admin: () => demo("admin"),
  manager: () => demo("manager"),
  employee: () => demo("employee"),
  "admin without an organization": ({ people }) => people.create("nonprofit"),
  "nonprofit without a role in it": async ({ people, request }) => {
    const account = await people.create("nonprofit");
    const row = { user_id: account.id, role: "nonprofit", nonprofit_role: null };
    await write(request, account, "user_roles", row, { merge: true });
    return account;
  },
  donor: () => demo("donor"),
};
type Visitor = string;

/** Where an address redirects, and the toasts on the way. */
interface Outcome {
  to: string;
  /** Whether it continues to the requested address afterwards. */
  leadsBack?: boolean;
  says?: readonly string[];
}
const STAYS = "stays";

const LOGIN: Outcome = {
  to: "/login",
  leadsBack: true,
  says: ["Authentication required", "Please log in to access the dashboard."],
};
const SELECT: Outcome = { to: "/select-nonprofit", leadsBack: true, says: ["Nonprofit selection required"] };
const ONBOARDING: Outcome = {
  to: "/nonprofit-onboarding",
  leadsBack: true,
  says: ["Organization not found", "Please complete your organization setup first"],
};
const denied = (sentence: string): Outcome => ({ to: "/nonprofit-dashboard", says: ["Access Denied", sentence] });
const DENIED = denied("You don't have permission to view this page.");
const DENIED_TEAM = denied("Only administrators can manage team members.");
const DENIED_BUDGET = denied("You don't have permission to view the budget page.");

/** Where `/dashboard` leads each of them. */
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

/**
 * Each rule with each of its outcomes once, by an affected visitor. The whole table, every address times every visitor,
 * is src/app/guard-table.test.ts.
 */
const SEEN: Record<Visitor, Record<string, Outcome | typeof STAYS>> = {
  "signed out": { "/dashboard": LOGIN, "/profile": LOGIN, "/my-requests": LOGIN, "/nonprofit-budget": LOGIN },
  "requester without a nonprofit": { "/my-requests": SELECT, "/select-nonprofit": STAYS, "/role-selection": STAYS },
  requester: { "/my-requests": STAYS, "/donor-dashboard": { to: "/requester-dashboard" } },
  admin: {
    "/team-management": STAYS,
    // visitors with an organization are redirected by the page, not by the guard
    "/nonprofit-onboarding": { to: "/nonprofit-dashboard" },
    "/select-nonprofit": { to: "/nonprofit-dashboard" },
  },
  manager: { "/team-management": DENIED_TEAM, "/nonprofit-settings": STAYS, "/nonprofit-role-selection": STAYS },
  employee: { "/nonprofit-settings": DENIED, "/budget": DENIED_BUDGET, "/nonprofit-requests": STAYS },
  "admin without an organization": {
    "/nonprofit-requests": ONBOARDING,
    "/nonprofit-dashboard": STAYS,
    "/nonprofit-onboarding": STAYS,
  },
  "nonprofit without a role in it": {
    "/nonprofit-requests": { to: "/nonprofit-role-selection", leadsBack: true },
    "/nonprofit-onboarding": STAYS,
  },
  donor: { "/donor-dashboard": STAYS, "/nonprofit-requests": { to: "/donor-dashboard" } },
};

async function opens(
  page: Page,
  path: string,
  visitor: Visitor,
  outcome: Outcome | typeof STAYS,
  wasSaid: (...words: string[]) => Promise<void>,
) {
  // dashboards are the default destination and not kept as `next`
  const leadsBack = outcome !== STAYS && outcome.leadsBack && path !== "/dashboard";
  const address = outcome === STAYS ? path : leadsBack ? `${outcome.to}?next=${encodeURIComponent(path)}` : outcome.to;
  await page.goto(path, { waitUntil: "domcontentloaded" });
  if (outcome !== STAYS) {
    await expect(page, `${visitor}: ${path}`).toHaveURL(address);
    await wasSaid(...(outcome.says ?? []));
  }
  // the page itself is there, and nobody decides any more
  const heading = page.locator("main#main h1").filter({ hasNotText: /please wait|Redirecting/ });
  await expect(heading.first(), `${visitor}: ${path}`).toBeVisible();
  await expect(page, `${visitor}: ${path}`).toHaveURL(address);
}

for (const [visitor, credentials] of Object.entries(VISITORS)) {
  test(`${visitor}: protected routes open or redirect as specified`, async ({ page, people, request }) => {
    if (credentials) {
      await people.signIn(page, await credentials({ people, request }));
      await expect(page).toHaveURL(HOME[visitor]?.to ?? "");
    }
    const wasSaid = await watchToasts(page);
    for (const [path, outcome] of Object.entries(SEEN[visitor] ?? {})) {
      await test.step(path, () => opens(page, path, visitor, outcome, wasSaid));
    }
  });
}

test("an account without a role sees a message, is signed out and led to login", async ({ page, people }) => {
  await people.signIn(page, await people.create("requester"));
  await expect(page).toHaveURL("/select-nonprofit");
  // such an account cannot exist, so the answer is changed on its way
  await page.route("**/rest/v1/rpc/me", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...((await response.json()) as object), role: null } });
  });
  const wasSaid = await watchToasts(page);
  await page.goto("/my-requests");
  await expect(page).toHaveURL("/login");
  await wasSaid("Account setup incomplete", "Your account setup is incomplete. Please contact support.");
  await expect(page.getByRole("heading", { level: 1, name: "Welcome Back" })).toBeVisible();
});
