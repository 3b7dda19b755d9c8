/** What staff see and keep when the server fails. */
import { found } from "./fixtures/staff";
import { toast } from "./fixtures/staff-pages";
import { expect, test } from "./fixtures/test";

test("when the server fails, the page shows what failed and keeps the values", async ({
  page,
  request,
  people,
  accessible,
}) => {
  const { admin } = await found(request, people);
  const newcomer = await people.create("nonprofit");
  const broken = (path: string, method: string) =>
    page.route(`**/rest/v1/${path}`, (route) =>
      route.request().method() === method
        ? route.fulfill({ status: 500, json: { code: "XX000", message: "internal", details: null, hint: null } })
        : route.fallback(),
    );
  await people.signIn(page, admin);

  await broken("nonprofit_team_members**", "GET");
  await page.goto("/team-management");
  await expect(page.getByRole("heading", { name: "Error retrieving team" })).toBeVisible();
  await expect(toast(page, "Error")).toContainText("Failed to load team members.");
  await accessible(page, page.getByRole("main"));
  await page.unrouteAll();
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(page.getByRole("row").filter({ hasText: admin.email })).toBeVisible();

  await broken("nonprofit_team_members**", "POST");
  await page.getByRole("button", { name: "Add Member" }).click();
  await page.getByLabel("Full name").fill("Ruth Okonkwo");
  await page.getByLabel("Email", { exact: true }).fill("ruth@mail.example");
  await page.getByRole("button", { name: "Send invitation" }).click();
  await expect(toast(page, "Error adding team member")).toContainText("Failed to add team member.");
  await accessible(page, page.getByRole("dialog"));
  await expect(page.getByLabel("Full name")).toHaveValue("Ruth Okonkwo");
  await page.unrouteAll();

  await broken("categories**", "GET");
  await page.goto("/categories-management");
  await expect(toast(page, "Error retrieving categories")).toContainText("Failed to load categories");
  await page.unrouteAll();
  await page.getByRole("button", { name: "Try again" }).click();
  await broken("categories**", "POST");
  await page.getByLabel("Category name").fill("Rent Support");
  await page.getByRole("button", { name: "Add category" }).click();
  await expect(toast(page, "Error adding category")).toContainText("Failed to add category");
  await expect(page.getByLabel("Category name")).toHaveValue("Rent Support");
  await broken("categories**", "DELETE");
  await page.getByRole("button", { name: "Delete Food Assistance" }).click();
  await accessible(page, page.getByRole("alertdialog"));
  await page.getByRole("button", { name: "Delete category" }).click();
  await expect(toast(page, "Error")).toContainText("Failed to delete category");
  await page.unrouteAll();

  await broken("rpc/incoming_page", "POST");
  await page.goto("/nonprofit-requests");
  await expect(page.getByRole("heading", { name: "We could not load the requests" })).toBeVisible();
  const csv = page.getByRole("button", { name: "Export CSV" });
  await expect(csv).toBeDisabled();
  await expect(csv).toHaveAccessibleDescription("Load the list first. There is nothing to export yet.");
  await accessible(page, page.getByRole("main"));
  await page.unrouteAll();
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(csv).toBeEnabled();

  await page.context().clearCookies();
  await page.evaluate(() => localStorage.clear());
  await people.signIn(page, newcomer);
  await page.goto("/nonprofit-onboarding");
  await broken("rpc/create_organization", "POST");
  await page.getByLabel("Organization name").fill("Casco Bay Pantry");
  await page.getByLabel("Legal status").fill("501(c)(3)");
  await page.getByLabel("Registration number").fill("01-0555001");
  await page.getByLabel("Number of employees").fill("4");
  await page.getByLabel("Mission").fill("We keep families fed.");
  await page.getByRole("button", { name: "Create organization" }).click();
  await expect(toast(page, "Error creating organization")).toContainText(
    "Failed to create organization. Please try again.",
  );
  await expect(page.getByLabel("Mission")).toHaveValue("We keep families fed.");
});
