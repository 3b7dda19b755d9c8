/** Who may open which address, and where everybody else is led: the guards of the specification's section 6. */
import { type APIRequestContext, type Page } from "@playwright/test";
import { DEMO_PASSWORD } from "./fixtures/api";
import { write } from "./fixtures/staff";
import { expect, test, type People } from "./fixtures/test";
import { watchToasts } from "./fixtures/toasts";

// hundreds of page loads: a trace of each would take longer than they do
test.use({ trace: "off" });
test.describe.configure({ timeout: 900_000 });

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

/** Where an address leads, and what is said on the way there. */
interface Outcome {
  to: string;
  says?: readonly string[];
}
const STAYS = "stays";

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

type Row = Partial<Record<Visitor, Outcome | typeof STAYS>>;

const everybody: Row = Object.fromEntries(
  Object.keys(VISITORS).map((visitor) => [visitor, visitor === "signed out" ? LOGIN : STAYS]),
);
const requesters: Row = { requester: STAYS, "requester without a nonprofit": SELECT };
const staff: Row = {
  admin: STAYS,
  manager: STAYS,
  employee: STAYS,
  "admin without an organization": ONBOARDING,
};
const managers: Row = { ...staff, employee: DENIED };
const budget: Row = { ...staff, employee: DENIED_BUDGET };
/** Those who already have an organization have nothing to found. */
const founders: Row = {
  admin: { to: "/nonprofit-dashboard" },
  manager: { to: "/nonprofit-dashboard" },
  employee: { to: "/nonprofit-dashboard" },
  "admin without an organization": STAYS,
  "nonprofit without a role in it": STAYS,
};

/** Whoever is not named in a row is led home. */
const TABLE: Record<string, Row> = {
  "/dashboard": {},
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
  "/nonprofit-onboarding": founders,
  "/nonprofit-role-selection": { ...founders, admin: STAYS, manager: STAYS, employee: STAYS },
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

async function opens(page: Page, path: string, visitor: Visitor, wasSaid: (...words: string[]) => Promise<void>) {
  const outcome = TABLE[path]?.[visitor] ?? HOME[visitor] ?? STAYS;
  await page.goto(path, { waitUntil: "domcontentloaded" });
  if (outcome !== STAYS) {
    await expect(page, `${visitor}: ${path}`).toHaveURL(outcome.to);
    await wasSaid(...(outcome.says ?? []));
  }
  // the page itself is there, and nobody decides any more
  const heading = page.locator("main#main h1").filter({ hasNotText: /please wait|Redirecting/ });
  await expect(heading.first(), `${visitor}: ${path}`).toBeVisible();
  await expect(page, `${visitor}: ${path}`).toHaveURL(outcome === STAYS ? path : outcome.to);
}

for (const [visitor, credentials] of Object.entries(VISITORS)) {
  test(`${visitor}: every protected address stays or leads where it should`, async ({ page, people, request }) => {
    if (credentials) {
      await people.signIn(page, await credentials({ people, request }));
      await expect(page).toHaveURL(HOME[visitor]?.to ?? "");
    }
    const wasSaid = await watchToasts(page);
    for (const path of Object.keys(TABLE)) {
      await test.step(path, () => opens(page, path, visitor, wasSaid));
    }
  });
}

test("an account without a role is told so, signed out and led to login", async ({ page, people }) => {
  await people.signIn(page, await people.create("requester"));
  await expect(page).toHaveURL("/select-nonprofit");
  // no road of the product leads to such an account: the answer about it is changed on its way
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
