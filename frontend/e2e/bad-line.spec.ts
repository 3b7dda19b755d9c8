/** The ways of a guest and of staff at 2G (280 kbit/s, 800 ms), with the line cut in the middle: of a page, of a file, of an answer. */
import { randomUUID } from "node:crypto";
import type { Page } from "@playwright/test";
import { mailTo, rpc, tokenOf } from "./fixtures/api";
import { Line } from "./fixtures/line";
import { answersOf, found, submitAs } from "./fixtures/staff";
import { expect, test as withPeople } from "./fixtures/test";
import { DESCRIPTION, fillContact, fillPersonal } from "./fixtures/wizard";

const test = withPeople.extend<{ line: Line }>({
  line: async ({ serverUrl }, use) => {
    const line = await Line.to(serverUrl);
    await use(line);
    line.end();
  },
});
test.use({ serviceWorkers: "allow", viewport: { width: 390, height: 844 } });

/** Some two seconds of the line. */
const LETTER = {
  name: "letter.pdf",
  mimeType: "application/pdf",
  buffer: Buffer.concat([Buffer.from("%PDF-1.4\n"), Buffer.alloc(80_000, "a letter ")]),
};
const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name });
const press = (page: Page, name: string | RegExp) => page.getByRole("main").getByRole("button", { name }).click();

/** The offsets at which a file's bytes were begun to be sent. */
function offsetsOf(page: Page): number[] {
  const offsets: number[] = [];
  page.on("request", (asked) => {
    if (asked.method() === "PATCH") offsets.push(Number(asked.headers()["upload-offset"]));
  });
  return offsets;
}

test("a guest's answers survive a bad connection, the upload resumes and one request arrives", async ({
  page,
  line,
  request,
}) => {
  const surname = `Line${randomUUID().replace(/[^a-f]/g, "")}`;
  await page.goto(`${line.url}/request-submission`);
  await press(page, /^Food Assistance/);
  const harbor = page.getByRole("checkbox", { name: /^Harbor Relief Fund/ });
  await harbor.check();
  await press(page, "Continue");
  await fillPersonal(page, `${surname}@test.example`);
  await page.getByLabel("Last name").fill(surname);
  await page.waitForFunction(() => navigator.serviceWorker.controller?.state === "activated");

  // the line goes while the page is loaded anew: the page stands all the same, with every word
  line.cut();
  await page.reload();
  await expect(page.getByLabel("Last name")).toHaveValue(surname);
  await press(page, "Next");
  await fillContact(page);
  await press(page, "Continue");
  await page.getByLabel("Details").fill(DESCRIPTION);
  line.mend();

  const offsets = offsetsOf(page);
  const half = line.cutAfter(45_000);
  await page.locator("input[type=file]").setInputFiles(LETTER);
  await expect(page.getByText(/MB, \d+% sent/)).toBeVisible();
  await half;
  await expect(page.getByLabel("Details")).toHaveValue(DESCRIPTION);
  line.mend();
  await expect(page.getByText(/MB, arrived/)).toBeVisible();
  // what had arrived was not sent again
  expect(offsets[0]).toBe(0);
  expect(offsets.at(-1)).toBeGreaterThan(0);

  await press(page, "Continue");
  await page.getByRole("checkbox", { name: /You may contact me/ }).check();
  // the request leaves, and nobody hears the answer
  const sending = page.waitForRequest(/\/rpc\/submit_request/);
  await press(page, "Submit Request");
  await sending;
  await line.cutAfter(1_000);
  await expect(page.getByText("Not sent yet")).toBeVisible();
  await expect(page.getByText(DESCRIPTION)).toBeVisible();
  line.mend();
  await press(page, "Try now");
  await expect(heading(page, "Request submitted successfully")).toBeVisible();
  const number = (await page.getByTestId("request-number").innerText()).trim();

  const staff = await tokenOf(request, "admin@demo.aidbridge.test");
  const list = await rpc<{ rows: { request_number: string }[] }>(request, staff, "incoming_page", {
    nonprofit_id: "np-001",
    search: surname,
  });
  expect(list.rows.map((row) => row.request_number)).toEqual([number]);
  const { documents } = await rpc<{ documents: { name: string; size_bytes: number }[] }>(
    request,
    staff,
    "staff_request",
    { request_id: number, nonprofit_id: "np-001" },
  );
  expect(documents).toMatchObject([{ name: LETTER.name, size_bytes: LETTER.buffer.length }]);
});

