/** Writing to donors. */
import { mailTo, rpc } from "./fixtures/api";
import { found, prove } from "./fixtures/staff";
import { toast } from "./fixtures/staff-pages";
import { expect, test } from "./fixtures/test";

test("writing to donors: field errors, a kept draft, then listed under Sent", async ({
  page,
  request,
  people,
  accessible,
}) => {
  const { organization, admin } = await found(request, people);
  await prove(request, admin);
  await rpc(request, admin.accessToken, "record_donation", {
    nonprofit_id: organization.id,
    amount: 20,
    donor_name: "Daniel",
    donor_email: "daniel.by.mail@mail.example",
  });
  await people.signIn(page, admin);
  await page.goto("/nonprofit-donor-communication");
  await expect(page.getByText("One active donor gets your messages.")).toBeVisible();
  await page.getByRole("button", { name: "Send message" }).click();
  await expect(page.getByText("Subject is required").first()).toBeVisible();
  await expect(page.getByText("Message must be at least 10 characters").first()).toBeVisible();
  await accessible(page);
  await page.getByLabel("Subject").fill("Winter pantry opens");
  await page.getByRole("textbox", { name: "Message" }).fill("It opens on Monday at nine.");
  await page.reload();
  await expect(page.getByRole("textbox", { name: "Message" })).toHaveValue("It opens on Monday at nine.");
  await page.getByRole("button", { name: "Send message" }).click();
  await expect(toast(page, "Message sent successfully")).toBeVisible();
  await expect(page).toHaveURL(/tab=sent/);
  await page.getByRole("button", { name: "Winter pantry opens" }).click();
  await expect(page.getByText("To one donor")).toBeVisible();
  await accessible(page, page.getByRole("main"));
  expect((await mailTo(request, "daniel.by.mail@mail.example", /Winter pantry opens/)).text).toContain("Unsubscribe:");
  await page.getByRole("tab", { name: "Inbox" }).click();
  await expect(page.getByText("When a donor answers one of your messages, you read it here.")).toBeVisible();
  await accessible(page);
});
