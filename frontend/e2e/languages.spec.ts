/** The language of a visit, of a person and of the mails they get; the journey of a guest by mail in each. */
import { randomUUID } from "node:crypto";
import type { Page } from "@playwright/test";
import { mailTo, rpc, tokenOf } from "./fixtures/api";
import { answersOf, ask, found } from "./fixtures/staff";
import { expect, test } from "./fixtures/test";
import { holds, startsWith, wordsOf } from "./fixtures/words";

test("a language chosen by URL is kept, used by all pages and by mails", async ({ page, request, accessible }) => {
  await page.goto("/login?lang=fr");
  await expect(page.getByRole("heading", { level: 1, name: "Ravis de vous revoir" })).toBeVisible();
  await expect(page.locator("html")).toHaveAttribute("lang", "fr");
  await accessible(page);
  await page.goto("/request-submission");
  await expect(page.getByRole("button", { name: /Aide alimentaire/ })).toBeVisible();

  // nobody has checked these words yet, and the page says so in them
  await expect(page.getByText(/^Personne dont c’est la langue maternelle n’a encore relu ces mots\./)).toBeVisible();

  await page.goto("/blog");
  await expect(page.getByText("Ce texte est en anglais.")).toBeVisible();
  const email = `reader-${randomUUID()}@test.example`;
  await page.getByLabel("E-mail").fill(email);
  await page.getByRole("button", { name: "M’abonner" }).click();
  const mail = await mailTo(request, email, /^Confirmez votre abonnement/);
  expect(mail.text).toContain("Nous ne demandons jamais votre mot de passe");

  await page.getByRole("button", { name: /^Langue/ }).click();
  await page.getByRole("menuitemradio", { name: "English" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "News from the bridge" })).toBeVisible();
  const say = await wordsOf("en");
  await expect(page.getByText(startsWith(say("shell.translationNote").split(".")[0] ?? ""))).toHaveCount(0);
});

