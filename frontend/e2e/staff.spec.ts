/** A working day of a nonprofit's staff: documents, refused pages, an expired session, changing figures. */
import { randomUUID } from "node:crypto";
import type { APIRequestContext, Locator, Page } from "@playwright/test";
import { apiKey, mailTo, rpc } from "./fixtures/api";
import { answersOf, ask, found, join, opened, prove, write, type Organization } from "./fixtures/staff";
import { answer, figure, toast } from "./fixtures/staff-pages";
import { expect, test, type Account } from "./fixtures/test";

/** One white pixel. */
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

/** A person's request with a photo of a letter. */
async function askWithPhoto(request: APIRequestContext, person: Account, organization: Organization) {
  const input = answersOf(person, [organization]);
  const draft = await rpc<{ id: string }>(request, person.accessToken, "save_draft", { input });
  const path = `${draft.id}/${randomUUID()}.png`;
  const upload = await request.post(`/storage/v1/object/request-documents/${path}`, {
    headers: {
      apikey: await apiKey(request),
      authorization: `Bearer ${person.accessToken}`,
      "content-type": "image/png",
    },
    data: PNG,
  });
  expect(upload.ok(), await upload.text()).toBe(true);
  await write(request, person, "request_documents", {
    request_id: draft.id,
    name: "Brief vom Vermieter – März.png",
    path,
    mime_type: "image/png",
    size_bytes: PNG.length,
  });
  await rpc(request, person.accessToken, "submit_request", {
    input: { ...input, key: randomUUID(), draft_id: draft.id },
  });
  return { id: draft.id, path };
}

test("staff open a document by a URL signed for them", async ({ page, request, people }) => {
  const { organization, admin } = await found(request, people);
  const stranger = await found(request, people);
  const person = await people.create("requester", "Marie-Thérèse Désir");
  const sent = await askWithPhoto(request, person, organization);
  await people.signIn(page, admin);
  await page.goto(`/nonprofit-request/${sent.id}`);
  const popup = page.waitForEvent("popup");
  await page.getByRole("button", { name: "View Brief vom Vermieter – März.png" }).click();
  const document = await popup;
  await document.waitForURL(/\/storage\/v1\/object\/sign\/request-documents\/.*token=/);
  await expect(document.locator("img")).toHaveJSProperty("naturalWidth", 1);

  const unsigned = await request.get(`/storage/v1/object/request-documents/${sent.path}`, {
    headers: { apikey: await apiKey(request), authorization: `Bearer ${stranger.admin.accessToken}` },
  });
  expect(unsigned.ok()).toBe(false);
});

test(
  "a document that cannot be opened shows an error and leaves no empty window",
  { tag: "@desk" },
  async ({ page, request, people }) => {
    const { organization, admin } = await found(request, people);
    const person = await people.create("requester", "Marie-Thérèse Désir");
    const sent = await askWithPhoto(request, person, organization);
    await people.signIn(page, admin);
    await page.goto(`/nonprofit-request/${sent.id}`);
    await page.route("**/storage/v1/object/sign/**", (route) => route.abort("connectionfailed"));
    await page.getByRole("button", { name: "View Brief vom Vermieter – März.png" }).click();
    await expect(toast(page, "This document did not open")).toBeVisible();
    await expect.poll(() => page.context().pages().length).toBe(1);
  },
);

