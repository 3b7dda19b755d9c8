/**
 * Right-to-left pages, in a pseudo-language made from the catalogue (`?lang=ar-XB`): they fit, are mirrored, and have
 * no text from outside the catalogue.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DEMO_PASSWORD } from "./fixtures/api";
import { REQUESTER } from "./fixtures/pages";
import { expect, test } from "./fixtures/test";
import type { Page } from "@playwright/test";

test.describe.configure({ timeout: 900_000 });
// What people of other journeys wrote is no word of the app.
test.use({ onlyDemoData: true });

const PUBLIC = [
  "/",
  "/login",
  "/signup",
  "/forgot-password",
  "/about-us",
  "/how-it-works",
  "/for-nonprofits",
  "/faq",
  "/features",
];
const MORE = [
  "/partners",
  "/pricing",
  "/resource-library",
  "/request-submission",
  "/request-status",
  "/open-request",
  "/404",
];
const MANAGER = [
  "/nonprofit-dashboard",
  "/nonprofit-requests",
  "/nonprofit-request/REQ-001",
  "/nonprofit-request/REQ-001?decide=approve",
  "/nonprofit-request/REQ-001?decide=deny",
  "/nonprofit-request/REQ-001?decide=info",
  "/nonprofit-budget",
  "/nonprofit-team",
  "/nonprofit-donor-communication",
  "/nonprofit-settings",
];
const DONOR = ["/donor-dashboard", "/donor-dashboard?tab=donations", "/donor-dashboard?donate"];

/** Names, addresses and what people wrote, as they stand on public pages. */
const NAMES =
  /^(AidBridge|Aid|Bridge|Facebook|Instagram|LinkedIn|REQ-\d+|Portland.*|.*@.*|.*\.example|Lakeside Food Bank|Harbor Relief Fund|Clinique Bon Repos|Open Door Learning Fund|Puente Pequeño|Marie-Thérèse D\.|Abdirahman Y\.|Ruth Okonkwo)$/;

/** Visible text that did not come from the catalogue. */
const loose = (page: Page) =>
  page.evaluate(() => {
    const texts: string[] = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { data, parentElement } = walker.currentNode as Text;
      if (!parentElement?.checkVisibility() || parentElement.closest("script, style")) continue;
      if (!/[\u202c\u202e]/.test(data) && /\p{L}{2}/u.test(data)) texts.push(data.trim());
    }
    return texts;
  });

async function looked(page: Page, path: string) {
  await page.goto(`${path}${path.includes("?") ? "&" : "?"}lang=ar-XB`);
  await expect(page.locator("h1")).toBeVisible();
  await expect(page.locator("html")).toHaveAttribute("dir", "rtl");
  // 320: a desk's window at 400 %
  for (const width of [1280, 390, 320]) {
    await page.setViewportSize({ width, height: 860 });
    // What a new width shows comes a frame later.
    const overflow = () =>
      page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    const logo = () =>
      page.evaluate(
        () =>
          [...document.querySelectorAll("a.brand")].find((link) => link.checkVisibility())?.getBoundingClientRect()
            .left ?? 0,
      );
    await expect.poll(overflow, { message: `${path} at ${width} is wider than the window` }).toBe(0);
    const back = page.locator(".lucide-arrow-left").filter({ visible: true });
    if (await back.count())
      await expect(back.first(), `${path}: where 'Back' points`).toHaveCSS("transform", "matrix(-1, 0, 0, 1, 0, 0)");
    await expect
      .poll(logo, { message: `${path} at ${width}: the logo stands on the right` })
      .toBeGreaterThan(width / 2);
  }
}

test("public pages are mirrored, fit and use only catalogue text", async ({ page }) => {
  for (const path of [...PUBLIC, ...MORE]) {
    await looked(page, path);
    if (path === "/request-submission") await expect(page.getByRole("listitem").first()).toBeVisible();
    const data =
      path === "/request-submission"
        ? /assistance|food|rent|medic|school|business|fees|tools|doctor|help|support|aid/i
        : /^$/;
    expect({ path, loose: (await loose(page)).filter((text) => !NAMES.test(text) && !data.test(text)) }).toEqual({
      path,
      loose: [],
    });
  }
});

/** What the demo data says: it stands on the pages as it was written. */
const seed = resolve(import.meta.dirname, "../../sql/seed");
const demo = readdirSync(seed)
  .map((file) => readFileSync(join(seed, file), "utf8"))
  .join("\n");

for (const [who, paths] of Object.entries({ requester: REQUESTER, manager: MANAGER, donor: DONOR })) {
  test(`pages of the ${who} are mirrored, fit and use only catalogue text`, async ({ page, people }) => {
    await people.signIn(page, { email: `${who}@demo.aidbridge.test`, password: DEMO_PASSWORD });
    await expect(page).toHaveURL(/-dashboard/);
    for (const path of paths) {
      await page.setViewportSize({ width: 390, height: 860 });
      await looked(page, path);
      await expect(page.locator("main span.sk, main [aria-busy=true]")).toHaveCount(0);
      const said = (await loose(page)).flatMap((text) => text.split(/, |\n/)).filter((text) => !NAMES.test(text));
      // dates are by the browser; the English of a notification is stored as it was written
      const known = (text: string) =>
        /^(?:[A-Z][a-z]{2} \d+|\d{4}|\d+:\d+ [AP]M|Other|[A-Z]{2} \d{5})$/.test(text) || demo.includes(text);
      if (path !== "/notifications")
        expect({ path, loose: said.filter((text) => !known(text)) }).toEqual({ path, loose: [] });
    }
  });
}
