/** Detours of requesters and of people who follow a mailed link: nothing typed or sent is lost. */
import { randomUUID } from "node:crypto";
import type { Page } from "@playwright/test";
import { mailTo, rpc } from "./fixtures/api";
import { OwnServer } from "./fixtures/server";
import { answersOf, ask, found, invitationToken, prove, write } from "./fixtures/staff";
import { expect, test } from "./fixtures/test";

const DESCRIPTION = "I lost my job in October. We need food until my new job starts.";
const PASSWORD = "Harbor-light-7";
const HARBOR = { id: "np-001", name: "Harbor Relief Fund" };

const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { level: 1, name });
const button = (page: Page, name: string | RegExp) => page.getByRole("main").getByRole("button", { name });
const said = (page: Page, words: string | RegExp) =>
  expect(page.locator(".toast").getByText(words).first()).toBeVisible();

async function login(page: Page, email: string, password: string) {
  // the page before this one may have a field of that name, too
  await expect(heading(page, "Welcome Back")).toBeVisible();
  await page.getByRole("main").getByRole("textbox", { name: "Email", exact: true }).fill(email);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await button(page, "Login").click();
}

/** From the first page of the wizard to 'Your information'. */
async function toYourInformation(page: Page) {
  await page.goto("/submit-request");
  await button(page, /^Food Assistance/).click();
  await page.getByRole("group", { name: "Nonprofits" }).getByRole("checkbox").first().check();
  await button(page, "Continue").click();
  await expect(heading(page, "Your information")).toBeVisible();
}

test("a session that ends in the middle of the wizard costs one sign-in and no answers", async ({
  page,
  people,
  request,
  accessible,
}) => {
  const account = await people.create("requester", "Sela Session");
  await rpc(request, account.accessToken, "select_nonprofit", { nonprofit_id: HARBOR.id });
  await people.signIn(page, account);
  await toYourInformation(page);
  await page.getByLabel("Phone", { exact: true }).fill("+1 207 555 0142");
  await button(page, "Next").click();
  await page.evaluate(() => {
    const kept = JSON.parse(localStorage.getItem("aidbridge-auth") ?? "null") as object;
    localStorage.setItem("aidbridge-auth", JSON.stringify({ ...kept, expires_at: 1, refresh_token: "gone" }));
  });
  await page.getByLabel("Street address").fill("18 Main Street");
  const notice = page.getByRole("alert").filter({ hasText: "You were signed out for your safety" });
  await expect(notice).toBeVisible({ timeout: 60_000 });
  await expect(page.getByText(`Signed in as ${account.email}`)).toHaveCount(0);
  // one goes on writing all the same
  await page.getByLabel("City").fill("Portland");
  await page.getByLabel("State/Province").fill("ME");
  await page.getByLabel("Postal/ZIP code").fill("04101");
  await button(page, "Continue").click();
  await page.getByLabel("Details").fill(DESCRIPTION);
  await accessible(page);
  await button(page, "Continue").click();
  await page.getByRole("checkbox", { name: /You may contact me/ }).click();
  await button(page, "Submit Request").click();
  await expect(notice.getByRole("link", { name: "Sign in again" })).toBeFocused();
  await page.keyboard.press("Enter");
  await login(page, account.email, account.password);
  await expect(heading(page, "Check your answers")).toBeVisible();
  await expect(page.getByText(DESCRIPTION)).toBeVisible();
  await expect(page.getByText("18 Main Street")).toBeVisible();
  await button(page, "Submit Request").click();
  await expect(page.getByTestId("request-number")).toHaveText(/^REQ-\d{3,}$/);
});

test("a guest's answers are kept after signing in midway", async ({ page, people, request }) => {
  const account = await people.create("requester", "Gus Guest");
  await rpc(request, account.accessToken, "select_nonprofit", { nonprofit_id: HARBOR.id });
  await toYourInformation(page);
  await page.getByLabel("First name").fill("Augustin");
  await page.getByRole("main").getByRole("link", { name: "Sign in" }).click();
  await login(page, account.email, account.password);
  await expect(page.getByText(`Signed in as ${account.email}`)).toBeVisible();
  await expect(page.getByLabel("First name")).toHaveValue("Augustin");
  await expect(page.getByLabel("Last name")).toHaveValue("Guest");
  // they belong to the account now, as a draft, and nothing stays in the browser for the next person
  await button(page, "Save draft").click();
  await said(page, "Draft saved");
  await expect.poll(() => page.evaluate(() => localStorage.getItem("aidbridge-request:guest:new"))).toBeNull();
  await page.goto("/request-drafts");
  await expect(page.getByRole("heading", { name: "Food Assistance" })).toBeVisible();
});

