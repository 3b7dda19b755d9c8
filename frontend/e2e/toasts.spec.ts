/** The notifications region of section 9: one toast, a swipe to the right past 50 px, F8. */
import { expect, test } from "./fixtures/test";

test.beforeEach(async ({ page }) => {
  await page.goto("/login");
  await page.getByRole("button", { name: "Continue with Google" }).click({ force: true });
  await expect(page.locator(".toast")).toHaveText(/Feature coming soon/);
  // under the pointer it stays, so that the test may take its time
  await page.locator(".toast").hover();
});

test("shows one toast at a time", { tag: "@desk" }, async ({ page }) => {
  await page.getByRole("button", { name: "Continue with Microsoft" }).dispatchEvent("click");
  await page.getByRole("button", { name: "Continue with Google" }).dispatchEvent("click");
  await expect(page.locator(".toast[data-state=open]")).toHaveCount(1);
});

test("F8 focuses the notifications region", { tag: "@desk" }, async ({ page }) => {
  await page.keyboard.press("F8");
  await expect(page.getByRole("region", { name: /Notifications/ }).locator("ol")).toBeFocused();
});

test("a swipe to the right past 50 px dismisses a toast, a shorter one does not", async ({ page }) => {
  const swipe = async (pixels: number) => {
    const box = await page.locator(".toast").boundingBox();
    if (!box) throw new Error("no toast");
    const [x, y] = [box.x + 20, box.y + box.height / 2];
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x + 20, y, { steps: 2 });
    await page.mouse.move(x + pixels, y, { steps: 4 });
    await page.mouse.up();
  };
  await swipe(40);
  await expect(page.locator(".toast")).toHaveCount(1);
  await swipe(70);
  await expect(page.locator(".toast")).toHaveCount(0);
});

test("toasts never cover 'Exit this page'", async ({ page, accessible }) => {
  await page.goto("/request-submission");
  const main = page.getByRole("main");
  await main.getByRole("button", { name: /^Food Assistance/ }).click();
  await page.getByRole("group", { name: "Nonprofits" }).getByRole("checkbox").first().check();
  await main.getByRole("button", { name: "Continue" }).click();
  await main.getByRole("button", { name: "Next" }).click();
  await expect(page.locator(".toast")).toContainText("Please complete all fields");
  await page.locator(".toast").hover();
  await accessible(page, page.locator(".toast"));
  await page.evaluate(() => window.scrollTo(0, 0));
  const covered = await page.locator(".exit-page").evaluate((link) => {
    const { left, right, top, bottom } = link.getBoundingClientRect();
    const corners = [left + 4, (left + right) / 2, right - 4].flatMap((x) => [top + 4, bottom - 4].map((y) => [x, y]));
    return corners.filter(([x = 0, y = 0]) => !link.contains(document.elementFromPoint(x, y))).length;
  });
  expect(covered).toBe(0);
});
