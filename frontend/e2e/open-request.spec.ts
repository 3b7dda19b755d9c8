/**
 * A guest's access by number and mailed code: viewing, correcting, answering with a document and withdrawing, also on a
 * second device.
 */
import { randomInt, randomUUID } from "node:crypto";
import { mailTo, rpc, tokenOf } from "./fixtures/api";
import { answersOf } from "./fixtures/staff";
import { expect, test } from "./fixtures/test";
import type { APIRequestContext, Page } from "@playwright/test";

const PDF = { name: "letter.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4 letter") };

/** Opens the request with a code by mail, or by text to a number. */
async function open(page: Page, request: APIRequestContext, number: string, to: { email: string } | { phone: string }) {
  if ("phone" in to) await page.getByRole("checkbox", { name: "Send it by text" }).check();
  await page.getByRole("button", { name: "Send me a code" }).click();
  await expect(page.getByText(`If there is a request ${number}`)).toBeVisible();
  const code =
    "phone" in to
      ? // the second text to this number
        (await mailTo(request, `${to.phone}@sms.invalid`, /^Text message/, { count: 2 })).text
      : (await mailTo(request, to.email, new RegExp(`opens ${number}$`))).subject;
  await typeCode(page, /\b\d{6}\b/.exec(code)?.[0] ?? "");
}

async function typeCode(page: Page, code: string) {
  await page.getByLabel("Code").fill(code);
  await page.getByRole("button", { name: "Open my request" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Food Assistance" })).toBeVisible();
}

test("a guest opens a request with a mailed code, answers with a document and withdraws on a second device with a texted code", async ({
  page,
  browser,
  request,
  accessible,
}) => {
  const email = `guest-${randomUUID()}@test.example`;
  const mobile = `+1207${randomInt(2_000_000, 10_000_000)}`;
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
  await open(page, request, number, { email });
  await accessible(page);

  await page.getByRole("button", { name: "Correct my contact data" }).click();
  await accessible(page, page.getByRole("main").locator("form"));
  await page.getByLabel("Phone", { exact: true }).fill(mobile);
  await page.getByRole("checkbox", { name: "Send me texts about my request, too." }).check();
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText(mobile)).toBeVisible();
  await expect(page.getByText("Texts: yes")).toBeVisible();

  const manager = await tokenOf(request, "manager@demo.aidbridge.test");
  await rpc(request, manager, "request_more_info", {
    request_id: id,
    nonprofit_id: "np-001",
    notes: "Please send the letter.",
  });
  const text = await mailTo(request, `${mobile}@sms.invalid`, /^Text message/);
  expect(text.text).toMatch(new RegExp(`^AidBridge: your request ${number} needs one more thing: .*/open-request`));
  await page.goto(`/request-status?id=${number}`);
  await expect(page.getByText("It waits for you.")).toBeVisible();
  await accessible(page, page.locator(".result"));
  await page.getByRole("link", { name: "Answer with a code by email" }).click();
  // the access is kept in this tab
  await expect(page.getByText("Please send the letter.")).toBeVisible();
  await accessible(page, page.getByRole("main"));
  await page.locator("input[type=file]").setInputFiles(PDF);
  await page.getByRole("button", { name: "Send documents" }).click();
  await expect(page.getByText("letter.pdf")).toBeVisible();
  await expect(page.getByText("Please send the letter.").first()).toBeVisible();

  const second = await browser.newContext();
  const phone = await second.newPage();
  await phone.goto(`/open-request?number=${number}`);
  await open(phone, request, number, { phone: mobile });
  await phone.getByRole("button", { name: "Cancel Request" }).click();
  await accessible(phone, phone.getByRole("alertdialog"));
  await phone.getByRole("alertdialog").getByRole("button", { name: "Cancel Request" }).click();
  await expect(phone.getByText("Withdrawn").first()).toBeVisible();
  await phone.getByRole("button", { name: "Close my request on this device" }).click();
  await expect(phone.getByRole("button", { name: "Send me a code" })).toBeVisible();
  await phone.reload();
  await expect(phone.getByRole("button", { name: "Send me a code" })).toBeVisible();
  await second.close();
});
