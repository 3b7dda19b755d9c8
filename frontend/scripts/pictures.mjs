/**
 * Pictures of a request's whole way and of everybody's pages in every language, on phone and desk, light and dark, and sheets that show them
 * beside each other: `just pictures FOLDER [PATTERN OF NAMES] [LANGUAGES]`, against a server with the demo data (BASE_URL, INBOX_URL). They are to be looked at, not kept.
 */
import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "@playwright/test";

const base = process.env.BASE_URL ?? "http://127.0.0.1:54321";
const inbox = process.env.INBOX_URL ?? "http://127.0.0.1:54324";
const folder = resolve(process.argv[2] ?? "target/pictures");
const only = process.argv[3] ? new RegExp(process.argv[3]) : /./;
const languages = (process.argv[4] ?? "en,es,fr,ht").split(",");
/** How high a sheet is at most. */
const SLICE = 1500;
const password = "aidbridge-demo1A";
mkdirSync(join(folder, "sheets"), { recursive: true });

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH,
  args: ["--disable-gpu", "--disable-background-networking", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])],
});

const key = (await (await fetch(`${base}/app-config.json`)).json()).publishableKey;
async function call(path, token, body) {
  const response = await fetch(base + path, {
    method: "POST",
    headers: { apikey: key, authorization: `Bearer ${token ?? key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}
const signedIn = (who) =>
  call("/auth/v1/token?grant_type=password", null, { email: `${who}@demo.aidbridge.test`, password });

/** Waits until nothing stands in for what is still to come. */
async function stands(page) {
  await page.locator("h1, [role=dialog], [role=alertdialog]").first().waitFor();
  await page.locator(".before-app").first().waitFor({ state: "detached" });
  await page.waitForFunction(
    () => !document.querySelector("main.lone:not(:has(h1)), main span.sk, main [aria-busy=true]"),
  );
  await page.waitForLoadState("networkidle");
  await page.evaluate(() => document.fonts.ready);
}

async function take(page, language, name) {
  await stands(page);
  for (const [width, height] of [
    [1280, 860],
    [390, 844],
  ]) {
    await page.setViewportSize({ width, height });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      // a window as high as the page, so that bars at its edges do not stand in its middle
      const whole = await page.evaluate(() => document.documentElement.scrollHeight);
      const open = await page.locator("[role=dialog], [role=alertdialog]").count();
      if (!open) await page.setViewportSize({ width, height: Math.max(height, whole) });
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}-${language}.png`) });
      await page.setViewportSize({ width, height });
    }
  }
  await page.setViewportSize({ width: 1280, height: 860 });
}

/** The main button of the page. */
const go = (page) => page.getByRole("main").locator(".btn.primary:visible").last();

/** What `asking` takes. */
const asked = [
  "01-home",
  "02-kind",
  "03-nonprofits",
  "04-mistakes",
  "05-address",
  "06-need",
  "07-review",
  "08-waits",
  "09-sent",
  "10-status",
  "11-ask-code",
  "12-code",
  "13-own-request",
  "14-login",
  "15-signup",
];

async function asking(page, language, see) {
  const email = `picture-${randomUUID()}@test.example`;
  await page.goto(`${base}/?lang=${language}`);
  await see("01-home");
  await page.goto(`${base}/submit-request`);
  await see("02-kind");
  await page.locator("main button.choice").first().click();
  await page.getByRole("main").getByRole("checkbox").first().check();
  await see("03-nonprofits");
  await go(page).click();
  await page.locator("main input[id$=-firstName]").waitFor();
  await go(page).click();
  await see("04-mistakes");
  const fill = async (values) => {
    for (const [name, value] of Object.entries(values)) await page.locator(`main [id$=-${name}]`).fill(value);
  };
  await fill({ firstName: "Marie-Thérèse", lastName: "Désir-Beauvoir", email, phone: "+1 207 555 0142" });
  await go(page).click();
  await page.locator("main [id$=-address]").waitFor();
  await see("05-address");
  await fill({ address: "18 Main Street", city: "Portland", state: "ME", postalCode: "04101" });
  await go(page).click();
  await page.locator("main [id$=-description]").fill("I lost my job in October. We need food until my new job starts.");
  await page
    .locator("main input[type=file]")
    .first()
    .setInputFiles({
      name: "letter of the landlord.pdf",
      mimeType: "application/pdf",
      buffer: Buffer.from("%PDF-1.4 letter"),
    });
  await see("06-need");
  await go(page).click();
  await page.waitForURL(/step=review/);
  await page.getByRole("main").getByRole("checkbox").last().check();
  await see("07-review");
  await page.context().setOffline(true);
  await go(page).click();
  await page.locator("main .notice.warn").waitFor();
  await see("08-waits");
  await page.context().setOffline(false);
  await page.getByTestId("request-number").waitFor();
  await see("09-sent");
  const number = await page.getByTestId("request-number").textContent();
  await page.goto(`${base}/request-status?id=${number}`);
  await see("10-status");
  await page.goto(`${base}/open-request?number=${number}`);
  await see("11-ask-code");
  await go(page).click();
  let mail;
  for (let tries = 0; !mail && tries < 100; tries += 1) {
    await new Promise((later) => setTimeout(later, 200));
    const mails = await (await fetch(`${inbox}/api/messages?to=${encodeURIComponent(email)}`)).json();
    mail = mails.find(({ subject }) => /\b\d{6}\b/.test(subject));
  }
  await page
    .locator("main input")
    .last()
    .fill(/\b\d{6}\b/.exec(mail.subject)[0]);
  await see("12-code");
  await go(page).click();
  await page.locator("main .detail").waitFor();
  const { access_token: staff } = await signedIn("manager");
  const args = { request_id: number, nonprofit_id: "np-001" };
  await call("/rest/v1/rpc/request_more_info", staff, { ...args, items: ["income", "rent"] });
  await page.reload();
  await see("13-own-request");
  await page.goto(`${base}/login`);
  await see("14-login");
  await page.goto(`${base}/signup?role=requester`);
  await see("15-signup");
}

