/** Organization settings and help categories. */
import { found, join } from "./fixtures/staff";
import { toast } from "./fixtures/staff-pages";
import { expect, test } from "./fixtures/test";

test("settings: admins change them, managers read them; the logo; help categories", async ({
  page,
  request,
  people,
  browser,
  accessible,
}) => {
  const { organization, admin } = await found(request, people);
  const manager = await join(request, people, admin, organization, "manager");
  await people.signIn(page, admin);
  await page.goto("/nonprofit-settings");
  await accessible(page);
  await page.getByLabel("Website").fill("harbor.example");
  await page.getByRole("button", { name: "Save changes" }).click();
  await expect(page.getByText("Write the whole address, beginning with https://")).toBeVisible();
  await accessible(page, page.getByRole("main"));
  await page.getByLabel("Website").fill("https://harbor.example");
  await page.getByLabel("Second approval above").fill("1000");
  await page.getByRole("checkbox", { name: "Rent Support" }).click();
  await page.getByLabel("Where you help").fill("Augusta, ME\n\nHallowell, ME");
  await page.getByRole("button", { name: "Save changes" }).click();
  await expect(toast(page, "Settings saved")).toBeVisible();
  await page.reload();
  await expect(page.getByLabel("Website")).toHaveValue("https://harbor.example");
  await expect(page.getByLabel("Second approval above")).toHaveValue("1000");
  await expect(page.getByRole("checkbox", { name: "Rent Support" })).toBeChecked();
  await expect(page.getByLabel("Where you help")).toHaveValue("Augusta, ME\nHallowell, ME");

  await page.getByRole("tab", { name: "Branding" }).click();
  const png = Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64",
  );
  await page
    .locator("input[type=file]")
    .setInputFiles({ name: "logo.svg", mimeType: "image/svg+xml", buffer: Buffer.from("<svg/>") });
  await expect(toast(page, "Invalid file type")).toContainText("logo.svg is not an accepted file type.");
  await page
    .locator("input[type=file]")
    .setInputFiles({ name: "big.png", mimeType: "image/png", buffer: Buffer.alloc(5 * 1024 * 1024 + 1) });
  await expect(toast(page, "File too large")).toContainText("big.png exceeds the maximum file size of 5MB.");
  await page.locator("input[type=file]").setInputFiles({ name: "logo.png", mimeType: "image/png", buffer: png });
  await accessible(page);
  await page.getByRole("button", { name: "Save logo" }).click();
  await expect(toast(page, "Logo updated")).toBeVisible();
  const logo = page.getByRole("img", { name: `Logo of ${organization.name}` });
  await expect(logo).toBeVisible();
  await expect.poll(() => logo.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBeGreaterThan(0);

  await page.getByRole("tab", { name: "Help Categories" }).click();
  await page.getByRole("button", { name: "Add category" }).click();
  await expect(page.getByText("Category name required")).toHaveCount(0);

  await page.goto("/categories-management");
  await accessible(page);
  await page.getByRole("button", { name: "Add category" }).click();
  await expect(page.locator("form .error")).toHaveText("Category name required");
  await page.getByLabel("Category name").fill("food assistance");
  await page.getByRole("button", { name: "Add category" }).click();
  await expect(page.getByText("You already have a category with this name.")).toBeVisible();
  await accessible(page, page.getByRole("main"));
  await page.getByLabel("Category name").fill("Rent Support");
  await page.reload();
  await expect(page.getByLabel("Category name")).toHaveValue("Rent Support");
  await page.getByRole("button", { name: "Add category" }).click();
  await expect(toast(page, "Category added")).toBeVisible();
  await page.getByRole("button", { name: "Delete Rent Support" }).click();
  await page.getByRole("button", { name: "Delete category" }).click();
  await expect(toast(page, "Category deleted")).toBeVisible();
  await expect(page.getByRole("listitem").filter({ hasText: "Rent Support" })).toHaveCount(0);

  const context = await browser.newContext();
  const theirs = await context.newPage();
  await people.signIn(theirs, manager);
  await theirs.goto("/nonprofit-settings");
  await expect(theirs.getByLabel("Organization name")).toHaveAttribute("readonly");
  await expect(theirs.getByRole("button", { name: "Save changes" })).toHaveCount(0);
  await theirs.getByRole("tab", { name: "Help Categories" }).click();
  await expect(theirs.getByText("Only administrators can manage help categories.")).toBeVisible();
  await expect(theirs.getByRole("button", { name: "Add category" })).toHaveCount(0);
  await accessible(theirs);
  await context.close();
});

test("the public page shows new settings and help categories at once", async ({ page, request, people }) => {
  const { organization, admin } = await found(request, people);
  await people.signIn(page, admin);
  await page.goto("/nonprofit-settings");
  const publicPage = page.getByRole("link", { name: "See your public page" });
  await publicPage.click();
  const main = page.getByRole("main");
  await expect(main).toContainText("We keep families fed and housed.");
  await page.goBack();
  await page.getByLabel("Mission").fill("We repair boats.");
  await page.getByRole("button", { name: "Save changes" }).click();
  await expect(toast(page, "Settings saved")).toBeVisible();
  await publicPage.click();
  await expect(main).toContainText("We repair boats.", { timeout: 5000 });
  await page.goBack();
  await page.getByRole("tab", { name: "Help Categories" }).click();
  await page.getByLabel("Category name").fill("Boat repairs");
  await page.getByRole("button", { name: "Add category" }).click();
  await expect(toast(page, "Category added")).toBeVisible();
  await publicPage.click();
  await expect(page).toHaveURL(`/nonprofit/${organization.id}`);
  await expect(main).toContainText("Boat repairs", { timeout: 5000 });
});
