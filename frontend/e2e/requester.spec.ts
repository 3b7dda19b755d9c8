/** The requester's journeys: asking without and with an account, drafts, answering, withdrawing, looking up. */
import { randomUUID } from "node:crypto";
import { mailTo, rpc, tokenOf } from "./fixtures/api";
import { answersOf } from "./fixtures/staff";
import { expect, test } from "./fixtures/test";
import { answerAll, DESCRIPTION, fillContact, fillPersonal } from "./fixtures/wizard";
import type { APIRequestContext, Page } from "@playwright/test";

const PDF = { name: "payslip october.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4 payslip") };

const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { level: 1, name });
const button = (page: Page, name: string | RegExp) => page.getByRole("button", { name });
/** Toasts fade; the region's text is what was said. */
const toast = (page: Page, words: string | RegExp) =>
  expect(page.locator(".toast").getByText(words).first()).toBeVisible();

/** Searches for the nonprofit and ticks it once it is the only result. */
async function chooseHarbor(page: Page) {
  await page.getByLabel("Search nonprofits").fill("Harbor Relief");
  const cards = page.getByRole("group", { name: "Nonprofits" }).getByRole("checkbox");
  await expect(cards).toHaveCount(1);
  // the wizard ticks a previously selected nonprofit
  await cards.check();
}

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

test("a guest asks for help, loses nothing on the way, and can look the request up", async ({
  page,
  request,
  accessible,
}) => {
  const email = `guest-${randomUUID()}@test.example`;
  await page.goto("/request-submission");
  await expect(heading(page, "Choose type of assistance")).toBeVisible();
  await accessible(page);
  await button(page, /^Food Assistance/).click();

  await expect(heading(page, "Choose nonprofits")).toBeVisible();
  await expect(button(page, "Continue")).toBeDisabled();
  const cards = page.getByRole("group", { name: "Nonprofits" }).getByRole("checkbox");
  await expect(cards.nth(3)).toBeVisible();
  for (const card of [0, 1, 2, 3]) await cards.nth(card).click();
  await toast(page, "Maximum selection reached");
  await toast(page, "You can select up to 3 nonprofit organizations.");
  await expect(page.getByText("3/3")).toBeVisible();
  await expect(cards.nth(3)).not.toBeChecked();
  await cards.nth(2).click();
  await accessible(page);
  await page.getByLabel("Search nonprofits").fill("no such nonprofit");
  await expect(page.getByText("No nonprofits found")).toBeVisible();
  await button(page, "Clear search").click();
  await expect(cards.nth(3)).toBeVisible();
  await button(page, "Continue").click();

  await expect(heading(page, "Your information")).toBeVisible();
  await button(page, "Next").click();
  await toast(page, "Please complete all fields");
  await toast(page, "All personal information fields are required.");
  for (const message of [
    "First name is required",
    "Last name is required",
    "Please enter a valid email address",
    "Phone number is required",
  ]) {
    await expect(page.getByRole("main").getByText(message).first()).toBeVisible();
  }
  await accessible(page);
  await page.getByRole("link", { name: "Last name is required" }).click();
  await expect(page.getByLabel("Last name")).toBeFocused();
  await fillPersonal(page, email);
  await button(page, "Next").click();
  await fillContact(page);
  await accessible(page);

  // the answers outlive a reload
  await page.reload();
  await expect(page.getByLabel("First name")).toHaveValue("Marie");
  await button(page, "Next").click();
  await expect(page.getByLabel("Street address")).toHaveValue("18 Main Street");
  await page.getByLabel("City").fill("");
  await button(page, "Continue").click();
  await expect(page.getByText("City is required").first()).toBeVisible();
  await page.getByLabel("City").fill("Portland");
  await button(page, "Continue").click();

  await expect(heading(page, "Tell us what you need")).toBeVisible();
  await page.getByLabel("Details").fill("too short");
  await page.getByLabel("Amount").fill("a lot");
  await button(page, "Continue").click();
  await expect(page.getByText("Please provide details about your request").first()).toBeVisible();
  await expect(page.getByText("Amount must be a number").first()).toBeVisible();
  await page.getByLabel("Details").fill(DESCRIPTION);
  await page.getByLabel("Amount").fill("$1,250.50");
  const files = page.locator("input[type=file]");
  await files.setInputFiles({ name: "film.mov", mimeType: "video/quicktime", buffer: Buffer.from("x") });
  await toast(page, "Invalid file type");
  await toast(page, "film.mov is not an accepted file type.");
  await files.setInputFiles({ ...PDF, name: "big.pdf", buffer: Buffer.alloc(10 * 1024 * 1024 + 1) });
  await toast(page, "File too large");
  await toast(page, "big.pdf exceeds the maximum file size of 10MB.");
  await files.setInputFiles(PDF);
  await expect(page.getByText(/arrived/)).toBeVisible();
  await accessible(page);
  await button(page, "Continue").click();

  await expect(heading(page, "Check your answers")).toBeVisible();
  await expect(page.getByText("$1,250.50")).toBeVisible();
  await expect(page.getByText(PDF.name)).toBeVisible();
  await accessible(page);
  // back and forth in the browser's history
  await page.goBack();
  await expect(page.getByLabel("Details")).toHaveValue(DESCRIPTION);
  await expect(page.getByText(PDF.name)).toBeVisible();
  await page.goForward();
  await button(page, "Submit Request").click();
  await expect(page.getByText("You must agree to be contacted").first()).toBeVisible();
  await page.getByRole("checkbox", { name: /You may contact me/ }).click();
  await button(page, "Submit Request").click();

  await expect(heading(page, "Request submitted successfully")).toBeVisible();
  const number = (await page.getByTestId("request-number").innerText()).trim();
  expect(number).toMatch(/^REQ-\d{3,}$/);
  await toast(page, `Your request ID is ${number}`);
  await expect(page.getByText(`We sent a confirmation e-mail to ${email}.`)).toBeVisible();
  await accessible(page);
  await page.reload();
  await expect(page.getByTestId("request-number")).toHaveText(number);
  expect((await mailTo(request, email, new RegExp(number))).text).toContain(number);

  await page.getByRole("main").getByRole("link", { name: "Check Request Status" }).click();
  await expect(page.getByRole("heading", { level: 2, name: number })).toBeVisible();
  await expect(page.locator(".result").getByText("Pending")).toBeVisible();
});

