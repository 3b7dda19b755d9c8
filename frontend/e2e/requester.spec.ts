/** The requester's own pages: choosing a nonprofit, drafts, finding, answering, withdrawing, looking up. */
import { randomUUID } from "node:crypto";
import { rpc, tokenOf } from "./fixtures/api";
import { answersOf } from "./fixtures/staff";
import { expect, test } from "./fixtures/test";
import { button, chooseHarbor, DESCRIPTION, fillContact, heading, PDF, toast } from "./fixtures/wizard";
import type { APIRequestContext } from "@playwright/test";

/** A sent request of this account, made through the API. */
async function aRequest(request: APIRequestContext, token: string, email: string, nonprofits = ["np-001"]) {
  return rpc<{ id: string; request_number: string }>(request, token, "submit_request", {
    input: {
      ...answersOf(
        { email },
        nonprofits.map((id) => ({ id })),
        { amount: "$320", category: "cat-004" },
      ),
      key: randomUUID(),
      description: DESCRIPTION,
    },
  });
}

test(
  "the nonprofit chosen on /select-nonprofit is preselected and marked in the form",
  { tag: "@desk" },
  async ({ page, people, request }) => {
    const account = await people.create("requester", "Paula Pick");
    await people.signIn(page, account);
    await expect(page).toHaveURL("/select-nonprofit");
    await expect(page.getByRole("main").getByRole("button", { name: /^Lakeside Food Bank/ })).not.toHaveAttribute(
      "aria-current",
    );
    await page
      .getByRole("main")
      .getByRole("button", { name: /^Lakeside Food Bank/ })
      .click();
    await expect(page).toHaveURL("/requester-dashboard");
    await page.goto("/select-nonprofit");
    await expect(page.getByRole("main").getByRole("button", { name: /^Lakeside Food Bank/ })).toHaveAttribute(
      "aria-current",
      "true",
    );
    await expect(page.getByRole("main").locator("button[aria-current]")).toHaveCount(1);

    // in both forms, also on another device
    const elsewhere = await (await page.context().browser()?.newContext())?.newPage();
    if (!elsewhere) throw new Error("no second device");
    await people.signIn(elsewhere, account);
    for (const [device, address] of [
      [page, "/submit-request"],
      [elsewhere, "/submit-request"],
    ] as const) {
      await device.goto(address);
      await device
        .getByRole("main")
        .getByRole("button", { name: /^Food Assistance/ })
        .click();
      await expect(device.getByRole("checkbox", { name: /^Lakeside Food Bank/ })).toBeChecked();
      await expect(device.getByRole("checkbox", { checked: true })).toHaveCount(1);
    }
    // who takes it out again finds it out after 'Back', too
    await page.getByRole("checkbox", { name: /^Lakeside Food Bank/ }).uncheck();
    await page.goBack();
    await page
      .getByRole("main")
      .getByRole("button", { name: /^Food Assistance/ })
      .click();
    await expect(page.getByRole("checkbox", { name: /^Lakeside Food Bank/ })).not.toBeChecked();
    await elsewhere.context().close();
    expect(
      (await rpc<{ selected_nonprofit: { name: string } }>(request, account.accessToken, "me", {})).selected_nonprofit
        .name,
    ).toBe("Lakeside Food Bank");
  },
);

