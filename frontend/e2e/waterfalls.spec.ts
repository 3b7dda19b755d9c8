/**
 * No screen waits for the API more than twice in a row: first for who is signed in, then for everything
 * else. Measured on the desktop only (playwright.config.ts), because every screen size sends the same
 * requests.
 */
import type { BrowserContext, Page } from "@playwright/test";
import { DEMO_PASSWORD, rpc, tokenOf } from "./fixtures/api";
import { expect, test } from "./fixtures/test";
import { wavesOf, type Wave } from "./fixtures/waves";

const DEEPEST = 2;
/** Pages measured at a time: most of the time is waiting until they send no more requests. */
const AT_A_TIME = 3;

/** What asked for the server's settings. */
const wayOfSettings = (page: Page) =>
  page.evaluate(() => {
    const files = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
    return files.find((file) => file.name.endsWith("/app-config.json"))?.initiatorType;
  });

/** Each address and the waves of requests that it takes. */
async function measured(context: BrowserContext, addresses: readonly string[]): Promise<[string, Wave[]][]> {
  const left = [...addresses.entries()];
  const found: [string, Wave[]][] = [];
  const work = async () => {
    const page = await context.newPage();
    for (let next = left.shift(); next; next = left.shift()) {
      found[next[0]] = [next[1], await wavesOf(page, next[1])];
      expect(await wayOfSettings(page), "the server's settings come with the page, not after its code").toBe("link");
    }
    await page.close();
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  expect(found.length).toBe(addresses.length);
  return found;
}

const PUBLIC = [
  "/",
  "/login",
  "/signup",
  "/blog",
  "/pricing",
  "/nonprofit/np-001",
  "/request-submission",
  "/request-submission?form=single",
  "/request-status?id=REQ-002",
  "/newsletter?token=forged",
  "/team-invitation?token=forged",
];

const REQUESTER = [
  "/requester-dashboard",
  "/my-requests?status=approved",
  "/request-drafts",
  "/request/REQ-004",
  "/request-details/REQ-001",
  "/request-status/REQ-002",
  "/select-nonprofit",
  "/role-selection",
  "/profile",
  "/profile-settings",
  "/profile-settings?tab=password",
  "/notifications",
  "/submit-request",
  "/submit-request?form=single",
  "/dashboard",
];

const STAFF = [
  "/nonprofit-dashboard",
  "/nonprofit-dashboard?tab=requests",
  "/nonprofit-dashboard?tab=team",
  "/nonprofit-dashboard?tab=budget",
  "/nonprofit-dashboard?tab=categories",
  "/nonprofit-requests",
  "/nonprofit-requests?status=pending&q=REQ&page=2",
  "/nonprofit-request/REQ-001",
  "/nonprofit-request-details/REQ-002",
  "/nonprofit-settings",
  "/nonprofit-settings?tab=branding",
  "/nonprofit-settings?tab=categories",
  "/nonprofit-team",
  "/team-management",
  "/nonprofit-budget",
  "/nonprofit-budget?tab=donations",
  "/nonprofit-budget?tab=payouts",
  "/budget",
  "/nonprofit-donor-communication",
  "/nonprofit-donor-communication?tab=inbox",
  "/nonprofit-donor-communication?tab=sent",
  "/categories-management",
  "/nonprofit-role-selection",
  "/nonprofit-onboarding",
  "/notifications",
  "/dashboard",
];

const DONOR = [
  "/donor-dashboard",
  "/donor-dashboard?donate",
  "/donor-dashboard?tab=donations",
  "/donor-dashboard?tab=impact",
  "/notifications",
  "/dashboard",
];

test("public pages", async ({ context }) => {
  for (const [address, waves] of await measured(context, PUBLIC)) {
    expect.soft(waves.length, `${address}: ${JSON.stringify(waves)}`).toBeLessThanOrEqual(DEEPEST);
  }
});

test("the requester's pages, including a saved draft", async ({ context, page, people, request }) => {
  const email = "requester@demo.aidbridge.test";
  await people.signIn(page, { email, password: DEMO_PASSWORD });
  await expect(page).toHaveURL("/requester-dashboard");
  const draft = await rpc<{ id: string }>(request, await tokenOf(request, email), "save_draft", {
    input: { category_id: "cat-004", nonprofits: ["np-001", "np-002"], step: 2 },
  });
  for (const [address, waves] of await measured(context, [...REQUESTER, `/submit-request?draft=${draft.id}`])) {
    expect.soft(waves.length, `${address}: ${JSON.stringify(waves)}`).toBeGreaterThan(0);
    expect.soft(waves.length, `${address}: ${JSON.stringify(waves)}`).toBeLessThanOrEqual(DEEPEST);
  }
});

for (const [who, addresses] of [
  ["admin", STAFF],
  ["donor", DONOR],
] as const) {
  test(`the ${who}'s pages`, async ({ context, page, people }) => {
    await people.signIn(page, { email: `${who}@demo.aidbridge.test`, password: DEMO_PASSWORD });
    for (const [address, waves] of await measured(context, addresses)) {
      expect.soft(waves.length, `${address}: ${JSON.stringify(waves)}`).toBeGreaterThan(0);
      expect.soft(waves.length, `${address}: ${JSON.stringify(waves)}`).toBeLessThanOrEqual(DEEPEST);
    }
  });
}
