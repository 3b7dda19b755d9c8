/** A guest's way by number and mailed code: seeing, correcting, answering with a paper and withdrawing, on a second device too. */
import { randomUUID } from "node:crypto";
import { mailTo, rpc, tokenOf } from "./fixtures/api";
import { answersOf } from "./fixtures/staff";
import { expect, test } from "./fixtures/test";
import type { APIRequestContext, Page } from "@playwright/test";

const PDF = { name: "letter.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4 letter") };

async function open(page: Page, request: APIRequestContext, number: string, email: string, count = 1) {
  await page.getByRole("button", { name: "Send me a code" }).click();
  await expect(page.getByText(`If there is a request ${number}`)).toBeVisible();
  const mail = await mailTo(request, email, new RegExp(`opens ${number}$`), { count });
  const code = /\b\d{6}\b/.exec(mail.subject)?.[0] ?? "";
  await page.getByLabel("Code").fill(code);
  await page.getByRole("button", { name: "Open my request" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Food Assistance" })).toBeVisible();
}

test("a guest opens a request with a mailed code, answers with a paper, and withdraws on a second device", async ({
  page,
  browser,
  request,
  accessible,
}) => {
  const email = `guest-${randomUUID()}@test.example`;
  const { id, request_number: number } = await rpc<{ id: string; request_number: string }>(
    request,
    null,
    "submit_request",
    { input: { ...answersOf({ email }, [{ id: "np-001" }]), key: randomUUID() } },
  );

  // the mail's link names the number; the look-up leads here as well
  const sent = await mailTo(request, email, /we have your request/);
  expect(sent.text).toContain(`/open-request?number=${number}`);
  await page.goto(`/request-status?id=${number}`);
  await page.getByRole("link", { name: "Open it with a code by email" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Open your request" })).toBeVisible();
  await accessible(page);
  await open(page, request, number, email);
  await accessible(page);

  await page.getByRole("button", { name: "Correct my contact data" }).click();
  await page.getByLabel("Phone", { exact: true }).fill("+1 207 555 0199");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("+1 207 555 0199")).toBeVisible();

  const manager = await tokenOf(request, "manager@demo.aidbridge.test");
  await rpc(request, manager, "request_more_info", {
    request_id: id,
    nonprofit_id: "np-001",
    notes: "Please send the letter.",
  });
  await page.goto(`/request-status?id=${number}`);
  await expect(page.getByText("It waits for you.")).toBeVisible();
  await page.getByRole("link", { name: "Answer with a code by email" }).click();
  // the way in is kept in this tab
  await expect(page.getByText("Please send the letter.")).toBeVisible();
  await page.locator("input[type=file]").setInputFiles(PDF);
  await page.getByRole("button", { name: "Send documents" }).click();
  await expect(page.getByText("letter.pdf")).toBeVisible();
  await expect(page.getByText("Please send the letter.").first()).toBeVisible();

  const second = await browser.newContext();
  const phone = await second.newPage();
  await phone.goto(`/open-request?number=${number}`);
  await open(phone, request, number, email, 2);
  await phone.getByRole("button", { name: "Cancel Request" }).click();
  await phone.getByRole("alertdialog").getByRole("button", { name: "Cancel Request" }).click();
  await expect(phone.getByText("Withdrawn").first()).toBeVisible();
  await phone.getByRole("button", { name: "Close my request on this device" }).click();
  await expect(phone.getByRole("button", { name: "Send me a code" })).toBeVisible();
  await phone.reload();
  await expect(phone.getByRole("button", { name: "Send me a code" })).toBeVisible();
  await second.close();
});