test("an account with an unverified email is led to its earlier requests", async ({
  page,
  people,
  request,
  accessible,
}) => {
  const account = await people.create("requester", "Lia Later");
  await rpc(request, account.accessToken, "select_nonprofit", { nonprofit_id: HARBOR.id });
  const { request_number: number } = await rpc<{ request_number: string }>(request, null, "submit_request", {
    input: { ...answersOf(account, [HARBOR]), key: randomUUID() },
  });
  await people.signIn(page, account);
  await expect(page.getByText("Did you ask for help before you had this account?")).toBeVisible();
  await expect(page.getByText(number, { exact: true })).toHaveCount(0);
  await accessible(page);
  await button(page, "Send me a code").click();
  const code = /\b\d{6}\b/.exec((await mailTo(request, account.email, /code/i)).text)?.[0] ?? "";
  await page.getByLabel("Code").fill(code === "000000" ? "000001" : "000000");
  await button(page, "Check code").click();
  await expect(page.getByText(/This code is not right/).first()).toBeVisible();
  await accessible(page);
  await page.getByLabel("Code").fill(code);
  await button(page, "Check code").click();
  await said(page, "One request is now in your account");
  await expect(page.getByText(number, { exact: true })).toBeVisible();
  await page.reload();
  await expect(page.getByText(number, { exact: true })).toBeVisible();
  await expect(page.getByText("Did you ask for help before you had this account?")).toHaveCount(0);
});

test("'Not now' dismisses the question", async ({ page, people, request }) => {
  const account = await people.create("requester");
  await rpc(request, account.accessToken, "select_nonprofit", { nonprofit_id: HARBOR.id });
  await people.signIn(page, account);
  await button(page, "Not now").click();
  const question = page.getByText("Did you ask for help before you had this account?");
  await expect(question).toHaveCount(0);
  await page.goto("/my-requests");
  await expect(heading(page, "My Requests")).toBeVisible();
  await expect(question).toHaveCount(0);
});

test("an invitation is accepted only by the invited user", async ({ page, people, request, accessible }) => {
  const { organization, admin } = await found(request, people);
  await prove(request, admin);
  const colleague = await people.create("nonprofit", "Ruth Okonkwo");
  await write(request, admin, "nonprofit_team_members", {
    nonprofit_id: organization.id,
    email: colleague.email,
    full_name: colleague.fullName,
    role: "employee",
  });
  const address = `/team-invitation?token=${await invitationToken(request, colleague.email)}`;

  await page.goto("/team-invitation?token=forged");
  await expect(heading(page, "We do not know this invitation")).toBeVisible();
  await expect(page.getByRole("link", { name: "Return to Home" })).toBeVisible();
  await accessible(page);

  await people.signIn(page, admin);
  await page.goto(address);
  await expect(heading(page, "This invitation is for another email address")).toBeVisible();
  await accessible(page);
  await button(page, "Log out").click();
  await expect(page).toHaveURL("/login");

  await page.goto(address);
  await expect(heading(page, `${organization.name} invites you to its team`)).toBeVisible();
  await accessible(page);
  await page.getByRole("link", { name: "Log in to accept" }).click();
  await login(page, colleague.email, colleague.password);
  await button(page, "Accept invitation").click();
  await said(page, `Welcome to ${organization.name}`);
  await expect(page).toHaveURL("/nonprofit-dashboard");
  await page.goto(address);
  await expect(heading(page, "You are on the team")).toBeVisible();
  await accessible(page, page.getByRole("main"));
});

test("the link in a newsletter unsubscribes", async ({ page, people, request, accessible }) => {
  const { organization, admin } = await found(request, people);
  await prove(request, admin);
  const giver = `giver-${randomUUID()}@test.example`;
  await rpc(request, admin.accessToken, "record_donation", {
    nonprofit_id: organization.id,
    amount: 20,
    donor_email: giver,
    donor_name: "Gil Giver",
  });
  const letter = (subject: string) =>
    rpc(request, admin.accessToken, "send_donor_message", {
      nonprofit_id: organization.id,
      subject,
      message: "Thank you. The pantry is full until Friday.",
    });
  await letter("Thank you");
  const { text } = await mailTo(request, giver, /Thank you/);
  const link = /\/unsubscribe\?token=[\w-]+/.exec(text)?.[0];
  expect(link, text).toBeTruthy();

  await page.goto("/unsubscribe");
  await expect(heading(page, "This link no longer works")).toBeVisible();
  await accessible(page, page.getByRole("main"));
  await page.goto(link as string);
  await expect(heading(page, "Stop these letters?")).toBeVisible();
  await accessible(page);
  await button(page, "Unsubscribe").click();
  await expect(heading(page, `You get no more messages from ${organization.name}`)).toBeVisible();
  await accessible(page);
  const active = await rpc<number>(request, admin.accessToken, "active_donor_count", {
    nonprofit_id: organization.id,
  });
  expect(active).toBe(0);
});

