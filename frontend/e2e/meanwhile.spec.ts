/** What changes elsewhere while a page is open: another tab, and an admin who removes a member. */
import type { APIRequestContext } from "@playwright/test";
import { apiKey, rpc } from "./fixtures/api";
import { answersOf, found, opened } from "./fixtures/staff";
import { answer, toast } from "./fixtures/staff-pages";
import { expect, test, type Account } from "./fixtures/test";

/** What an admin's 'Deactivate' or removal does, by the API. */
async function removeFromTeam(request: APIRequestContext, admin: Account, member: Account) {
  const response = await request.delete(`/rest/v1/nonprofit_team_members?user_id=eq.${member.id}`, {
    headers: { apikey: await apiKey(request), authorization: `Bearer ${admin.accessToken}` },
  });
  expect(response.ok(), await response.text()).toBe(true);
}

test("a member removed while deciding sees a message, keeps the text and has no access afterwards", async ({
  page,
  request,
  people,
  accessible,
}) => {
  const { admin, member: manager, sent } = await opened(page, request, people, "manager");
  await answer(page, "Request More Information");
  await page.getByLabel("What do you need?").fill("Please send the letter from your landlord.");
  await removeFromTeam(request, admin, manager);
  await page.getByRole("dialog").getByRole("button", { name: "Request Information" }).click();
  await expect(page.getByRole("dialog").getByRole("alert")).toContainText(
    "You are not an active member of this organization. Ask your admin for an invitation.",
  );
  await accessible(page, page.getByRole("dialog"));
  await expect(page.getByLabel("What do you need?")).toHaveValue("Please send the letter from your landlord.");
  await page.goto("/nonprofit-requests");
  await expect(page.getByText(sent.number)).toHaveCount(0);
  await expect(page.getByText(/ask your admin for an invitation/i).first()).toBeVisible();
});

test("logging out in one tab ends the session in the other", async ({ page, context, people }) => {
  const person = await people.create("requester", "Marie-Thérèse Désir");
  await people.signIn(page, person);
  await expect(page).toHaveURL("/select-nonprofit");
  const other = await context.newPage();
  await other.goto("/profile-settings");
  await expect(other.getByLabel("First name")).toBeVisible();
  await page.getByRole("button", { name: `Account of ${person.fullName}` }).click();
  await page.getByRole("menuitem", { name: "Logout" }).click();
  await expect(page).toHaveURL("/login");
  // the other tab shows nothing of the account any more
  await expect(other).toHaveURL(/\/login/);
  await expect(other.getByText(person.email)).toHaveCount(0);
});

test("the same request sent from two tabs is one request", async ({ page, context, people, request }) => {
  const person = await people.create("requester", "Marie-Thérèse Désir");
  await people.signIn(page, person);
  const draft = await rpc<{ id: string }>(request, person.accessToken, "save_draft", {
    input: { ...answersOf(person, [{ id: "np-001" }]), step: 4 },
  });
  const other = await context.newPage();
  for (const tab of [page, other]) {
    await tab.goto(`/submit-request?draft=${draft.id}&form=single`);
    await expect(tab.getByRole("button", { name: "Submit Request" })).toBeVisible();
  }
  await page.getByRole("button", { name: "Submit Request" }).click();
  await expect(page.getByText(/REQ-\d+/).first()).toBeVisible();
  await other.getByRole("button", { name: "Submit Request" }).click();
  await expect(other.getByText(/REQ-\d+|already been submitted/).first()).toBeVisible();
  const { total_requests } = await rpc<{ total_requests: number }>(
    request,
    person.accessToken,
    "requester_dashboard",
    {},
  );
  expect(total_requests).toBe(1);
});

test("a draft that is open on two devices loses nothing that was typed on either", async ({
  page,
  context,
  people,
  request,
  accessible,
}) => {
  const person = await people.create("requester", "Marie-Thérèse Désir");
  await people.signIn(page, person);
  const draft = await rpc<{ id: string }>(request, person.accessToken, "save_draft", {
    input: { ...answersOf(person, [{ id: "np-001" }]), step: 4 },
  });
  const other = await context.newPage();
  for (const device of [page, other]) {
    await device.goto(`/submit-request?draft=${draft.id}&step=details`);
    await expect(device.getByLabel("Details")).not.toBeEmpty();
  }
  await page.getByLabel("Details").fill("Typed on the phone: we need food for two weeks.");
  await expect(page.getByText(/^Draft saved/).first()).toBeVisible();

  // the other device has the older version
  await other.getByLabel("Details").fill("Typed on the laptop: we need help with the rent.");
  const notice = other.getByRole("alert").filter({ hasText: "You changed this draft on another device too" });
  await expect(notice).toContainText("These answers are different: Details.");
  await expect(other.getByLabel("Details")).toBeFocused();
  await accessible(other);
  await expect(other.getByLabel("Details")).toHaveValue("Typed on the laptop: we need help with the rent.");
  await notice.getByRole("button", { name: "Take the other one" }).click();
  await expect(other.getByLabel("Details")).toHaveValue("Typed on the phone: we need food for two weeks.");
  await expect(notice).toHaveCount(0);
  await expect(other.locator("#main")).toBeFocused();

  // whoever comes back to the first device sees what was saved on the other
  await other.getByLabel("Amount").fill("275");
  await expect(other.getByText(/^Draft saved/).first()).toBeVisible();
  await page.evaluate(() => window.dispatchEvent(new Event("focus")));
  await expect(page.getByLabel("Amount")).toHaveValue("275");

  // and what is typed on both can be kept
  await other.getByLabel("Amount").fill("300");
  await expect(async () => {
    const detail = await rpc<{ request: { amount: string } }>(request, person.accessToken, "request_detail", {
      id: draft.id,
    });
    expect(detail.request.amount).toBe("$300");
  }).toPass();
  await page.getByLabel("Amount").fill("400");
  await page.getByRole("button", { name: "Keep what I typed here" }).click();
  await expect(page.getByLabel("Amount")).toHaveValue("400");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByLabel("You may contact me about this request by email or phone.").check();
  await page.getByRole("button", { name: "Submit Request" }).click();
  await expect(page.getByText(/REQ-\d+/).first()).toBeVisible();
});

test("settings changed elsewhere meanwhile are shown before they are saved over, and others stay", async ({
  page,
  request,
  people,
  accessible,
}) => {
  const { organization, admin } = await found(request, people);
  await people.signIn(page, admin);
  await page.goto("/nonprofit-settings");
  const mission = page.getByRole("textbox", { name: "Mission" });
  await mission.fill("We keep people warm.");
  // the server compares what was seen, so this is an admin with another page open
  await rpc(request, admin.accessToken, "save_organization", {
    nonprofit_id: organization.id,
    changes: { mission: "We feed people.", location: "Bath, ME" },
    seen: { mission: "We keep families fed and housed.", location: null },
  });
  const save = page.getByRole("button", { name: "Save changes" });
  await save.click();
  await expect(page.getByText("We feed people.")).toBeVisible();
  await expect(mission).toBeFocused();
  await expect(page.getByLabel("Location")).toHaveValue("Bath, ME");
  await accessible(page, page.getByRole("main"));
  await save.click();
  await expect(toast(page, "Settings saved")).toBeVisible();
  await page.reload();
  await expect(mission).toHaveValue("We keep people warm.");
  await expect(page.getByLabel("Location")).toHaveValue("Bath, ME");
});