const HAND_OVER = "a request is handed over to a colleague, who is notified, finds it under Mine and releases it";
// on phones the same select stands below the request
test(HAND_OVER, { tag: "@desk" }, async ({ page, request, people, browser, accessible }) => {
  const { organization, admin } = await found(request, people);
  const ruth = await join(request, people, admin, organization, "manager");
  const sent = await ask(request, people, [organization]);
  const other = await ask(request, people, [organization]);
  const assignee = (at: Page) => at.getByLabel("Who looks after it");
  const listed = (at: Page, number: string) => at.getByRole("row").filter({ hasText: number });

  await people.signIn(page, admin);
  await page.goto(`/nonprofit-request/${sent.id}`);
  await expect(assignee(page).locator("option")).toHaveText(["Nobody yet", "Amélie Haïtien (you)", "Ruth Okonkwo"]);
  await assignee(page).selectOption("Ruth Okonkwo");
  await accessible(page);
  await page.getByRole("button", { name: "Hand over" }).click();
  await expect(toast(page, "Ruth Okonkwo looks after it now")).toContainText(sent.number);
  await page.reload();
  await expect(assignee(page).locator("option:checked")).toHaveText("Ruth Okonkwo");
  // to everybody else it is a colleague's: the next one that waits for them is another
  await page.goto("/nonprofit-dashboard");
  await expect(page.getByRole("link", { name: "Review request" })).toHaveAttribute(
    "href",
    `/nonprofit-request/${other.id}`,
  );
  await page.goto("/nonprofit-requests");
  await expect(listed(page, sent.number)).toContainText("Ruth Okonkwo");

  const context = await browser.newContext({ viewport: page.viewportSize() });
  const theirs = await context.newPage();
  await people.signIn(theirs, ruth);
  await theirs.goto("/notifications");
  await theirs.getByRole("link", { name: `Amélie Haïtien handed ${sent.number} to you` }).click();
  await expect(assignee(theirs).locator("option:checked")).toHaveText("Ruth Okonkwo (you)");
  await theirs.goto("/nonprofit-requests");
  await expect(listed(theirs, other.number)).toBeVisible();
  await theirs.getByRole("button", { name: "Mine" }).click();
  await expect(theirs).toHaveURL(/[?&]mine=true/);
  await expect(listed(theirs, sent.number)).toBeVisible();
  await expect(listed(theirs, other.number)).toHaveCount(0);
  await accessible(theirs);
  await listed(theirs, sent.number)
    .getByRole("link", { name: new RegExp(`^Review, .+, ${sent.number}$`) })
    .click();
  await assignee(theirs).selectOption("Nobody yet");
  await theirs.getByRole("button", { name: "Leave it to all" }).click();
  await expect(toast(theirs, "Nobody looks after it now")).toBeVisible();
  await context.close();

  // the list that is open follows
  await expect(listed(page, sent.number)).not.toContainText("Ruth Okonkwo");
});

test("a request taken by another nonprofit is a row without the requester", async ({
  page,
  request,
  people,
  accessible,
}) => {
  const { organization, admin } = await found(request, people);
  const other = await found(request, people);
  const sent = await ask(request, people, [organization, other.organization]);
  await rpc(request, other.admin.accessToken, "request_more_info", {
    request_id: sent.id,
    nonprofit_id: other.organization.id,
    notes: "Please send the letter.",
  });
  await people.signIn(page, admin);
  await page.goto("/nonprofit-requests");
  const line = page.getByRole("row").filter({ hasText: sent.number });
  await expect(line).toContainText("Taken");
  await line.getByRole("link", { name: new RegExp(`^View, .+, ${sent.number}$`) }).click();
  await expect(page.getByText("Another nonprofit has taken this request")).toBeVisible();
  await expect(page.locator(".page-head .badge")).toHaveText("Taken");
  await expect(page.getByRole("button", { name: /Approve|Deny/ })).toHaveCount(0);
  for (const secret of ["We need food", "Marie-Thérèse", sent.person.email, "Saint-Germain"]) {
    await expect(page.locator("main")).not.toContainText(secret);
  }
  await accessible(page);
  await page.getByRole("link", { name: "See what waits for you" }).click();
  await expect(page).toHaveURL(/\/nonprofit-requests$/);
});

