/** A screen's file that is gone: a new version went live while the page was open, or the connection dropped. */
import { expect, test } from "./fixtures/test";

test("a page with a missing file reloads once and then shows an error", async ({ page, accessible }) => {
  // all files of the old version that are not loaded yet
  await page.goto("/");
  let asked = 0;
  const missing = "**/assets/*.js";
  await page.route(missing, (route) => {
    asked++;
    return route.fulfill({ status: 404, body: "" });
  });
  // the new document brings the new version's files
  await page.route(/\/faq$/, async (route) => {
    await page.unroute(missing);
    await route.fallback();
  });
  await page.getByRole("contentinfo").getByRole("link", { name: "FAQ" }).click();
  // By its name: until the style sheet has come, the new document's other pages are not hidden yet.
  await expect(page.getByRole("heading", { level: 1, name: "Questions, answered plainly" })).toBeVisible();
  expect(asked).toBeGreaterThan(0);

  await page.route(missing, (route) => route.fulfill({ status: 404, body: "" }));
  await page.getByRole("contentinfo").getByRole("link", { name: "Terms of Service" }).click();
  await expect(page.getByRole("alert")).toContainText("Something broke on this page");
  await accessible(page);
});
