/** Creating an organization, and the role in it. */
import { toast } from "./fixtures/staff-pages";
import { expect, test } from "./fixtures/test";

test.describe("founding an organization", () => {
  test("shows all errors at once, keeps the values and opens the dashboard", async ({ page, people, accessible }) => {
    const founder = await people.create("nonprofit", "Amélie Haïtien");
    await people.signIn(page, founder);
    await page.goto("/nonprofit-dashboard");
    await expect(page.getByRole("heading", { name: "Complete your organization setup" })).toBeVisible();
    await accessible(page);
    await page.getByRole("button", { name: "Team Management" }).click();
    await expect(toast(page, "Organization required")).toContainText("You need to create an organization first");
    await page.getByRole("link", { name: "Set up your organization" }).click();

    await page.getByRole("button", { name: "Create organization" }).click();
    await expect(toast(page, "Please complete all required fields")).toBeVisible();
    await expect(page.getByRole("alert").getByRole("link")).toHaveCount(5);
    await accessible(page);
    await page.getByRole("alert").getByRole("link", { name: "Write the registration number" }).click();
    await expect(page.getByLabel("Registration number")).toBeFocused();

    await page.getByLabel("Organization name").fill("Casco Bay Pantry");
    await page.getByLabel("Legal status").fill("501(c)(3)");
    await page.getByLabel("Registration number").fill("01-0555001");
    await page.getByLabel("Mission").fill("We keep families fed.");
    await page.getByLabel("Name", { exact: true }).first().fill("Food Assistance");
    await page.getByLabel("What it covers").first().fill("Groceries within a day");
    await page.getByLabel("Name", { exact: true }).nth(1).fill("Without a description");
    await page.reload();
    await expect(page.getByLabel("Mission")).toHaveValue("We keep families fed.");

    await page.getByLabel("Number of employees").fill("many");
    await page.getByRole("button", { name: "Create organization" }).click();
    await expect(page.getByText("The number of employees must be a whole number")).toBeVisible();
    await page.getByLabel("Number of employees").fill("4");
    await page.getByRole("button", { name: "Create organization" }).click();

    await expect(toast(page, "Organization created")).toBeVisible();
    await expect(page).toHaveURL(/\/nonprofit-dashboard$/);
    await expect(page.getByRole("heading", { name: "Welcome, Amélie" })).toBeVisible();
    await expect(page.getByText("Admin at Casco Bay Pantry")).toBeVisible();
    await page.getByRole("tab", { name: "Categories" }).click();
    await expect(page.getByRole("tabpanel").getByText("Food Assistance")).toBeVisible();
    await expect(page.getByText("Without a description")).toHaveCount(0);
    await page.goto("/nonprofit-onboarding");
    await expect(page).toHaveURL(/\/nonprofit-dashboard$/);
  });

  test("a sub-role must be chosen, and without a membership asks for an invitation", async ({
    page,
    people,
    accessible,
  }) => {
    const someone = await people.create("nonprofit");
    await people.signIn(page, someone);
    await page.goto("/nonprofit-role-selection");
    await expect(page.getByRole("radio")).toHaveCount(3);
    await accessible(page);
    await page.getByRole("radio", { name: /Employee/ }).click();
    await page.getByRole("button", { name: "Continue" }).click();
    await expect(page).toHaveURL(/\/nonprofit-dashboard$/);
    await expect(page.getByRole("heading", { name: "Ask your admin for an invitation" })).toBeVisible();
    await accessible(page, page.getByRole("main"));
    await page.goto("/nonprofit-requests");
    await expect(page.getByText("Ask your admin for an invitation")).toBeVisible();
  });
});