test("a requested document arrives once from a second phone although the connection breaks", async ({
  page,
  line,
  request,
}) => {
  const email = `guest-${randomUUID()}@test.example`;
  const input = { ...answersOf({ email }, [{ id: "np-001" }]), key: randomUUID() };
  const { id, request_number: number } = await rpc<{ id: string; request_number: string }>(
    request,
    null,
    "submit_request",
    { input },
  );
  const staff = await tokenOf(request, "manager@demo.aidbridge.test");
  await rpc(request, staff, "request_more_info", { request_id: id, nonprofit_id: "np-001", items: ["rent"] });

  await page.goto(`${line.url}/open-request?number=${number}`);
  await press(page, "Send me a code");
  const { subject } = await mailTo(request, email, new RegExp(`opens ${number}$`));
  await page.getByLabel("Code").fill(subject.slice(0, 6));
  line.cut();
  await press(page, "Open my request");
  // it says so in the page and in passing, and the code stays to be sent again
  await expect(page.getByRole("main").getByRole("alert")).toContainText("We cannot reach the server.");
  await expect(page.locator(".toast")).toContainText("We cannot reach the server.");
  await expect(page.getByLabel("Code")).toHaveValue(subject.slice(0, 6));
  line.mend();
  await press(page, "Open my request");
  await expect(page.getByText("Your rent contract, or a letter from your landlord.").first()).toBeVisible();

  await page.getByLabel("Your answer").fill("Here it is.");
  const offsets = offsetsOf(page);
  await page.locator("input[type=file]").setInputFiles(LETTER);
  const half = line.cutAfter(45_000);
  await press(page, "Send documents");
  await half;
  line.mend();
  await expect(page.getByRole("heading", { name: "Needs More Proof" })).toHaveCount(0);
  expect(offsets.at(-1)).toBeGreaterThan(0);
  await expect(page.getByText(LETTER.name)).toBeVisible();
  const { documents, request: kept } = await rpc<{ documents: unknown[]; request: { needs_more_proof: boolean } }>(
    request,
    staff,
    "staff_request",
    { request_id: id, nonprofit_id: "np-001" },
  );
  expect(documents).toHaveLength(1);
  expect(kept.needs_more_proof).toBe(false);
});

test("a decision whose response is lost is made once", async ({ page, line, request, people, serverUrl }) => {
  const { organization, admin } = await found(request, people);
  const person = await people.create("requester", "Marie Désir");
  const sent = await submitAs(request, person, [organization]);
  await rpc(request, admin.accessToken, "record_donation", {
    nonprofit_id: organization.id,
    amount: 1000,
    donor_name: "Ada",
  });
  await people.signIn(page, admin);
  await page.goto(`/nonprofit-request/${sent.id}`);
  // the session goes along to the slow line
  const session = await page.evaluate(() => localStorage.getItem("aidbridge-auth"));
  await page.goto(`${line.url}/login`);
  await page.evaluate((value) => localStorage.setItem("aidbridge-auth", value ?? ""), session);
  await page.goto(`${line.url}/nonprofit-request/${sent.id}?decide=approve`);
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Amount").fill("250");
  const asking = page.waitForRequest(/\/rpc\/approve_request/);
  await dialog.locator("button[type=submit]").click();
  await asking;
  await line.cutAfter(1_000);
  await expect(dialog.getByRole("alert")).toBeVisible();
  await expect(dialog.getByLabel("Amount")).toHaveValue("250");
  line.mend();
  await dialog.locator("button[type=submit]").click();
  await expect(page.getByText("Approved").first()).toBeVisible();
  const decided = await rpc<{ request: { amount: string }; timeline: { type: string }[] }>(
    request,
    admin.accessToken,
    "staff_request",
    { request_id: sent.id, nonprofit_id: organization.id },
  );
  expect(decided.request.amount).toBe("$250");
  expect(decided.timeline.filter(({ type }) => type === "approved")).toHaveLength(1);
  expect(new URL(page.url()).origin).not.toBe(new URL(serverUrl).origin);
});
