/** The donor's side: empty, a pledge, its effect, a message and its answer. */
import { randomUUID } from "node:crypto";
import type { APIRequestContext, Page } from "@playwright/test";
import { rpc } from "./fixtures/api";
import { ask, found, write, prove } from "./fixtures/staff";
import { expect, test, type Account, type People } from "./fixtures/test";

const figure = (page: Page, label: string) =>
  page
    .locator(".figures > div")
    .filter({ has: page.locator("dt", { hasText: label }) })
    .locator("dd");
const toast = (page: Page, title: string) => page.locator(".toast").filter({ hasText: title });

async function createDonor(request: APIRequestContext, people: People): Promise<Account> {
  const donor = await people.create("requester", "Daniel Whitcombe");
  await write(request, donor, "user_roles", { user_id: donor.id, role: "donor" }, { merge: true });
  return donor;
}

test("a donor pledges, sees what the money did, reads and answers a message", async ({
  page,
  request,
  people,
  browser,
  accessible,
}) => {
  const { organization, admin } = await found(request, people);
  const donor = await createDonor(request, people);
  await people.signIn(page, donor);
  await expect(page).toHaveURL(/\/donor-dashboard$/);
  await expect(page.getByText("Hello, Daniel. Here is what your money did.")).toBeVisible();
  await expect(figure(page, "Total Donated")).toHaveText("$0");
  await expect(page.getByText("When you give, you see here what your money did.")).toBeVisible();
  await accessible(page);

  await page.getByRole("button", { name: "Make a Donation" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.locator("button[type=submit]").click();
  await accessible(page, dialog);
  await dialog.getByRole("combobox").selectOption(organization.name);
  await dialog.getByLabel("Amount").fill("500");
  await accessible(page);
  await dialog.locator("button[type=submit]").click();
  await expect(dialog.getByRole("status")).toContainText(organization.name);
  await accessible(page, dialog);
  await dialog.getByRole("button", { name: "Close" }).first().click();

  await page.getByRole("tab", { name: "Donations" }).click();
  await expect(page).toHaveURL(/tab=donations/);
  await expect(page.getByText("Pledged")).toBeVisible();
  await accessible(page);

  const { pledges } = await rpc<{ pledges: { id: string }[] }>(request, admin.accessToken, "nonprofit_budget", {
    nonprofit_id: organization.id,
  });
  await rpc(request, admin.accessToken, "receive_donation", { donation_id: pledges[0]?.id });
  const sent = await ask(request, people, [organization], "200");
  await rpc(request, admin.accessToken, "approve_request", {
    request_id: sent.id,
    nonprofit_id: organization.id,
    amount: 200,
  });
  await prove(request, admin);
  await rpc(request, admin.accessToken, "send_donor_message", {
    nonprofit_id: organization.id,
    subject: "Winter pantry opens on Monday",
    message: "Thank you. It opens on Monday at nine.",
  });

  await page.goto("/donor-dashboard");
  await expect(figure(page, "Total Donated")).toHaveText("$500");
  await expect(figure(page, "People Impacted")).toHaveText("1");
  await expect(figure(page, "Nonprofits Supported")).toHaveText("1");
  // one person is not a group
  await expect(page.getByText("What it paid for is told once ten people were helped.")).toBeVisible();
  await expect(page.locator(".keys")).toHaveCount(0);
  await expect(page.getByText("Marie-Thérèse")).toHaveCount(0);
  await accessible(page);
  await page.getByRole("tab", { name: "Impact" }).click();
  await expect(page.getByText("One person was helped by the nonprofits you gave to.")).toBeVisible();
  await accessible(page);

  await page.getByRole("tab", { name: "Overview" }).click();
  const line = page.getByRole("listitem").filter({ hasText: "Winter pantry opens on Monday" });
  await expect(line).toContainText("New");
  await page.getByRole("button", { name: "Winter pantry opens on Monday" }).click();
  await expect(dialog).toContainText("It opens on Monday at nine.");
  await dialog.getByRole("button", { name: "Send answer" }).click();
  await expect(dialog.getByText("Write your answer")).toBeVisible();
  await dialog.getByLabel("Your answer").fill("Glad to hear it.");
  await accessible(page);
  await dialog.getByRole("button", { name: "Send answer" }).click();
  await expect(toast(page, "Answer sent")).toBeVisible();
  await expect(line).not.toContainText("New");

  const context = await browser.newContext({ viewport: page.viewportSize() });
  const staff = await context.newPage();
  await people.signIn(staff, admin);
  await staff.goto("/nonprofit-donor-communication?tab=inbox");
  await expect(staff.getByText("From Daniel Whitcombe")).toBeVisible();
  await expect(staff.getByText("New", { exact: true })).toBeVisible();
  await staff.getByRole("button", { name: "Re: Winter pantry opens on Monday" }).click();
  await expect(staff.getByText("Glad to hear it.")).toBeVisible();
  await expect(staff.getByText("New", { exact: true })).toHaveCount(0);
  await accessible(staff);
  await context.close();
});

test("opening a message from its mail or notification marks it as read", async ({ page, request, people }) => {
  const { organization, admin } = await found(request, people);
  const donor = await createDonor(request, people);
  await rpc(request, admin.accessToken, "record_donation", {
    nonprofit_id: organization.id,
    donor_name: donor.fullName,
    donor_email: donor.email,
    amount: 50,
    key: randomUUID(),
  });
  await prove(request, donor);
  await prove(request, admin);
  await people.signIn(page, donor);
  await rpc(request, admin.accessToken, "send_donor_message", {
    nonprofit_id: organization.id,
    subject: "The boiler is paid",
    message: "It runs since Tuesday.",
  });
  const unread = async () => {
    const { messages } = await rpc<{ messages: { id: string; unread: boolean }[] }>(
      request,
      donor.accessToken,
      "donor_dashboard",
      {},
    );
    return messages;
  };
  const [message] = await unread();
  expect(message?.unread).toBe(true);
  await page.goto(`/donor-dashboard?message=${message?.id}`);
  await expect(page.getByRole("dialog")).toContainText("It runs since Tuesday.");
  await expect.poll(async () => (await unread())[0]?.unread).toBe(false);
});

test("pages of other audiences redirect a donor", async ({ page, request, people }) => {
  const donor = await createDonor(request, people);
  await people.signIn(page, donor);
  for (const path of ["/nonprofit-dashboard", "/nonprofit-requests", "/requester-dashboard"]) {
    await page.goto(path);
    await expect(page).toHaveURL(/\/donor-dashboard$/);
  }
});