test("a user's language applies to other devices and notifications", async ({ page, browser, people, request }) => {
  const marie = await people.create("requester", "Marie Désir");
  await people.signIn(page, marie);
  await expect(page.getByRole("heading", { level: 1, name: "Select a Nonprofit" })).toBeVisible();
  const kept = page.waitForResponse((response) => response.url().endsWith("/rpc/keep_language"));
  await page.getByRole("button", { name: "Language: English" }).click();
  await page.getByRole("menuitemradio", { name: "Kreyòl ayisyen" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Chwazi yon òganizasyon" })).toBeVisible();
  expect((await kept).ok()).toBe(true);

  const { request_number: number } = await rpc<{ request_number: string }>(
    request,
    marie.accessToken,
    "submit_request",
    {
      input: { ...answersOf({ email: marie.email }, [{ id: "np-001" }]), key: randomUUID() },
    },
  );
  const other = await browser.newContext({ locale: "en-US" });
  const phone = await other.newPage();
  await people.signIn(phone, marie);
  await expect(phone.getByRole("heading", { level: 1, name: "Chwazi yon òganizasyon" })).toBeVisible();
  await phone.goto("/notifications");
  await expect(phone.getByText(`Demann ou ${number} pou Èd pou manje nan wout.`)).toBeVisible();
  await other.close();
});

test("the budget names kinds of help, and donors without a name, in the reader's language", async ({
  page,
  people,
  request,
}) => {
  const say = await wordsOf("es");
  const { organization, admin } = await found(request, people);
  const sent = await ask(request, people, [organization]);
  const gift = { nonprofit_id: organization.id, amount: "75", email: "quiet@mail.example", key: randomUUID() };
  const { donation_id } = await rpc<{ donation_id: string }>(request, null, "pledge_donation", { input: gift });
  await rpc(request, admin.accessToken, "receive_donation", { donation_id });
  const about = { request_id: sent.id, nonprofit_id: organization.id };
  await rpc(request, admin.accessToken, "approve_request", { ...about, amount: 50 });
  await people.signIn(page, admin);
  await page.goto("/nonprofit-budget?lang=es");
  await expect(page.getByRole("row").filter({ hasText: "75" })).toContainText(say("budget.anonymous"));
  await page.getByRole("tab", { name: say("budget.tabPayouts") }).click();
  await page.getByRole("button", { name: say("budget.payNamed", { number: sent.number }) }).click();
  await expect(page.getByRole("dialog")).toContainText(say("names.Food Assistance"));
  await expect(page.getByRole("dialog")).not.toContainText("Food Assistance");
  await page.goto("/notifications");
  await expect(page.getByText(say("notification.aDonor")).first()).toBeVisible();
});

const PHOTO = { name: "letter.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4 letter") };

/** Few browsers offer Creole: who reads it asks for it once. */
const browserOf = { en: "en-US", es: "es-419", fr: "fr", ht: "en-US" } as const;

/** Whose page, and that it says nothing in another language than the chosen one. */
async function inLanguage(page: Page, lang: keyof typeof browserOf) {
  await expect(page.locator("html")).toHaveAttribute("lang", lang);
}

for (const lang of ["en", "es", "fr", "ht"] as const) {
  test(`from a guest's first question to the decision by mailed code on a second phone, in ${lang}`, async ({
    browser,
    request,
    accessible,
  }) => {
    const say = await wordsOf(lang);
    const email = `guest-${randomUUID()}@test.example`;
    const phoneOf = () =>
      browser.newContext({ locale: browserOf[lang], viewport: { width: 390, height: 844 }, hasTouch: true });
    const press = (page: Page, name: string | RegExp) =>
      page
        .getByRole("main")
        .getByRole("button", { name, exact: typeof name === "string" })
        .click();
    const write = (page: Page, label: string, text: string) =>
      page
        .getByRole("main")
        .getByLabel(startsWith(say(label)))
        .and(page.locator("input, textarea"))
        .fill(text);
    const title = (page: Page, key: string) =>
      expect(page.getByRole("heading", { level: 1, name: say(key), exact: true })).toBeVisible();

    // the first phone: from the first question to the number
    const context = await phoneOf();
    const page = await context.newPage();
    await page.goto(lang === "ht" ? "/request-submission?lang=ht" : "/request-submission");
    await inLanguage(page, lang);
    await title(page, "requestForm.categoryTitle");
    await press(page, startsWith(say("names.Food Assistance")));
    await title(page, "requestForm.nonprofitsTitle");
    await page.getByRole("checkbox", { name: /^Harbor Relief Fund/ }).check();
    await press(page, say("common.continue"));
    await title(page, "requestForm.infoTitle");
    await write(page, "requestForm.firstName", "Marie");
    await write(page, "requestForm.lastName", "Désir");
    await write(page, "requestForm.email", email);
    await write(page, "requestForm.phone", "+1 207 555 0142");
    await press(page, say("requestForm.next"));
    await page.getByRole("checkbox", { name: say("common.noAddress") }).check();
    await write(page, "requestForm.city", "Portland");
    await write(page, "requestForm.state", "ME");
    await press(page, say("common.continue"));
    await title(page, "requestForm.detailsTitle");
    // a mistake is said in the language, at the field
    await write(page, "requestForm.description", "x");
    await press(page, say("common.continue"));
    await expect(page.getByText(say("requestForm.descriptionDetails")).first()).toBeVisible();
    await write(page, "requestForm.description", "Nou bezwen manje jiskaske travay la kòmanse.");
    await press(page, say("common.continue"));
    await title(page, "requestForm.reviewTitle");
    await page.getByRole("checkbox", { name: say("requestForm.consent") }).check();
    await accessible(page);
    await press(page, say("requestForm.submit"));
    await title(page, "requestForm.sentTitle");
    const number = (await page.getByTestId("request-number").innerText()).trim();
    await accessible(page);
    const sent = await mailTo(request, email, holds(say("mail.sent.subject", { number })));
    expect(sent.text).toContain(say("mail.never"));
    // who has no account needs none: the page leads to the way by code
    const opener = page.getByRole("main").getByRole("link", { name: say("requestForm.openWithCode") });
    await expect(opener).toHaveAttribute("href", `/open-request?number=${number}`);
    await context.close();

    // the nonprofit ticks what is missing, in English
    const staff = await tokenOf(request, "manager@demo.aidbridge.test");
    const about = { request_id: number, nonprofit_id: "np-001" };
    await rpc(request, staff, "request_more_info", { ...about, items: ["rent"] });
    const asked = await mailTo(request, email, holds(say("mail.asked.subject", { number })));
    expect(asked.text).toContain(say("mail.missing.rent"));

    // the second phone, whose browser speaks English: the mail's link brings the language along
    const link = new URL(/https?:\/\/\S+\/open-request\?number=\S+/.exec(asked.text)?.[0] ?? "");
    const second = await browser.newContext({ locale: "en-US", viewport: { width: 390, height: 844 }, hasTouch: true });
    const phone = await second.newPage();
    await phone.goto(link.pathname + link.search);
    await inLanguage(phone, lang);
    await title(phone, "openRequest.title");
    await press(phone, say("openRequest.send"));
    await expect(phone.getByText(say("openRequest.sent", { number }))).toBeVisible();
    await accessible(phone);
    const { subject } = await mailTo(request, email, new RegExp(`^\\d{6} .*${number}$`));
    await write(phone, "addressCode.code", subject.slice(0, 6));
    await press(phone, say("openRequest.open"));
    await title(phone, "names.Food Assistance");
    await expect(phone.getByText(say("mail.missing.rent")).first()).toBeVisible();
    await expect(phone.getByText(say("common.status.needs_more_proof")).first()).toBeVisible();
    await accessible(phone);
    await phone.locator("input[type=file]").setInputFiles(PHOTO);
    await write(phone, "myRequests.message", "Men li.");
    await press(phone, say("myRequests.sendDocuments"));
    await expect(phone.getByText(PHOTO.name)).toBeVisible();
    await expect(phone.getByText(say("common.status.pending")).first()).toBeVisible();

    // the decision: by mail, and on the phone that is open at the request
    await rpc(request, staff, "approve_request", { ...about, amount: 250 });
    const approved = await mailTo(request, email, holds(say("mail.approved.subject", { number })));
    expect(approved.text).toContain(say("mail.approved.p2"));
    await phone.reload();
    await expect(phone.getByText(say("common.status.approved")).first()).toBeVisible();
    await expect(phone.getByText(say("myRequests.approvedBody")).first()).toBeVisible();
    await accessible(phone);
    await second.close();
  });
}