test("a requester chooses a nonprofit, keeps a draft and sends it", async ({ page, people, accessible }) => {
  const account = await people.create("requester", "Marie-Thérèse Désir Beauvoir");
  await people.signIn(page, account);
  await page.waitForURL("**/select-nonprofit");
  await expect(page.getByText("No nonprofit selected")).toBeVisible();
  // other journeys found organizations of their own: the list may have more than one page
  await page.getByLabel(/^Search/).fill("Harbor Relief");
  await expect(page.getByRole("main").getByRole("listitem")).toHaveText([/Harbor Relief Fund/]);
  await accessible(page);
  await button(page, /Harbor Relief Fund/).click();
  await toast(page, "Nonprofit selected");
  await page.waitForURL("**/requester-dashboard");
  await expect(page.getByText("You haven't submitted any requests yet")).toBeVisible();
  await accessible(page);
  await page.goto("/my-requests");
  await expect(page.getByText(/You haven't submitted any assistance requests yet\./)).toBeVisible();
  await page.goto("/request-drafts");
  await expect(page.getByText("No Saved Drafts")).toBeVisible();
  await accessible(page);

  // a draft saves itself
  await page.getByRole("main").getByRole("link", { name: "New Request" }).first().click();
  await button(page, /^School Tuition/).click();
  await chooseHarbor(page);
  await button(page, "Continue").click();
  await expect(page.getByText(`Signed in as ${account.email}`)).toBeVisible();
  await expect(page.getByLabel("First name")).toHaveValue("Marie-Thérèse");
  await expect(page.getByLabel("Last name")).toHaveValue("Désir Beauvoir");
  await page.getByLabel("Phone", { exact: true }).fill("+1 207 555 0142");
  await button(page, "Save draft").click();
  await toast(page, "Draft saved");
  await page.goto("/request-drafts");
  await expect(page.getByRole("heading", { name: "School Tuition" })).toBeVisible();
  await accessible(page);
  await page.getByRole("link", { name: "Continue School Tuition" }).click();
  // where it was left
  await expect(heading(page, "Your information")).toBeVisible();
  await expect(page.getByLabel("Phone", { exact: true })).toHaveValue("+1 207 555 0142");
  await button(page, "Next").click();
  await fillContact(page);
  await button(page, "Continue").click();
  await page.getByLabel("Details").fill(DESCRIPTION);
  await page.locator("input[type=file]").setInputFiles(PDF);
  await expect(page.getByText(/arrived/)).toBeVisible();
  await button(page, "Continue").click();
  await page.getByRole("checkbox", { name: /You may contact me/ }).click();
  await button(page, "Submit Request").click();
  const number = (await page.getByTestId("request-number").innerText()).trim();
  await page.getByRole("link", { name: "Go to Dashboard" }).click();
  await expect(page.getByText("One request is on its way.")).toBeVisible();
  await expect(page.getByText(number, { exact: true })).toBeVisible();
  await accessible(page);

  // the draft became the request
  await page.goto("/request-drafts");
  await expect(page.getByText("No Saved Drafts")).toBeVisible();

  await page.goto("/my-requests");
  await page.getByRole("link", { name: "School Tuition" }).click();
  const download = page.waitForEvent("download");
  await button(page, PDF.name).click();
  expect((await download).suggestedFilename()).toBe(PDF.name);
});

test(
  "a draft continues where it was left, in another tab and another browser",
  { tag: "@desk" },
  async ({ page, browser, people, request }) => {
    const account = await people.create("requester", "Dina Draft");
    await rpc(request, account.accessToken, "select_nonprofit", { nonprofit_id: "np-001" });
    await people.signIn(page, account);
    await page.goto("/submit-request");
    await button(page, /^Food Assistance/).click();
    await chooseHarbor(page);
    await button(page, "Continue").click();
    await page.getByLabel("Phone", { exact: true }).fill("+1 207 555 0142");
    await button(page, "Next").click();
    await fillContact(page);
    await button(page, "Continue").click();
    await page.getByLabel("Details").fill(DESCRIPTION);
    await button(page, "Save draft").click();
    await toast(page, "Draft saved");

    const elsewhere = await browser.newContext({ viewport: page.viewportSize() });
    const tab = await page.context().newPage();
    const other = await elsewhere.newPage();
    await people.signIn(other, account);
    for (const device of [tab, other]) {
      await device.goto("/request-drafts");
      await device.getByRole("link", { name: "Continue Food Assistance" }).click();
      // all is answered but the consent
      await expect(heading(device, "Check your answers")).toBeVisible();
      await expect(device.getByText(DESCRIPTION)).toBeVisible();
      await expect(device.getByText("18 Main Street")).toBeVisible();
    }
    // what is changed there is found here
    await other.getByRole("link", { name: "Change Details" }).click();
    await other.getByLabel("Details").fill(`${DESCRIPTION} It is for five people.`);
    await button(other, "Save draft").click();
    await toast(other, "Draft saved");
    await page.goto("/request-drafts");
    await page.getByRole("link", { name: "Continue Food Assistance" }).click();
    await expect(page.getByText("It is for five people.")).toBeVisible();
    await elsewhere.close();
  },
);

test("a requester finds a request, withdraws it and sends it again", async ({ page, people, request, accessible }) => {
  const account = await people.create("requester", "Fiona Finder");
  const { request_number: number } = await aRequest(request, account.accessToken, account.email);
  await rpc(request, account.accessToken, "select_nonprofit", { nonprofit_id: "np-001" });
  await people.signIn(page, account);

  // filters live in the address
  await page.goto("/my-requests");
  await expect(page.getByRole("heading", { level: 2, name: "1 request" })).toBeVisible();
  await accessible(page);
  await page.getByLabel("Status").selectOption("Approved");
  await expect(
    page.getByText("No requests match your current filters. Try adjusting or clearing your filters."),
  ).toBeVisible();
  await expect(page).toHaveURL(/status=approved/);
  await page.reload();
  await expect(page.getByText("No requests found")).toBeVisible();
  await accessible(page, page.getByRole("main"));
  await button(page, "Clear Filters").first().click();
  await page.getByLabel("Search").fill("nothing like it");
  await expect(page).toHaveURL(/q=nothing/);
  await expect(page.getByText("No requests found")).toBeVisible();
  await page.getByLabel("Search").fill(number.toLowerCase());
  await expect(page.getByText(number, { exact: true })).toBeVisible();
  await page.getByLabel("Dates").click();
  await expect(page.locator(".cal")).toBeVisible();
  await accessible(page);
  await page.keyboard.press("Escape");

  // details, and the way back
  await page.getByRole("link", { name: `View Details, School Tuition, ${number}`, exact: true }).click();
  await expect(page).toHaveURL(/\/request-details\//);
  await expect(page.getByText(DESCRIPTION)).toBeVisible();
  await expect(page.getByText("Has it. No answer yet")).toBeVisible();
  await accessible(page);
  await button(page, "Cancel Request").click();
  await expect(page.getByRole("alertdialog")).toBeVisible();
  await accessible(page);
  await page.getByRole("alertdialog").getByRole("button", { name: "Cancel Request" }).click();
  await toast(page, "Request withdrawn");
  await expect(page.locator(".badge").getByText("Withdrawn")).toBeVisible();
  await accessible(page, page.getByRole("main"));
  await expect(button(page, "Cancel Request")).toHaveCount(0);
  await button(page, "Send again as a new request").click();
  await expect(page).toHaveURL(/\/submit-request\?draft=/);
  await expect(heading(page, "Check your answers")).toBeVisible();

  await page.goto("/request-drafts");
  await button(page, "Delete School Tuition").click();
  await accessible(page, page.getByRole("alertdialog"));
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete draft" }).click();
  await toast(page, "Draft deleted");
  await toast(page, "The draft has been successfully removed");
  await expect(page.getByText("No Saved Drafts")).toBeVisible();
});

test("a requester answers a nonprofit's question", async ({ page, people, request, accessible }) => {
  const account = await people.create("requester", "Ada Answer");
  const { id, request_number: number } = await aRequest(request, account.accessToken, account.email);
  await rpc(request, account.accessToken, "select_nonprofit", { nonprofit_id: "np-001" });
  const manager = await tokenOf(request, "manager@demo.aidbridge.test");
  await rpc(request, manager, "request_more_info", {
    request_id: id,
    nonprofit_id: "np-001",
    notes: "Please send the school's fee letter.",
  });

  await people.signIn(page, account);
  await page.waitForURL("**/requester-dashboard");
  await expect(page.getByText("One request needs something from you.")).toBeVisible();
  await accessible(page);
  await page.getByRole("link", { name: "Add documents" }).click();
  await expect(page.locator(".badge").getByText("Needs More Proof")).toBeVisible();
  await expect(page.getByText(/Please send the school's fee letter\./).first()).toBeVisible();
  await accessible(page);
  await button(page, "Send answer").click();
  await toast(page, "No files selected");
  await toast(page, "Please select at least one document to upload.");
  await page.getByLabel("Your answer").fill("Here it is. The second page follows.");
  await page.reload();
  await expect(page.getByLabel("Your answer")).toHaveValue("Here it is. The second page follows.");
  await page.locator("input[type=file]").setInputFiles([
    { ...PDF, name: "fee letter.pdf" },
    { name: "photo.png", mimeType: "image/png", buffer: Buffer.from("\x89PNG\r\n\x1a\n", "latin1") },
  ]);
  await button(page, "Send documents").click();
  await toast(page, "Documents uploaded successfully");
  await toast(page, "2 document(s) have been uploaded.");
  await expect(page.locator(".badge").getByText("Pending")).toBeVisible();
  await expect(button(page, "fee letter.pdf")).toBeVisible();
  await expect(page.getByText("Here it is. The second page follows.")).toBeVisible();
  await accessible(page, page.getByRole("main"));

  const seen = await rpc<{ documents: { name: string }[] }>(request, manager, "open_request", {
    request_id: id,
    nonprofit_id: "np-001",
  });
  expect(seen.documents.map(({ name }) => name).sort()).toEqual(["fee letter.pdf", "photo.png"]);

  // both addresses of the details show the same, and so does the short look
  await page.goto(`/request/${number}`);
  await expect(heading(page, "School Tuition")).toBeVisible();
  await page.goto(`/request-status/${id}`);
  await expect(page.getByRole("heading", { level: 2, name: number })).toBeVisible();
  await accessible(page);
});

test("shows a decision: approved with the amount, declined with the reason", async ({
  page,
  people,
  request,
  accessible,
}) => {
  const account = await people.create("requester", "Dora Decision");
  const manager = await tokenOf(request, "manager@demo.aidbridge.test");
  const approved = await aRequest(request, account.accessToken, account.email);
  const declined = await aRequest(request, account.accessToken, account.email);
  await rpc(request, account.accessToken, "select_nonprofit", { nonprofit_id: "np-001" });
  await rpc(request, manager, "approve_request", {
    request_id: approved.id,
    nonprofit_id: "np-001",
    amount: 25,
    accept_over_budget: true,
  });
  await rpc(request, manager, "deny_request", {
    request_id: declined.id,
    nonprofit_id: "np-001",
    reason: "Our funds are used up until January.",
    reason_code: "funding_limit",
  });
  await people.signIn(page, account);
  await expect(page.locator(".figures").getByText("$25")).toBeVisible();
  await page.goto(`/request-details/${approved.id}`);
  await expect(page.locator(".badge").getByText("Approved")).toBeVisible();
  await expect(page.getByText("Approved for $25").first()).toBeVisible();
  await accessible(page, page.getByRole("main"));
  await page.goto(`/request-details/${declined.id}`);
  await expect(page.getByText("Our funds are used up until January.").first()).toBeVisible();
  await accessible(page, page.getByRole("main"));
  await expect(button(page, "Cancel Request")).toHaveCount(0);
});

test("another person's request is not found", { tag: "@desk" }, async ({ page, people, request, accessible }) => {
  const owner = await people.create("requester", "Olga Owner");
  const stranger = await people.create("requester", "Stan Stranger");
  const { id } = await aRequest(request, owner.accessToken, owner.email);
  await rpc(request, stranger.accessToken, "select_nonprofit", { nonprofit_id: "np-001" });
  await people.signIn(page, stranger);
  for (const address of [`/request-details/${id}`, `/request/${id}`, `/request-status/${id}`]) {
    await page.goto(address);
    await expect(
      page.getByText("We couldn't find a request with the ID you provided. Please check the ID and try again."),
    ).toBeVisible();
  }
  await page.goto(`/request-details/${id}`);
  await accessible(page);
  await page.getByRole("link", { name: "Return to Dashboard" }).click();
  await page.waitForURL("**/requester-dashboard");
});

test("the public look-up shows the demo requests without names", { tag: "@desk" }, async ({ page, accessible }) => {
  await page.goto("/request-status");
  await button(page, "Check status").click();
  await expect(page.getByText("Request ID is required").first()).toBeVisible();
  await accessible(page, page.getByRole("main").locator("form"));
  const result = page.locator(".result");
  const check = async (number: string) => {
    await page.getByLabel("Request ID").fill(number);
    await button(page, "Check status").click();
  };
  await check("REQ-001");
  await expect(result.getByText("In review")).toBeVisible();
  await check("req-002");
  await expect(result.getByText("$100 awarded")).toBeVisible();
  await accessible(page);
  await check("REQ-003");
  await expect(result.getByText("Reason: Funding limit reached")).toBeVisible();
  await accessible(page, result);
  await check("REQ-004");
  await expect(result.getByText("Pending")).toBeVisible();
  await expect(page.getByRole("main")).not.toContainText(/Marie|Désir|@|Street/);
  await check("REQ-99999");
  await expect(page.getByRole("alert").getByText("Request Not Found")).toBeVisible();
  await accessible(page);
});