test("the last admin closes the organization: members are notified and its pages cannot be opened", async ({
  page,
  request,
  people,
  accessible,
}) => {
  const { organization, admin } = await found(request, people);
  const other = await found(request, people);
  const alone = await ask(request, people, [organization]);
  const shared = await ask(request, people, [organization, other.organization]);
  await people.signIn(page, admin);
  await page.goto("/nonprofit-settings");
  await page.getByRole("button", { name: "Close the organization" }).click();
  const dialog = page.getByRole("alertdialog");
  await expect(dialog.getByRole("heading")).toHaveText(`Close ${organization.name}?`);
  await accessible(page);
  await page.keyboard.press("Escape");
  await expect(dialog).toHaveCount(0);
  await expect(page.getByRole("button", { name: "Close the organization" })).toBeFocused();
  await page.getByRole("button", { name: "Close the organization" }).click();
  // On a slow phone the page that needs an organization is still shown when the navigation has ended, and the toast
  // may be over before the page can be asked for it.
  const cpu = await page.context().newCDPSession(page);
  const isSlow = test.info().project.name === "phone";
  await cpu.send("Emulation.setCPUThrottlingRate", { rate: isSlow ? 20 : 1 });
  await dialog.getByRole("button", { name: "Close the organization" }).click();
  if (!isSlow) await expect(toast(page, "Organization closed")).toBeVisible();
  await expect(page.getByRole("heading", { name: "Complete your organization setup" })).toBeVisible();
  await cpu.send("Emulation.setCPUThrottlingRate", { rate: 1 });
  await expect(page).toHaveURL(/\/nonprofit-dashboard$/);
  await page.goto("/nonprofit-requests");
  await expect(page).not.toHaveURL(/\/nonprofit-requests$/);

  const lookup = await rpc<{ status: string }>(request, null, "request_status", { number: alone.number });
  expect(lookup.status).toBe("declined");
  const still = await rpc<{ status: string }>(request, null, "request_status", { number: shared.number });
  expect(still.status).toBe("pending");
  await mailTo(request, alone.person.email, /declined/);
  const listed = await request.get(
    `/rest/v1/nonprofits?select=id&id=in.(${organization.id},${other.organization.id})`,
    {
      headers: { apikey: await apiKey(request) },
    },
  );
  expect(await listed.json()).toEqual([{ id: other.organization.id }]);
});

test.describe("a session that ends while a dialog is open", () => {
  /**
   * Presses a button with a session that the server no longer knows. In one step, because supabase-js checks the
   * session periodically and would leave the page first.
   */
  const pressAfterTheEnd = (button: Locator) =>
    button.evaluate((element: HTMLButtonElement) => {
      const kept = JSON.parse(localStorage.getItem("aidbridge-auth") ?? "null") as object | null;
      if (!kept) throw new Error("no session is kept");
      localStorage.setItem("aidbridge-auth", JSON.stringify({ ...kept, expires_at: 1, refresh_token: "gone" }));
      element.click();
    });

  test("signing in again restores the dialog with its values", async ({ page, request, people, accessible }) => {
    const { admin, sent } = await opened(page, request, people);
    await answer(page, "Deny Request");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Reason").selectOption("Outside the area served");
    await dialog.getByLabel("Message to the person").fill("You live in Bath; Midcoast Pantry helps there.");
    await expect(dialog.getByRole("button", { name: "Deny Request" })).toBeEnabled();
    await pressAfterTheEnd(dialog.getByRole("button", { name: "Deny Request" }));
    await expect(page).toHaveURL(/\/login\?next=/);
    await expect(toast(page, "Authentication required")).toBeVisible();
    await accessible(page, page.getByRole("main"));
    await page.getByLabel("Email").fill(admin.email);
    await page.getByLabel("Password", { exact: true }).fill(admin.password);
    await page.getByRole("main").getByRole("button", { name: "Login" }).click();
    await expect(page).toHaveURL(new RegExp(`/nonprofit-request/${sent.id}\\?decide=deny$`));
    await expect(dialog.getByLabel("Reason").locator("option:checked")).toHaveText("Outside the area served");
    await expect(dialog.getByLabel("Message to the person")).toHaveValue(
      "You live in Bath; Midcoast Pantry helps there.",
    );
    await dialog.getByRole("button", { name: "Deny Request" }).click();
    await expect(toast(page, "Request Declined")).toBeVisible();
    await expect(page.locator(".page-head .badge")).toHaveText("Declined");
    await expect(page).toHaveURL(new RegExp(`/nonprofit-request/${sent.id}$`));
  });

  test(
    "a closed dialog keeps no values, and an old URL opens none",
    { tag: "@desk" },
    async ({ page, request, people }) => {
      const { organization, admin, sent } = await opened(page, request, people);
      await answer(page, "Request More Information");
      await page.getByLabel("What do you need?").fill("Please send the letter.");
      await page.reload();
      await expect(page.getByLabel("What do you need?")).toHaveValue("Please send the letter.");
      await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
      await answer(page, "Request More Information");
      await expect(page.getByLabel("What do you need?")).toHaveValue("");
      await rpc(request, admin.accessToken, "deny_request", {
        request_id: sent.id,
        nonprofit_id: organization.id,
        reason: "Outside our area.",
      });
      await page.goto(`/nonprofit-request/${sent.id}?decide=approve`);
      await expect(page.locator(".page-head .badge")).toHaveText("Declined");
      await expect(page.getByRole("dialog")).toHaveCount(0);
      await expect(page).toHaveURL(new RegExp(`/nonprofit-request/${sent.id}$`));
    },
  );
});