test("nonprofits that help with it come first, then those that help where the person is", async ({
  page,
  accessible,
}) => {
  await page.goto("/submit-request");
  await button(page, /^Medical Aid/).click();
  const cards = page.getByRole("group", { name: "Nonprofits" }).getByRole("checkbox");
  await expect(cards.first()).toHaveAccessibleName(/Harbor Relief Fund.*3 days.*Helps with Medical Aid/);
  await expect(cards.nth(1)).toHaveAccessibleName(/Hillside Community Clinic.*5 days.*Helps with Medical Aid/);
  await page.getByLabel("Where are you now?").fill("Lewiston");
  await expect(cards.first()).toHaveAccessibleName(/Hillside Community Clinic.*Helps where you are/);
  await accessible(page);
  // nothing of it is an answer
  await page.getByRole("group", { name: "Nonprofits" }).getByRole("checkbox").first().click();
  await button(page, "Continue").click();
  await expect(page.getByLabel("First name")).toBeVisible();
  expect(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))).not.toContain("Lewiston");
});

test("the whole wizard works from the keyboard alone", async ({ page }) => {
  await page.goto("/submit-request");
  await button(page, /^Rent Support/).focus();
  await page.keyboard.press("Enter");
  /** A new step takes the focus, so keyboard navigation continues there. */
  const stands = async (name: string) => {
    await expect(heading(page, name)).toBeVisible();
    await expect(page.getByRole("main")).toBeFocused();
  };
  await stands("Choose nonprofits");
  // Back, Exit, Category in the progress, search, then the first nonprofit
  const first = page.getByRole("group", { name: "Nonprofits" }).getByRole("checkbox").first();
  await expect(first).toBeVisible();
  for (
    let presses = 0;
    presses < 8 && !(await first.evaluate((element) => element === document.activeElement));
    presses += 1
  ) {
    await page.keyboard.press("Tab");
  }
  await page.keyboard.press("Space");
  await expect(first).toBeChecked();
  await button(page, "Continue").focus();
  await page.keyboard.press("Enter");
  await stands("Your information");

  const type = async (label: string, words: string) => {
    for (let presses = 0; presses < 12; presses += 1) {
      if (await page.getByLabel(label).evaluate((element) => element === document.activeElement)) break;
      await page.keyboard.press("Tab");
    }
    await page.keyboard.insertText(words);
  };
  await type("First name", "Ann");
  await type("Last name", "Lee");
  await type("Email", `keys-${randomUUID()}@test.example`);
  await type("Phone", "2075550100");
  await page.keyboard.press("Enter");
  await expect(page.getByLabel("Street address")).toBeVisible();
  await type("Street address", "1 High Street");
  await type("City", "Portland");
  await type("State/Province", "ME");
  await type("Postal/ZIP code", "04101");
  await page.keyboard.press("Enter");
  await stands("Tell us what you need");
  await type("Details", DESCRIPTION);
  await button(page, "Continue").focus();
  await page.keyboard.press("Enter");
  await stands("Check your answers");
  const consent = page.getByRole("checkbox", { name: /You may contact me/ });
  for (
    let presses = 0;
    presses < 25 && !(await consent.evaluate((element) => element === document.activeElement));
    presses += 1
  ) {
    await page.keyboard.press("Tab");
  }
  await page.keyboard.press("Space");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await expect(heading(page, "Request submitted successfully")).toBeVisible();
});

