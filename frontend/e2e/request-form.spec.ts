/** Asking for help: the wizard and the single page, without and with an account; nothing written is lost, one request arrives. */
import { randomUUID } from "node:crypto";
import { mailTo, rpc } from "./fixtures/api";
import { prove } from "./fixtures/staff";
import { expect, test } from "./fixtures/test";
import {
  answerAll,
  button,
  chooseHarbor,
  DESCRIPTION,
  fillContact,
  fillPersonal,
  heading,
  PDF,
  toast,
} from "./fixtures/wizard";

test("a guest asks for help, loses no answers and can look the request up", async ({ page, request, accessible }) => {
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
  await accessible(page, page.getByRole("main"));
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
  await accessible(page, page.getByRole("main").locator("form"));
  await page.getByLabel("City").fill("Portland");
  await button(page, "Continue").click();

  await expect(heading(page, "Tell us what you need")).toBeVisible();
  await page.getByLabel("Details").fill("too short");
  await page.getByLabel("Amount").fill("a lot");
  await button(page, "Continue").click();
  await expect(page.getByText("Please provide details about your request").first()).toBeVisible();
  await expect(page.getByText("Amount must be a number").first()).toBeVisible();
  await accessible(page, page.getByRole("main").locator("form"));
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
  await accessible(page, page.getByRole("main").locator("form"));
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

test(
  "nonprofits that help with the category come first, then those in the requester's area",
  { tag: "@desk" },
  async ({ page, accessible }) => {
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
  },
);

test("the whole wizard works from the keyboard", { tag: "@desk" }, async ({ page }) => {
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

test(
  "a guest who verifies the email keeps the request in the account",
  { tag: "@desk" },
  async ({ page, people, request, accessible }) => {
    const account = await people.create("requester", "Paula Prudence");
    // an account whose address nobody has proved might be anybody's
    await prove(request, account);
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
    const code = /\b\d{6}\b/.exec((await mailTo(request, account.email, /code/i, { count: 2 })).text)?.[0] ?? "";
    await page.getByLabel("Code").fill(code === "000000" ? "000001" : "000000");
    await button(page, "Check code").click();
    await expect(page.getByText(/This code is not right/)).toBeVisible();
    await accessible(page, page.getByRole("main"));
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
  },
);

test("a guest whose proof of the address is over sends the request without the account", async ({
  page,
  accessible,
}) => {
  const email = `guest-${randomUUID()}@test.example`;
  await page.goto("/submit-request");
  await button(page, /^Food Assistance/).click();
  await page.getByRole("group", { name: "Nonprofits" }).getByRole("checkbox").first().click();
  await button(page, "Continue").click();
  await fillPersonal(page, email);
  await button(page, "Next").click();
  await fillContact(page);
  await button(page, "Continue").click();
  await page.getByLabel("Details").fill(DESCRIPTION);
  await button(page, "Continue").click();
  await page.getByRole("checkbox", { name: /You may contact me/ }).click();
  // linked an hour ago
  await page.evaluate((email) => {
    const name = Object.keys(localStorage).find((name) => name.startsWith("aidbridge-request:guest")) ?? "";
    const kept = JSON.parse(localStorage.getItem(name) ?? "{}") as { answers: { account: object } };
    kept.answers.account = { id: "u", fullName: "Paula Prudence", email, proof: "over" };
    localStorage.setItem(name, JSON.stringify(kept));
  }, email);
  await page.reload();
  await button(page, "Submit Request").click();
  const notice = page.getByRole("alert").filter({ hasText: "Please confirm your email address again" });
  await expect(notice).toBeVisible();
  await expect(page.getByText("Paula Prudence")).toHaveCount(0);
  await accessible(page);
  await notice.getByRole("button", { name: "Find my account" }).click();
  await expect(page.getByText(`We sent a code with six digits to ${email}.`)).toBeVisible();
  await button(page, "Continue without an account").click();
  await notice.getByRole("link", { name: "Continue without an account" }).click();
  await button(page, "Submit Request").click();
  await expect(page.getByTestId("request-number")).toHaveText(/REQ-\d+/);
});

test("the single page sends the same request and takes over the wizard's answers", async ({ page, accessible }) => {
  const email = `single-${randomUUID()}@test.example`;
  // the answer is kept although the rest of the form does not arrive
  const rest = /\/assets\/whole-form-[^/]*\.js$/;
  await page.route(rest, () => undefined);
  await page.goto("/submit-request");
  await button(page, /^Food Assistance/).click();
  await expect(heading(page, "Choose nonprofits")).toBeVisible();
  await page.unroute(rest);
  await page.goto("/submit-request");
  await page.getByRole("link", { name: "Prefer one page?" }).click();
  await expect(heading(page, "Submit Aid Request")).toBeVisible();
  await expect(page.getByLabel("Category").locator("option:checked")).toHaveText("Food Assistance");
  await expect(button(page, "Submit Request")).toBeDisabled();
  await expect(page.locator("#why-not-submit")).toHaveText("Please select at least one nonprofit");
  await accessible(page, page.getByRole("main"));
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

test(
  "on the single page a guest may begin with the name, and a reload does not lose it",
  { tag: "@desk" },
  async ({ page }) => {
    await page.goto("/submit-request?form=single");
    await page.getByLabel("First name").fill("Marie");
    await page.getByLabel("City").fill("Portland");
    await page.reload();
    await expect(page.getByLabel("First name")).toHaveValue("Marie");
    await expect(page.getByLabel("City")).toHaveValue("Portland");
  },
);

test(
  "the single page fills in the signed-in user even if the last request loads late",
  { tag: "@desk" },
  async ({ page, people }) => {
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
  },
);

test("on a shared phone a guest's answers stay in the tab", async ({ page, context, accessible }) => {
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

test(
  "a first save whose response is lost creates one draft, which becomes the request",
  { tag: "@desk" },
  async ({ page, people, request }) => {
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
  },
);

test(
  "offline and server faults lose no answers, and a repeated submit returns the same number",
  { tag: "@desk" },
  async ({ page, context }) => {
    const email = `twice-${randomUUID()}@test.example`;
    await answerAll(page, email);

    await context.setOffline(true);
    await expect(page.getByText("You are offline")).toBeVisible();
    await button(page, "Submit Request").click();
    // it is said once, where the press leads to
    const waits = page.getByRole("status").filter({ hasText: "Not sent yet" });
    await expect(waits).toBeFocused();
    await expect(waits).toContainText("Last try:");
    await expect(page.getByText(/cannot reach the server|You are offline/)).toHaveCount(0);

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
  },
);
