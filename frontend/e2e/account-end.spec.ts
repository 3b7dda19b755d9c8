/** A person downloads their data and closes their account. */
import { readFileSync } from "node:fs";
import { strFromU8, unzipSync } from "fflate";
import { mailTo, rpc } from "./fixtures/api";
import { ask, found } from "./fixtures/staff";
import { expect, test } from "./fixtures/test";

test("a user downloads all data and closes the account; the nonprofit keeps the number but not the name", async ({
  page,
  people,
  request,
  accessible,
}) => {
  const { organization, admin } = await found(request, people);
  const { id, number, person } = await ask(request, people, [organization]);
  await rpc(request, person.accessToken, "select_nonprofit", { nonprofit_id: organization.id });
  await rpc(request, admin.accessToken, "approve_request", {
    request_id: id,
    nonprofit_id: organization.id,
    amount: 25,
    accept_over_budget: true,
  });
  await people.signIn(page, person);
  await page.goto("/profile");
  await expect(page.getByRole("region", { name: "Take along what we keep about you" })).toBeVisible();
  await accessible(page);

  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download my data" }).click();
  const archive = unzipSync(readFileSync(await (await download).path()));
  const data = JSON.parse(strFromU8(archive["about-you.json"] ?? new Uint8Array())) as {
    account: { email: string };
    identities: { provider: string; email: string }[];
    sessions: { created_at: string; user_agent: string; ip: string }[];
    requests: { request_number: string; description: string }[];
  };
  expect(data.account.email).toBe(person.email);
  expect(data.identities).toMatchObject([{ provider: "email", email: person.email }]);
  // of the sign-up and of the sign-in; where from and with what, but no token
  expect(data.sessions.length).toBeGreaterThan(1);
  for (const session of data.sessions) {
    expect(session.created_at).toMatch(/^\d{4}-/);
    expect(session.user_agent).not.toBe("");
    expect(session.ip).toMatch(/^[\d.:a-f]+$/);
  }
  expect(JSON.stringify(data)).not.toMatch(/token|hmac/);
  expect(data.requests).toMatchObject([
    { request_number: number, description: "We need food until my new job starts." },
  ]);

  await page.getByRole("button", { name: "Close your account" }).click();
  const dialog = page.getByRole("alertdialog", { name: "Close your account?" });
  await expect(dialog.getByText(/Requests that wait for an answer are taken back\./)).toBeVisible();
  await dialog.getByLabel("Type your email address").fill("somebody@else.example");
  await dialog.getByRole("button", { name: "Close my account" }).click();
  await expect(dialog.getByText("This is not the email address of your account.").first()).toBeVisible();
  await accessible(page);
  await dialog.getByLabel("Type your email address").fill(person.email.toUpperCase());
  await dialog.getByRole("button", { name: "Close my account" }).click();
  await expect(page.locator(".toast").getByText("Your account is closed")).toBeVisible();
  await expect(page).toHaveURL(/\/login$/);
  expect((await mailTo(request, person.email, /account is closed/)).text).toContain("Of 1 request the number");

  // the account is unknown afterwards, and the nonprofit sees the grant without the person
  await page.goto("/profile");
  await expect(page).toHaveURL(/\/login/);
  const opened = await rpc<{ request: { request_number: string; first_name: string; email: string } }>(
    request,
    admin.accessToken,
    "staff_request",
    { request_id: id, nonprofit_id: organization.id },
  );
  expect(opened.request).toMatchObject({
    request_number: number,
    first_name: "Erased",
    email: "erased@closed.invalid",
  });
});

test("the only admin of an organization must hand it over first and is told how", async ({
  page,
  people,
  request,
  accessible,
}) => {
  const { organization, admin } = await found(request, people);
  await people.signIn(page, admin);
  await page.goto("/profile");
  await page.getByRole("button", { name: "Close your account" }).click();
  await page.getByLabel("Type your email address").fill(admin.email);
  await page.getByRole("button", { name: "Close my account" }).click();
  await expect(page.getByRole("alertdialog").getByRole("alert")).toContainText(
    `You are the only admin of ${organization.name}. Make someone else admin first, or close the organization.`,
  );
  await accessible(page);
});