test("a guest who proves the address keeps the request with the account", async ({
  page,
  people,
  request,
  accessible,
}) => {
  const account = await people.create("requester", "Paula Prudence");
  await page.goto("/submit-request");
  await button(page, /^Food Assistance/).click();
  await page.getByRole("group", { name: "Nonprofits" }).getByRole("checkbox").first().click();
  await button(page, "Continue").click();
  await fillPersonal(page, account.email);
  await button(page, "Find my account").click();
  await expect(page.getByText(`We sent a code with six digits to ${account.email}.`)).toBeVisible();
  await accessible(page);
  // before the code comes back, nothing says that an account exists
  await expect(page.getByText("Paula Prudence")).toHaveCount(0);
  const code = /\b\d{6}\b/.exec((await mailTo(request, account.email, /code/i)).text)?.[0] ?? "";
  await page.getByLabel("Code").fill(code === "000000" ? "000001" : "000000");
  await button(page, "Check code").click();
  await expect(page.getByText(/This code is not right/)).toBeVisible();
  await page.getByLabel("Code").fill(code);
  await button(page, "Check code").click();
  await expect(page.getByRole("radio", { name: /Paula Prudence/ })).toBeChecked();
  await accessible(page);
  await button(page, "Continue with Selected Account").click();
  await expect(page.getByText("This request will be in the account of Paula Prudence.")).toBeVisible();
  await button(page, "Next").click();
  await fillContact(page);
  await button(page, "Continue").click();
  await page.getByLabel("Details").fill(DESCRIPTION);
  await button(page, "Continue").click();
  await page.getByRole("checkbox", { name: /You may contact me/ }).click();
  await button(page, "Submit Request").click();
  const number = (await page.getByTestId("request-number").innerText()).trim();
  const mine = await rpc<{ recent: { request_number: string }[] }>(
    request,
    account.accessToken,
    "requester_dashboard",
    {},
  );
  expect(mine.recent.map((line) => line.request_number)).toContain(number);
});

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
  await page.getByRole("link", { name: "School Tuition" }).click();
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
  await expect(button(page, "Cancel Request")).toHaveCount(0);
  await button(page, "Send again as a new request").click();
  await expect(page).toHaveURL(/\/submit-request\?draft=/);
  await expect(heading(page, "Check your answers")).toBeVisible();

  await page.goto("/request-drafts");
  await button(page, "Delete School Tuition").click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete draft" }).click();
  await toast(page, "Draft deleted");
  await toast(page, "The draft has been successfully removed");
  await expect(page.getByText("No Saved Drafts")).toBeVisible();
});

