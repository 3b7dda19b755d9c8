/** The language of a visit, of a person and of the mails they get; the journey of a guest by mail in each. */
import { randomUUID } from "node:crypto";
import { apiKey, mailTo, rpc, tokenOf } from "./fixtures/api";
import { answersOf } from "./fixtures/staff";
import { expect, test } from "./fixtures/test";

test("a language asked for by the address is kept, read by all pages and spoken by mails", async ({
  page,
  request,
  accessible,
}) => {
  await page.goto("/login?lang=fr");
  await expect(page.getByRole("heading", { level: 1, name: "Bon retour" })).toBeVisible();
  await expect(page.locator("html")).toHaveAttribute("lang", "fr");
  await accessible(page);
  await page.goto("/request-submission");
  await expect(page.getByRole("button", { name: /Aide alimentaire/ })).toBeVisible();

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
});

test("a person's language is chosen once: the next device and the notifications speak it", async ({
  page,
  browser,
  people,
  request,
}) => {
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

const journeys = [
  [
    "es",
    "Una foto de la carta",
    /^REQ-\d+: envía una cosa más/,
    "Te escriben",
    /tu solicitud está aprobada$/,
    "Aprobada",
  ],
  [
    "fr",
    "Une photo de la lettre",
    /encore une chose, s’il vous plaît$/,
    "On vous écrit",
    /votre demande est acceptée$/,
    "Acceptée",
  ],
  ["ht", "Yon foto lèt la", /tanpri voye yon lòt bagay$/, "Y ap ekri ou", /yo dakò ak demann ou$/, "Dakò"],
] as const;

for (const [lang, question, asked, next, approved, badge] of journeys) {
  test(`from a guest to the decision by mail in ${lang}, on a second phone`, async ({
    browser,
    request,
    accessible,
  }) => {
    const email = `guest-${randomUUID()}@test.example`;
    const sent = await request.post("/rest/v1/rpc/submit_request", {
      headers: { apikey: await apiKey(request), "Accept-Language": lang },
      data: { input: { ...answersOf({ email }, [{ id: "np-001" }]), key: randomUUID() } },
    });
    const { id, request_number: number } = (await sent.json()) as { id: string; request_number: string };
    const staff = await tokenOf(request, "manager@demo.aidbridge.test");
    await rpc(request, staff, "request_more_info", { request_id: id, nonprofit_id: "np-001", notes: question });
    const mail = await mailTo(request, email, asked);
    expect(mail.text).toContain(`"${question}"`);

    const link = /https?:\/\/\S+\/open-request\?number=\S+/.exec(mail.text)?.[0] ?? "";
    const context = await browser.newContext({ locale: lang === "ht" ? "en-US" : lang });
    const phone = await context.newPage();
    // the browser's language is enough; Creole, which few browsers offer, is asked for
    await phone.goto(`${new URL(link).pathname}${new URL(link).search}${lang === "ht" ? "&lang=ht" : ""}`);
    await phone.getByRole("main").getByRole("button").last().click();
    const code = await mailTo(request, email, new RegExp(` ${number}$`));
    await phone.getByRole("textbox").fill(/\b\d{6}\b/.exec(code.subject)?.[0] ?? "");
    await phone.getByRole("main").locator("button[type=submit]").click();
    await expect(phone.getByText(question).first()).toBeVisible();
    await accessible(phone);

    await rpc(request, staff, "approve_request", { request_id: id, nonprofit_id: "np-001", amount: 250 });
    expect((await mailTo(request, email, approved)).text).toContain(next);
    await phone.reload();
    await expect(phone.getByText(badge).first()).toBeVisible();
    await context.close();
  });
}
