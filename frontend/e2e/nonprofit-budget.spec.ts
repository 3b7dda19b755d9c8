/** The budget page: allocations, donations, payouts, pledges. */
import { rpc } from "./fixtures/api";
import { ask, found } from "./fixtures/staff";
import { figure, toast } from "./fixtures/staff-pages";
import { expect, test } from "./fixtures/test";

test("one allocation, donation, decision and payout update every figure", async ({
  page,
  request,
  people,
  accessible,
}) => {
  const { organization, admin } = await found(request, people);
  const sent = await ask(request, people, [organization], "300");
  await people.signIn(page, admin);
  await page.goto("/nonprofit-budget");
  await expect(figure(page, "Donated")).toHaveText("$0");
  await accessible(page);

  await page.getByRole("button", { name: "Set allocations" }).click();
  await page.getByLabel("Food Assistance").fill("1,000");
  await accessible(page);
  // it has an address, and what was typed is kept there
  await expect(page).toHaveURL("/nonprofit-budget?allocations=");
  await page.reload();
  await expect(page.getByLabel("Food Assistance")).toHaveValue("1,000");
  await page.getByRole("button", { name: "Save allocations" }).click();
  await expect(toast(page, "Allocations saved")).toContainText("$1,000 is allocated now.");
  await expect(figure(page, "Allocated")).toHaveText("$1,000");
  await expect(page).toHaveURL("/nonprofit-budget");
  await page.getByRole("button", { name: "Change allocations" }).click();
  await page.getByLabel("Food Assistance").fill("7");
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Change allocations" }).click();
  await expect(page.getByLabel("Food Assistance")).toHaveValue("1000");
  await page.getByRole("button", { name: "Cancel" }).click();

  await page.getByRole("button", { name: "Record donation" }).click();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("alert").getByRole("link")).toHaveCount(2);
  await accessible(page, page.getByRole("dialog"));
  await page.getByLabel("Donor", { exact: true }).fill("Daniel Whitcombe");
  await page.getByLabel("Amount").fill("800");
  await page.reload();
  await page.getByRole("button", { name: "Record donation" }).click();
  await expect(page.getByLabel("Donor", { exact: true })).toHaveValue("Daniel Whitcombe");
  await page.getByRole("button", { name: "Record $800" }).click();
  await expect(toast(page, "Donation recorded")).toBeVisible();
  await expect(figure(page, "Donated")).toHaveText("$800");
  await expect(figure(page, "Remaining")).toContainText("$800");
  await expect(page.getByRole("row").filter({ hasText: "Daniel Whitcombe" })).toContainText("+ $800");

  await rpc(request, admin.accessToken, "approve_request", {
    request_id: sent.id,
    nonprofit_id: organization.id,
    amount: 300,
  });
  await page.reload();
  await expect(figure(page, "Approved")).toHaveText("$300");
  await expect(figure(page, "Remaining")).toContainText("$500");
  await expect(page.getByRole("heading", { name: "Utilization 30%" })).toBeVisible();
  await expect(page.locator(".alloc li")).toContainText("$300 of $1,000");
  await accessible(page, page.getByRole("main"));

  await page.getByRole("tab", { name: "Payouts" }).click();
  await page.getByRole("button", { name: `Record payout for ${sent.number}` }).click();
  await page.getByLabel("Amount").fill("300.01");
  await page.getByRole("button", { name: "Record $300.01" }).click();
  await expect(page.getByText("This is more than what is left of the grant")).toBeVisible();
  await accessible(page, page.getByRole("dialog"));
  await page.getByLabel("Amount").fill("120");
  await page.getByRole("button", { name: "Record $120" }).click();
  await expect(toast(page, "Payout recorded")).toBeVisible();
  await expect(page.getByRole("row").filter({ hasText: sent.number })).toContainText("$180");
  await accessible(page);

  await page.goto("/nonprofit-dashboard");
  await expect(figure(page, "Budget Used")).toHaveText("12%");
  await expect(page.getByText("Used", { exact: true }).locator("..")).toContainText("$120");
});

test("a pledge waits until it is marked as received", async ({ page, request, people, accessible }) => {
  const { organization, admin } = await found(request, people);
  await rpc(request, null, "pledge_donation", {
    input: {
      nonprofit_id: organization.id,
      amount: "75",
      email: "pledge@mail.example",
      name: "Priya Raman",
      key: crypto.randomUUID(),
    },
  });
  await people.signIn(page, admin);
  await page.goto("/budget?tab=donations");
  await expect(page.getByText("Pledged")).toBeVisible();
  await accessible(page);
  await page.getByRole("button", { name: "Mark $75 from Priya Raman as received" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Mark as received" }).click();
  await expect(toast(page, "Donation received")).toBeVisible();
  await expect(figure(page, "Donated")).toHaveText("$75");
  await expect(page.getByText("Received", { exact: true })).toBeVisible();
});

test("an open pledge comes before newer ones that were cancelled", async ({ page, request, people }) => {
  const { organization, admin } = await found(request, people);
  const pledge = (name: string) =>
    rpc<{ donation_id: string }>(request, null, "pledge_donation", {
      input: {
        nonprofit_id: organization.id,
        amount: "75",
        email: "pledge@mail.example",
        name,
        key: crypto.randomUUID(),
      },
    });
  await pledge("Priya Raman");
  const { donation_id } = await pledge("Nobody Really");
  await rpc(request, admin.accessToken, "cancel_donation", { donation_id });
  await people.signIn(page, admin);
  await page.goto("/budget?tab=donations");
  const rows = page.getByRole("row").filter({ hasText: "$75" });
  await expect(rows.nth(0)).toContainText("Priya Raman");
  await expect(rows.nth(1)).toContainText("Cancelled");
});