const places = {
  nobody: [
    ["60-for-nonprofits", "/for-nonprofits"],
    ["61-how-it-works", "/how-it-works"],
    ["62-faq", "/faq"],
    ["63-features", "/features"],
    ["64-pricing", "/pricing"],
    ["65-about", "/about-us"],
    ["66-partners", "/partners"],
    ["67-resources", "/resource-library"],
    ["68-blog", "/blog"],
    ["69-post", "/blog/1"],
    ["70-nonprofit", "/nonprofit/np-001"],
    ["71-not-found", "/404"],
    ["72-forgot-password", "/forgot-password"],
    ["73-single-page", "/submit-request?form=single"],
    ["80-privacy", "/privacy"],
    ["81-terms", "/terms"],
    ["82-accessibility", "/accessibility"],
  ],
  requester: [
    ["20-dashboard", "/requester-dashboard"],
    ["21-my-requests", "/my-requests"],
    ["22-request", "/request/REQ-004"],
    ["23-approved", "/request/REQ-002"],
    ["24-declined", "/request/REQ-003"],
    ["25-select", "/select-nonprofit"],
    ["26-notifications", "/notifications"],
    ["27-profile", "/profile-settings"],
    ["28-drafts", "/request-drafts"],
    ["29-my-data", "/profile"],
  ],
  manager: [
    ["30-dashboard", "/nonprofit-dashboard"],
    ["31-incoming", "/nonprofit-requests"],
    ["32-request", "/nonprofit-request/REQ-001"],
    ["33-approve", "/nonprofit-request/REQ-001?decide=approve"],
    ["34-deny", "/nonprofit-request/REQ-001?decide=deny"],
    ["35-ask", "/nonprofit-request/REQ-001?decide=info"],
    ["36-budget", "/nonprofit-budget"],
    ["37-donors", "/nonprofit-donor-communication"],
  ],
  donor: [
    ["40-donor", "/donor-dashboard"],
    ["41-pledge", "/donor-dashboard?donate"],
    ["42-donations", "/donor-dashboard?tab=donations"],
    ["43-impact", "/donor-dashboard?tab=impact"],
  ],
  admin: [
    ["50-dashboard", "/nonprofit-dashboard"],
    ["51-settings", "/nonprofit-settings"],
    ["52-team", "/team-management"],
    ["53-categories", "/categories-management"],
    ["54-donations", "/nonprofit-budget?tab=donations"],
    ["55-payouts", "/nonprofit-budget?tab=payouts"],
    ["56-inbox", "/nonprofit-donor-communication?tab=inbox"],
  ],
};

for (const language of languages) {
  for (const who of [null, ...Object.keys(places)]) {
    if (!(who ? places[who].map(([name]) => name) : asked).some((name) => only.test(name))) continue;
    const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, locale: language });
    const page = await context.newPage();
    const see = async (name) => only.test(name) && take(page, language, name);
    try {
      if (who === null) await asking(page, language, see);
      else {
        if (who !== "nobody") {
          const session = JSON.stringify(await signedIn(who));
          await page.addInitScript((value) => localStorage.setItem("aidbridge-auth", value), session);
        }
        await page.goto(`${base}/?lang=${language}`);
        for (const [name, path] of places[who]) {
          if (!only.test(name)) continue;
          await page.goto(`${base}${path}${path.includes("?") ? "&" : "?"}lang=${language}`);
          await see(name);
        }
      }
    } catch (error) {
      await page.screenshot({ path: join(folder, `failed-${who}-${language}.png`), fullPage: true });
      console.error(`${who ?? "guest"} in ${language}: ${error.message}`);
      process.exitCode = 1;
    }
    await context.close();
  }
}

const names = [
  ...new Set(readdirSync(folder).flatMap((file) => /^(\d\d-[a-z-]+)-1280-light-[a-z]+\.png$/.exec(file)?.[1] ?? [])),
];
const sheet = await browser.newPage();
for (const name of names) {
  const picture = (width, scheme, language, size) =>
    `<img width=${size} src="${pathToFileURL(join(folder, `${name}-${width}-${scheme}-${language}.png`))}">`;
  for (const [kind, width, rows] of [
    ["phone", 1600, languages.map((language) => picture(390, "light", language, 390)).join("")],
    ["desk", 1600, languages.map((language) => picture(1280, "light", language, 790)).join("")],
    [
      "dark",
      1600,
      languages.map((language) => picture(390, "dark", language, 150)).join("") +
        languages.map((language) => picture(1280, "dark", language, 480)).join(""),
    ],
  ]) {
    const file = join(folder, "sheets", `${name}-${kind}.html`);
    writeFileSync(
      file,
      `<body style="margin:4px;background:#888;display:flex;flex-wrap:wrap;gap:6px;align-items:start">${rows}`,
    );
    await sheet.setViewportSize({ width, height: 1000 });
    await sheet.goto(pathToFileURL(file).href);
    await sheet.waitForFunction(() => [...document.images].every((image) => image.complete));
    // in slices, each of which can be read at its full size
    const whole = await sheet.evaluate(() => document.documentElement.scrollHeight);
    for (let y = 0, slice = 1; y < whole; y += SLICE, slice += 1)
      await sheet.screenshot({
        path: file.replace(".html", `-${slice}.png`),
        clip: { x: 0, y, width, height: Math.min(SLICE, whole - y) },
        fullPage: true,
      });
  }
}
await browser.close();
console.log(`pictures and sheets are in ${folder}`);