test("offline, a page shows an error, keeps the values and continues with 'Try again'", async ({
  page,
  context,
  people,
  request,
  accessible,
}) => {
  const sent = await ask(request, people, [HARBOR]);
  await page.goto("/request-status");
  await expect(heading(page, "Request Status")).toBeVisible();
  // once the page has answered, its code is loaded
  await page.getByLabel("Request ID").fill("REQ-001");
  await button(page, "Check status").click();
  await expect(page.getByRole("heading", { level: 2, name: "REQ-001" })).toBeVisible();
  await context.setOffline(true);
  await page.getByLabel("Request ID").fill(sent.number);
  await button(page, "Check status").click();
  await expect(page.getByRole("alert")).toContainText("Try again when you are back online.", { timeout: 60_000 });
  await accessible(page, page.getByRole("main"));
  await expect(page.getByLabel("Request ID")).toHaveValue(sent.number);
  await context.setOffline(false);
  await button(page, "Try again").click();
  await expect(page.getByRole("heading", { level: 2, name: sent.number })).toBeVisible();
});

test.describe("with confirmation by mail", () => {
  let server: OwnServer;
  test.beforeAll(async () => {
    test.setTimeout(400_000);
    server = await OwnServer.start({ GOTRUE_MAILER_AUTOCONFIRM: "false", GOTRUE_SMTP_MAX_FREQUENCY: "1ms" });
  });
  test.afterAll(() => server?.stop());

  test("signing up asks to check the email, which can be resent and signs in once", async ({
    page,
    browser,
    request,
    accessible,
  }) => {
    const email = `confirm-${randomUUID()}@test.example`;
    await page.goto(`${server.url}/signup?role=requester`);
    await page.getByLabel("Full name").fill("Connie Confirm");
    await page.getByRole("main").getByRole("textbox", { name: "Email", exact: true }).fill(email);
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.getByLabel("Confirm password").fill(PASSWORD);
    await page.getByRole("main").getByRole("button", { name: "Sign Up", exact: true }).click();
    await expect(heading(page, "Check your email")).toBeVisible();
    await expect(page.getByText(`We sent a link to ${email}.`)).toBeVisible();
    await accessible(page);
    // each mail's link replaces the previous one
    const mail = (count: number) => mailTo(request, email, /confirm/i, { inbox: server.inbox, count });
    await mail(1);
    await button(page, "Send it again").click();
    await said(page, "Sent again");
    await mail(2);

    // too early: the login says why, and sends the mail as well
    await page.goto(`${server.url}/login`);
    await login(page, email, PASSWORD);
    await said(page, "Please confirm your email address before logging in");
    await button(page, "Send the confirmation mail again").click();
    await said(page, "Sent again");

    const { text } = await mail(3);
    const link = /https?:\/\/\S+\/auth\/v1\/verify\S+/.exec(text)?.[0];
    expect(link, text).toBeTruthy();
    await page.goto(link as string);
    await expect(page).toHaveURL(`${server.url}/select-nonprofit`);

    // on another device the link is over: the login says so, in the reader's language
    const elsewhere = await browser.newContext({ locale: "fr" });
    const phone = await elsewhere.newPage();
    await phone.goto(link as string);
    await expect(phone.getByRole("main").getByRole("alert")).toContainText("Ce lien a déjà servi");
    await accessible(phone);
    await elsewhere.close();
  });

  test("a link to a request survives sign-up, confirmation and the choice of a nonprofit", async ({
    page,
    playwright,
    accessible,
  }) => {
    const email = `next-${randomUUID()}@test.example`;
    const api = await playwright.request.newContext({ baseURL: server.url });
    const { request_number: number } = await rpc<{ request_number: string }>(api, null, "submit_request", {
      input: { ...answersOf({ email }, [HARBOR]), key: randomUUID() },
    });
    await page.goto(`${server.url}/request/${number}`);
    await expect(page).toHaveURL(`${server.url}/login?next=${encodeURIComponent(`/request/${number}`)}`);
    await page.getByRole("main").getByRole("link", { name: "Create an account" }).click();
    await button(page, /^Requester/).click();
    await page.getByLabel("Full name").fill("Nadia Next");
    await page.getByRole("main").getByRole("textbox", { name: "Email", exact: true }).fill(email);
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.getByLabel("Confirm password").fill(PASSWORD);
    await page.getByRole("main").getByRole("button", { name: "Sign Up", exact: true }).click();
    await expect(heading(page, "Check your email")).toBeVisible();
    // sessions say in whole seconds how they began, and a proof has to be younger than the address
    const asked = Date.now();
    const { text } = await mailTo(api, email, /confirm/i, { inbox: server.inbox });
    await expect.poll(() => Date.now() - asked).toBeGreaterThan(1_000);
    const link = /https?:\/\/\S+\/auth\/v1\/verify\S+/.exec(text)?.[0];
    expect(link, text).toBeTruthy();
    await page.goto(link as string);
    await expect(heading(page, "Food Assistance").or(heading(page, "Select a Nonprofit"))).toBeVisible();
    if (new URL(page.url()).pathname === "/select-nonprofit") await button(page, /^Harbor Relief Fund/).click();
    // the request that was sent without an account belongs to the account whose address is now proved
    await expect(page).toHaveURL(`${server.url}/request/${number}`);
    await expect(heading(page, "Food Assistance")).toBeVisible();
    await expect(page.getByText(number, { exact: true }).first()).toBeVisible();
    await accessible(page);
    await api.dispose();
  });
});