test(
  "a payout recorded by a colleague meanwhile cannot be paid twice",
  { tag: "@desk" },
  async ({ page, request, people, accessible }) => {
    const { organization, admin } = await found(request, people);
    const manager = await join(request, people, admin, organization, "manager");
    const sent = await ask(request, people, [organization], "300");
    await rpc(request, admin.accessToken, "approve_request", {
      request_id: sent.id,
      nonprofit_id: organization.id,
      amount: 300,
      accept_over_budget: true,
    });
    await people.signIn(page, manager);
    await page.goto("/nonprofit-budget?tab=payouts");
    await page.getByRole("button", { name: `Record payout for ${sent.number}` }).click();
    await rpc(request, admin.accessToken, "record_payout", { request_id: sent.id, amount: 200 });
    await page.getByRole("button", { name: "Record $300" }).click();
    const dialog = page.getByRole("dialog");
    await expect(dialog.getByRole("alert")).toContainText("This was not saved");
    await expect(dialog.getByLabel("Amount")).toHaveValue("300");
    await accessible(page, dialog);
    await dialog.getByLabel("Amount").fill("100");
    await dialog.getByRole("button", { name: "Record $100" }).click();
    await expect(toast(page, "Payout recorded")).toBeVisible();
    await page.goto("/nonprofit-dashboard?tab=budget");
    await expect(page.getByText("Used", { exact: true }).locator("..")).toContainText("$300");
  },
);

