/**
 * The whole product in one story, with a crash in the middle: somebody signs up and asks, the server and its database
 * die without warning, a manager approves, the person sees it and has a mail. Nothing is lost.
 */
import { randomUUID } from "node:crypto";
import { DEMO_PASSWORD } from "./fixtures/api";
import { OwnServer } from "./fixtures/server";
import { expect, test } from "./fixtures/test";
import type { Page } from "@playwright/test";

test.describe.configure({ timeout: 900_000 });

let server: OwnServer;
test.beforeAll(async () => {
  test.setTimeout(400_000);
  server = await OwnServer.start();
});
test.afterAll(async () => {
  await server?.stop();
});

async function signIn(page: Page, email: string, password: string) {
  await page.goto(`${server.url}/login`);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("main").getByRole("button", { name: "Login" }).click();
  await page.waitForURL((url) => url.pathname !== "/login");
}

async function mailsTo(address: string): Promise<string[]> {
  const answer = await fetch(`${server.inbox}/api/messages?to=${encodeURIComponent(address)}`);
  return ((await answer.json()) as { subject: string }[]).map((mail) => mail.subject);
}

test("a request survives a server crash, is approved, and its requester sees it and gets a mail", async ({
  browser,
}) => {
  const email = `loop-${randomUUID()}@test.example`;
  const password = "Harbor-light-7";
  const person = await browser.newContext();
  const page = await person.newPage();
  let number = "";

  await test.step("the person signs up and chooses a nonprofit", async () => {
    await page.goto(`${server.url}/signup`);
    await page.getByRole("button", { name: /Requester/ }).click();
    await page.getByLabel("Full name").fill("Marie Désir");
    await page.getByLabel("Email").fill(email);
    await page.getByLabel("Password", { exact: true }).fill(password);
    await page.getByLabel("Confirm password").fill(password);
    await page.getByRole("main").getByRole("button", { name: "Sign Up" }).click();
    await page.waitForURL("**/select-nonprofit");
    await page.getByRole("button", { name: /Harbor Relief Fund/ }).click();
    await page.waitForURL("**/requester-dashboard");
  });

  await test.step("the person asks for help", async () => {
    await page.goto(`${server.url}/submit-request`);
    await page.getByRole("button", { name: /^Rent Support/ }).click();
    await page.getByRole("checkbox", { name: /Harbor Relief Fund/ }).check();
    await page.getByRole("button", { name: "Continue" }).click();
    await page
      .getByLabel("Details")
      .or(page.getByLabel("Phone", { exact: true }))
      .first()
      .waitFor();
    if (await page.getByLabel("Phone", { exact: true }).isVisible()) {
      await page.getByLabel("Phone", { exact: true }).fill("+1 207 555 0142");
      await page.getByRole("button", { name: "Next" }).click();
      await page.getByLabel("Street address").fill("18 Main Street");
      await page.getByLabel("City").fill("Portland");
      await page.getByLabel("State/Province").fill("ME");
      await page.getByLabel("Postal/ZIP code").fill("04101");
      await page.getByRole("button", { name: "Continue" }).click();
    }
    await page.getByLabel("Details").fill("My hours were cut. I need help with the rent for one month.");
    await page.getByLabel("Amount").fill("900");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("checkbox", { name: /You may contact me/ }).click();
    await page.getByRole("button", { name: "Submit Request" }).click();
    number = (await page.getByTestId("request-number").innerText()).trim();
    expect(number).toMatch(/^REQ-\d{3,}$/);
  });

  await test.step("server and database are killed and start again", async () => {
    await server.killWithoutWarning();
    await server.startAgain();
  });

  await test.step("a manager finds the request and approves it", async () => {
    const staff = await browser.newContext();
    const desk = await staff.newPage();
    await signIn(desk, "manager@demo.aidbridge.test", DEMO_PASSWORD);
    await desk.goto(`${server.url}/nonprofit-request/${number}`);
    await expect(desk.getByText("My hours were cut.")).toBeVisible();
    await desk.getByRole("button", { name: "Approve Request" }).first().click();
    const dialog = desk.getByRole("dialog");
    await dialog.getByLabel("Amount").fill("900");
    await dialog.getByRole("button", { name: /^Approve for/ }).click();
    await expect(desk.getByText("This request has already been approved.")).toBeVisible();
    await staff.close();
  });

  await test.step("the person, still signed in, sees it and has the mails", async () => {
    await page.goto(`${server.url}/my-requests`);
    await expect(page.getByText(number)).toBeVisible();
    await page.getByRole("main").getByRole("link", { name: "Rent Support" }).click();
    await expect(page.getByRole("main").getByText("Approved").first()).toBeVisible();
    await expect(page.getByText("$900").first()).toBeVisible();
    await expect
      .poll(() => mailsTo(email), { timeout: 60_000 })
      .toEqual(expect.arrayContaining([expect.stringMatching(/approved/i), expect.stringContaining(number)]));
  });
  await person.close();
});
