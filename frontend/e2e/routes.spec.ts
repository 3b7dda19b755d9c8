/**
 * Every address of the specification's route table, opened by the audience it is for: the page is there, fits the
 * screen, can be touched on phones, and axe finds nothing serious on it in either theme. A new address fails the last
 * test until it is opened here.
 */
import type { Page } from "@playwright/test";
import { paths } from "../src/app/paths";
import { DEMO_PASSWORD } from "./fixtures/api";
import { expect, test } from "./fixtures/test";

// dozens of pages, each looked at twice: a trace of them would take longer than they do
test.use({ trace: "off" });
test.describe.configure({ timeout: 900_000 });

type Audience = "signed out" | "requester" | "newcomer" | "admin" | "manager" | "employee" | "donor";

/** The route table (section 2) and the other links that screens use, as the audience opens them. */
const ROUTES: Record<Audience, readonly string[]> = {
  "signed out": [
    "/",
    "/login",
    "/signup",
    "/forgot-password",
    "/reset-password",
    "/about-us",
    "/how-it-works",
    "/for-nonprofits",
    "/faq",
    "/blog",
    "/blog/:id",
    "/features",
    "/partners",
    "/pricing",
    "/nonprofit-signup",
    "/request-submission",
    "/submit-request",
    "/privacy",
    "/terms",
    "/accessibility",
    "/404",
    "/resource-library",
    "/request-status",
    "/open-request",
    "/nonprofit-login",
    "/nonprofit/:id",
    "/team-invitation",
    "/newsletter",
    "/unsubscribe",
  ],
  requester: [
    "/requester-dashboard",
    "/request/:id",
    "/request-details/:id",
    "/my-requests",
    "/request-drafts",
    "/request-status/:id",
    "/select-nonprofit",
    "/submit-request?draft=demo-draft-001",
    "/profile-settings",
    "/user-profile",
    "/profile",
    "/notifications",
    "/role-selection",
  ],
  newcomer: ["/nonprofit-onboarding", "/nonprofit-role-selection"],
  admin: [
    "/nonprofit-dashboard",
    "/nonprofit-requests",
    "/nonprofit-request/:id",
    "/nonprofit-request-details/:id",
    "/nonprofit-settings",
    "/nonprofit-team",
    "/nonprofit-budget",
    "/nonprofit-donor-communication",
    "/team-management",
    "/categories-management",
    "/nonprofit-role-selection",
  ],
  manager: ["/nonprofit-settings", "/nonprofit-team", "/budget", "/nonprofit-donor-communication", "/notifications"],
  employee: ["/nonprofit-dashboard", "/nonprofit-requests", "/nonprofit-request/:id", "/profile-settings"],
  donor: ["/donor-dashboard", "/donor-dashboard?donate", "/notifications", "/user-profile"],
};

/** Something of the demo data for the pattern's `:id`. */
const IDS: Record<string, string> = { "/blog/:id": "1", "/nonprofit/:id": "np-001" };
const addressOf = (route: string) => route.replace(":id", IDS[route] ?? "REQ-001");

/** Controls of the page that a thumb cannot hit: under 44 px high, unless they are words within a sentence. */
const smallTargets = (page: Page) =>
  page.evaluate(() => {
    const found: string[] = [];
    const controls = document.querySelectorAll<HTMLElement>(
      "a[href], button, input:not([type=hidden]), select, textarea, [role=tab], [role=combobox], [role=switch]",
    );
    for (const control of controls) {
      const box = control.getBoundingClientRect();
      const style = getComputedStyle(control);
      if (box.width < 2 || box.height < 2 || style.visibility === "hidden" || !control.checkVisibility()) continue;
      if (style.display === "inline" && (control.parentElement?.innerText ?? "") !== control.innerText) continue;
      // a label or a stretched ::after makes the target larger than the control
      const label = control.closest("label")?.getBoundingClientRect().height ?? 0;
      const after = getComputedStyle(control, "::after");
      if (label >= 43.5 || after.position === "absolute") continue;
      if (box.height < 43.5) found.push(`${control.tagName} '${control.innerText || control.ariaLabel}' ${box.height}`);
    }
    return found;
  });

async function look(page: Page, route: string, accessible: (page: Page) => Promise<void>, whole: boolean) {
  await page.goto(addressOf(route));
  const heading = page.locator("main#main h1").filter({ hasNotText: /please wait|Redirecting/ });
  await expect(heading.first(), route).toBeVisible();
  await expect(page, route).toHaveURL(addressOf(route));
  if (route !== "/404") await expect(heading.first(), route).not.toHaveText("Page not found");
  await expect(page, route).toHaveTitle(/AidBridge/);
  await expect(page.locator("main span.sk"), route).toHaveCount(0);
  const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(wider, `${route} scrolls sideways`).toBeLessThanOrEqual(0);
  if ((page.viewportSize()?.width ?? 0) < 768) expect.soft(await smallTargets(page), route).toEqual([]);
  if (whole) await accessible(page);
}

const looked = new Set<string>();

for (const [audience, routes] of Object.entries(ROUTES) as [Audience, readonly string[]][]) {
  test(`${audience}: opens ${routes.length} addresses of the route table`, async ({ page, people, accessible }) => {
    if (audience !== "signed out") {
      const account =
        audience === "newcomer"
          ? await people.create("nonprofit", "Owen Pritchard")
          : { email: `${audience}@demo.aidbridge.test`, password: DEMO_PASSWORD };
      await people.signIn(page, account);
      await expect(page).not.toHaveURL(/\/(login|dashboard)$/);
    }
    for (const route of routes) {
      // the public pages' own journey looks at each of them with axe
      const whole = audience !== "signed out" && !looked.has(route);
      looked.add(route);
      await test.step(route, () => look(page, route, accessible, whole));
    }
  });
}

test("/dashboard and unknown addresses redirect", async ({ page, people }) => {
  await people.signIn(page, { email: "admin@demo.aidbridge.test", password: DEMO_PASSWORD });
  await page.goto(paths.dashboard);
  await expect(page).toHaveURL(paths.nonprofitDashboard);
  await page.goto("/no/such/page");
  await expect(page).toHaveURL(paths.notFound);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Page not found");
  await expect(page.getByText("The page you're looking for doesn't exist or has been moved.")).toBeVisible();
  for (const name of ["Return to Home", "Go Back"]) {
    await expect(page.getByRole("main").getByRole("link", { name })).toHaveAttribute("href", "/");
  }
});

test("every route of the app is opened by a test", () => {
  const opened = new Set(
    Object.values(ROUTES)
      .flat()
      .map((route) => route.split("?")[0]),
  );
  const leadsOn = new Set<string>([paths.dashboard]);
  const patterns = Object.values(paths)
    .map((path) => (typeof path === "string" ? path : path(":id")))
    .map((path) => decodeURIComponent(path.split("?")[0] as string));
  expect(patterns.filter((path) => !opened.has(path) && !leadsOn.has(path))).toEqual([]);
});