test(
  "one gift, one decision and one payout update every figure: dashboard, budget, donor",
  { tag: "@desk" },
  async ({ page, request, people, browser, accessible }) => {
    const { organization, admin } = await found(request, people);
    await rpc(request, admin.accessToken, "set_budget_allocation", {
      nonprofit_id: organization.id,
      category: "Food Assistance",
      amount: 1000,
    });
    const sent = await ask(request, people, [organization], "200");
    const donor = await people.create("requester", "Daniel Whitcombe");
    await write(request, donor, "user_roles", { user_id: donor.id, role: "donor" }, { merge: true });
    const theirs = await (await browser.newContext({ viewport: page.viewportSize() })).newPage();

    await test.step("the donor promises, which moves nothing yet", async () => {
      await people.signIn(theirs, donor);
      await theirs.goto("/donor-dashboard?donate");
      await theirs.getByRole("dialog").getByRole("combobox").selectOption(organization.name);
      await theirs.getByRole("dialog").getByLabel("Amount").fill("500");
      await theirs.getByRole("button", { name: "Promise this donation" }).click();
      await expect(theirs.getByRole("dialog").getByRole("status")).toContainText(organization.name);
      await accessible(theirs, theirs.getByRole("dialog"));
      await theirs.goto("/donor-dashboard");
      await expect(figure(theirs, "Total Donated")).toHaveText("$0");
      await expect(figure(theirs, "Nonprofits Supported")).toHaveText("0");
    });

    await test.step("before: dashboard and budget", async () => {
      await people.signIn(page, admin);
      await expect(figure(page, "Pending")).toHaveText("1");
      await expect(figure(page, "Approved")).toHaveText("0");
      await expect(figure(page, "Budget Used")).toHaveText("0%");
      await page.goto("/nonprofit-budget?tab=donations");
      await expect(figure(page, "Donated")).toHaveText("$0");
      await expect(figure(page, "Remaining")).toContainText("$0");
    });

    await test.step("the gift arrives: Donated, Remaining, the donor's totals", async () => {
      await page.getByRole("button", { name: /^Mark \$500 from .* as received$/ }).click();
      await accessible(page, page.getByRole("alertdialog"));
      await page.getByRole("alertdialog").getByRole("button", { name: "Mark as received" }).click();
      await expect(figure(page, "Donated")).toHaveText("$500");
      await expect(figure(page, "Remaining")).toContainText("$500");
      await expect(figure(page, "Approved")).toHaveText("$0");
      await theirs.reload();
      await expect(figure(theirs, "Total Donated")).toHaveText("$500");
      await expect(figure(theirs, "Nonprofits Supported")).toHaveText("1");
      await expect(figure(theirs, "People Impacted")).toHaveText("0");
    });

    await test.step("the decision: Pending, Approved, Remaining, Utilization, People Impacted", async () => {
      await page.goto(`/nonprofit-request/${sent.id}`);
      await answer(page, "Approve Request");
      await page.getByRole("dialog").getByRole("button", { name: "Approve for $200" }).click();
      await expect(toast(page, "Request Approved")).toBeVisible();
      await page.goto("/nonprofit-dashboard");
      await expect(figure(page, "Pending")).toHaveText("0");
      await expect(figure(page, "Approved")).toHaveText("1");
      await expect(figure(page, "Budget Used")).toHaveText("0%");
      await page.goto("/budget");
      await expect(figure(page, "Approved")).toHaveText("$200");
      await expect(figure(page, "Remaining")).toContainText("$300");
      await expect(page.getByRole("heading", { name: "Utilization 20%" })).toBeVisible();
      // The donor's page learns of the decision by itself, within seconds.
      await expect(figure(theirs, "People Impacted")).toHaveText("1");
      // Groups of fewer than ten people are not shown.
      await expect(theirs.locator(".keys")).toHaveCount(0);
    });

    await test.step("the payout: Budget Used, and nothing else", async () => {
      await page.getByRole("tab", { name: "Payouts" }).click();
      await page.getByRole("button", { name: `Record payout for ${sent.number}` }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Record $200" }).click();
      await expect(toast(page, "Payout recorded")).toBeVisible();
      await expect(figure(page, "Approved")).toHaveText("$200");
      await expect(figure(page, "Remaining")).toContainText("$300");
      await page.goto("/nonprofit-dashboard");
      await expect(figure(page, "Budget Used")).toHaveText("20%");
      await expect(figure(page, "Approved")).toHaveText("1");
      await theirs.reload();
      await expect(figure(theirs, "Total Donated")).toHaveText("$500");
    });
    await theirs.context().close();
  },
);

test(
  "a message is unread for each donor until that donor has read it",
  { tag: "@desk" },
  async ({ page, request, people, browser }) => {
    const { organization, admin } = await found(request, people);
    const donors: Account[] = [];
    for (const name of ["Daniel Whitcombe", "Priya Raman"]) {
      const donor = await people.create("requester", name);
      await write(request, donor, "user_roles", { user_id: donor.id, role: "donor" }, { merge: true });
      await rpc(request, donor.accessToken, "pledge_donation", {
        input: { nonprofit_id: organization.id, amount: "20", email: donor.email, name, key: randomUUID() },
      });
      donors.push(donor);
    }
    const { pledges } = await rpc<{ pledges: { id: string }[] }>(request, admin.accessToken, "nonprofit_budget", {
      nonprofit_id: organization.id,
    });
    for (const pledge of pledges) await rpc(request, admin.accessToken, "receive_donation", { donation_id: pledge.id });
    await prove(request, admin);
    await rpc(request, admin.accessToken, "send_donor_message", {
      nonprofit_id: organization.id,
      subject: "Winter pantry opens",
      message: "It opens on Monday at nine.",
    });
    const line = (at: Page) => at.getByRole("listitem").filter({ hasText: "Winter pantry opens" });

    await people.signIn(page, donors[0] as Account);
    await expect(line(page)).toContainText("New");
    await page.getByRole("button", { name: "Winter pantry opens" }).click();
    await page.getByLabel("Your answer").fill("I can drive the van.");
    await page.reload();
    await expect(page.getByLabel("Your answer")).toHaveValue("I can drive the van.");
    await page.keyboard.press("Escape");
    await expect(line(page)).not.toContainText("New");
    await page.goto("/donor-dashboard");
    await expect(line(page)).toBeVisible();
    await expect(line(page)).not.toContainText("New");

    const context = await browser.newContext({ viewport: page.viewportSize() });
    const other = await context.newPage();
    await people.signIn(other, donors[1] as Account);
    await expect(line(other)).toContainText("New");
    await context.close();
  },
);

test("the list is exported as a file without names", { tag: "@desk" }, async ({ page, request, people }) => {
  const { organization, admin } = await found(request, people);
  const sent = await ask(request, people, [organization], "900");
  await people.signIn(page, admin);
  await page.goto("/nonprofit-requests");
  await expect(page.getByRole("link", { name: sent.number, exact: true })).toBeVisible();
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export CSV" }).click();
  const file = await download;
  expect(file.suggestedFilename()).toMatch(/^requests-\d{4}-\d{2}-\d{2}\.csv$/);
  let csv = "";
  for await (const chunk of await file.createReadStream()) csv += String(chunk);
  expect(csv).toContain(`${sent.number},Food Assistance,`);
  expect(csv).not.toMatch(/Désir|@/);
  await expect(toast(page, "Export ready")).toContainText("1 request is in the file.");
});

const SIDEBAR = "the sidebar folds with Ctrl+B, remembers it for seven days, and has the widths of the specification";
// below 768 px there is a menu instead, whose width it sees too
test(SIDEBAR, { tag: "@desk" }, async ({ page, people, accessible }) => {
  await people.signIn(page, { email: "manager@demo.aidbridge.test", password: "aidbridge-demo1A" });
  const side = page.locator("aside.side");
  const width = async () => Math.round((await side.boundingBox())?.width ?? 0);
  await expect.poll(width).toBe(256);
  await page.keyboard.press("Control+b");
  await expect.poll(width).toBe(48);
  await accessible(page, side);
  /** Days. The browser files what a page writes into `document.cookie` a moment later. */
  const kept = async () => {
    const cookie = (await page.context().cookies()).find((known) => known.name.includes("sidebar"));
    return Math.round(((cookie?.expires ?? 0) - Date.now() / 1000) / 86_400);
  };
  await expect.poll(kept).toBe(7);
  await page.reload();
  await expect.poll(width).toBe(48);
  await page.keyboard.press("Meta+b");
  await expect.poll(width).toBe(256);
  await page.setViewportSize({ width: 768, height: 900 });
  await expect(side).toBeVisible();
  await page.setViewportSize({ width: 767, height: 900 });
  await expect(side).toBeHidden();
  await page.getByRole("button", { name: "Menu" }).click();
  await expect.poll(async () => Math.round((await page.locator(".menu-sheet").boundingBox())?.width ?? 0)).toBe(288);
  await accessible(page, page.locator(".menu-sheet"));
});