test("a requester answers what a nonprofit asks", async ({ page, people, request, accessible }) => {
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

test("a decision shows: approved with the amount, declined with the reason", async ({ page, people, request }) => {
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
  await page.goto(`/request-details/${declined.id}`);
  await expect(page.getByText("Our funds are used up until January.").first()).toBeVisible();
  await expect(button(page, "Cancel Request")).toHaveCount(0);
});

test("another person's request is not found", async ({ page, people, request, accessible }) => {
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

test("the public look-up answers the demo set and names nobody", async ({ page, accessible }) => {
  await page.goto("/request-status");
  await button(page, "Check status").click();
  await expect(page.getByText("Request ID is required").first()).toBeVisible();
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
  await check("REQ-004");
  await expect(result.getByText("Pending")).toBeVisible();
  await expect(page.getByRole("main")).not.toContainText(/Marie|Désir|@|Street/);
  await check("REQ-99999");
  await expect(page.getByRole("alert").getByText("Request Not Found")).toBeVisible();
  await accessible(page);
});

test("the single page sends the same request, and the wizard's answers come along", async ({ page, accessible }) => {
  const email = `single-${randomUUID()}@test.example`;
  await page.goto("/submit-request");
  await button(page, /^Food Assistance/).click();
  await expect(heading(page, "Choose nonprofits")).toBeVisible();
  await page.goto("/submit-request");
  await page.getByRole("link", { name: "Prefer one page?" }).click();
  await expect(heading(page, "Submit Aid Request")).toBeVisible();
  await expect(page.getByLabel("Category").locator("option:checked")).toHaveText("Food Assistance");
  await expect(button(page, "Submit Request")).toBeDisabled();
  await expect(page.locator("#why-not-submit")).toHaveText("Please select at least one nonprofit");
  const cards = page.getByRole("group", { name: "Nonprofits" }).getByRole("checkbox");
  await expect(cards.nth(3)).toBeVisible();
  for (const card of [0, 1, 2, 3]) await cards.nth(card).click();
  await toast(page, "Maximum nonprofits reached");
  await toast(page, "You can select up to 3 nonprofits for your request.");
  // another kind of help, other nonprofits
  await page.getByLabel("Category").selectOption("Medical Aid");
  await expect(page.getByText("0/3")).toBeVisible();
  await cards.first().click();
  await button(page, "Submit Request").click();
  await expect(page.getByText("Description must be at least 10 characters").first()).toBeVisible();
  await expect(page.getByText("You must agree to be contacted").first()).toBeVisible();
  await accessible(page);
  await page.getByLabel("Details").fill(DESCRIPTION);
  await fillPersonal(page, email);
  await fillContact(page);
  await page.reload();
  await expect(page.getByLabel("Details")).toHaveValue(DESCRIPTION);
  await expect(page.getByLabel("Postal/ZIP code")).toHaveValue("04101");
  await page.getByRole("checkbox", { name: /You may contact me/ }).click();
  await button(page, "Submit Request").click();
  await expect(heading(page, "Request submitted successfully")).toBeVisible();
});

test("the single page knows who is signed in, however late the last request's answers come", async ({
  page,
  people,
}) => {
  const account = await people.create("requester", "Marie Désir");
  await people.signIn(page, account);
  // never answered
  await page.route(/\/rest\/v1\/requests\?.*order=submitted_at/, () => undefined);
  await page.goto("/submit-request?form=single");
  await page.getByLabel("Category").selectOption("Food Assistance");
  await page.getByLabel("Details").fill(DESCRIPTION);
  await chooseHarbor(page);
  await page.getByLabel("Phone", { exact: true }).fill("+1 207 555 0142");
  await fillContact(page);
  await expect(page.getByLabel("First name")).toHaveValue("Marie");
  await expect(page.getByLabel("Last name")).toHaveValue("Désir");
  await expect(page.getByLabel("Email", { exact: true })).toHaveValue(account.email);
  await page.getByRole("checkbox", { name: /You may contact me/ }).click();
  await button(page, "Submit Request").click();
  await expect(heading(page, "Request submitted successfully")).toBeVisible();
});

test("on somebody else's phone a guest's answers are the tab's alone", async ({ page, context, accessible }) => {
  await page.goto("/submit-request");
  await button(page, /^Food Assistance/).click();
  await expect(heading(page, "Choose nonprofits")).toBeVisible();
  await button(page, "This is not my phone").click();
  await expect(page.getByText("Your answers stay in this tab alone. They are gone when you close it.")).toBeVisible();
  await accessible(page);
  // a reload loses nothing
  await page.reload();
  await expect(heading(page, "Choose nonprofits")).toBeVisible();
  await expect(page.getByText("Your answers stay in this tab alone.")).toBeVisible();
  // the next person at this phone finds nothing
  const next = await context.newPage();
  await next.goto("/submit-request");
  await expect(heading(next, "Choose type of assistance")).toBeVisible();
  await expect(next.getByText("You have a request that is not sent yet")).toHaveCount(0);
});

test("a first save whose answer gets lost is one draft, and the request that is then sent", async ({
  page,
  people,
  request,
}) => {
  const account = await people.create("requester", "Marie Désir");
  await rpc(request, account.accessToken, "select_nonprofit", { nonprofit_id: "np-001" });
  await people.signIn(page, account);
  let saved = 0;
  await page.route("**/rest/v1/rpc/save_draft", async (route) => {
    // a save that arrives after the request was sent is refused
    if ((await route.fetch()).ok()) saved++;
    await route.abort("connectionreset");
  });
  await page.goto("/submit-request?form=single");
  await page.getByLabel("Category").selectOption("Food Assistance");
  await page.getByLabel("Details").fill(DESCRIPTION);
  await button(page, "Save draft").click();
  await toast(page, "We could not save your draft");
  // the account has it all the same; saving again is the same draft, in which nothing is lost
  await chooseHarbor(page);
  const before = saved;
  await button(page, "Save draft").click();
  await expect.poll(() => saved).toBeGreaterThan(before);
  const other = await page.context().newPage();
  await other.goto("/request-drafts");
  await expect(other.getByRole("heading", { name: "Food Assistance" })).toHaveCount(1);

  await expect(page.getByLabel("Details")).toHaveValue(DESCRIPTION);
  await page.getByLabel("Phone", { exact: true }).fill("+1 207 555 0142");
  await fillContact(page);
  await page.getByRole("checkbox", { name: /You may contact me/ }).click();
  await button(page, "Submit Request").click();
  await expect(heading(page, "Request submitted successfully")).toBeVisible();
  await other.reload();
  await expect(other.getByText("No Saved Drafts")).toBeVisible();
  await other.goto("/my-requests");
  await expect(other.getByRole("heading", { level: 2, name: "1 request" })).toBeVisible();
});

test("offline and server faults lose nothing, and a repeated submit gives the same number", async ({
  page,
  context,
}) => {
  const email = `twice-${randomUUID()}@test.example`;
  await answerAll(page, email);

  await context.setOffline(true);
  await expect(page.getByText("You are offline")).toBeVisible();
  await button(page, "Submit Request").click();
  await expect(page.getByRole("alert").getByText(/We cannot reach the server\. Nothing is lost\./)).toBeVisible();
  await expect(page.getByText("Not sent yet")).toBeVisible();

  // it is sent automatically; the server accepts it, and the answer is lost
  let first = "";
  await page.route("**/rest/v1/rpc/submit_request", async (route) => {
    const response = await route.fetch();
    first = ((await response.json()) as { request_number: string }).request_number;
    await route.abort("connectionreset");
  });
  await context.setOffline(false);
  await expect.poll(() => first).toMatch(/^REQ-/);
  await expect(heading(page, "Check your answers")).toBeVisible();
  await expect(page.getByText("Not sent yet")).toBeVisible();
  await page.unroute("**/rest/v1/rpc/submit_request");
  let sent = 0;
  page.on("request", (asked) => (sent += Number(asked.url().endsWith("/rpc/submit_request"))));
  await button(page, "Submit Request").dblclick();
  await expect(page.getByTestId("request-number")).toHaveText(first);
  expect(sent, "a double tap sends once").toBe(1);
  // a reload right after sending, and going back, show the confirmation and no empty form
  await page.goto("/submit-request?step=review");
  await expect(page.getByTestId("request-number")).toHaveText(first);
});
