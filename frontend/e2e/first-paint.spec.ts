/** Pages that people arrive at, as the server has them in each language, before the app's code has come. */
import { bare as test, expect } from "./fixtures/test";

const pages = [
  ["/", "Ask for help once."],
  ["/request-submission", "Choose type of assistance"],
  ["/submit-request", "Choose type of assistance"],
  ["/login", "Welcome Back"],
  ["/nonprofit-login", "Welcome Back"],
  ["/request-status", "Request Status"],
] as const;

test("a landing page is readable before the app's code has loaded and looks the same afterwards", async ({ page }) => {
  for (const [address, heading] of pages) {
    await page.route(/\/assets\/.*\.js$/, (route) => route.abort());
    await page.goto(address);
    const before = page.getByRole("heading", { level: 1, name: heading });
    await expect(before).toBeVisible();
    await expect(page.locator(".before-app").filter({ visible: true })).toHaveCount(1);
    await page.evaluate(() => document.fonts.ready);
    const stood = await before.boundingBox();
    // fields are not editable yet, because the input would be lost
    for (const field of await page.locator("input").filter({ visible: true }).all())
      await expect(field).not.toBeEditable();
    await page.unroute(/\/assets\/.*\.js$/);

    await page.goto(address);
    await expect(page.locator(".before-app")).toHaveCount(0);
    const after = page.getByRole("heading", { level: 1, name: heading });
    await expect(after).toBeVisible();
    await expect.poll(() => after.boundingBox(), { message: address }).toEqual(stood);
  }
});

test(
  "landing pages use the language of the URL, the earlier choice or the browser",
  { tag: "@desk" },
  async ({ browser, baseURL }) => {
    const scripts = /\/assets\/.*\.js$/;
    for (const [locale, address, heading, chosen] of [
      ["fr-CA", "/request-submission", "Choisissez le type d’aide", "fr"],
      ["es-419", "/request-status", "Estado de la solicitud", "es"],
      ["en-US", "/request-submission?lang=ht", "Chwazi kalite èd la", "ht"],
    ] as const) {
      const context = await browser.newContext({ locale, baseURL });
      const page = await context.newPage();
      await page.route(scripts, (route) => route.abort());
      await page.goto(address);
      const stands = page.locator(".before-app").filter({ visible: true }).getByRole("heading", { level: 1 });
      await expect(stands).toHaveText(heading);
      await expect(page.locator("html")).toHaveAttribute("lang", chosen);
      // the app says the same, in the same language
      await page.unroute(scripts);
      await page.goto(address);
      await expect(page.locator(".before-app")).toHaveCount(0);
      await expect(page.getByRole("heading", { level: 1 })).toHaveText(heading);
      await expect(page.locator("html")).toHaveAttribute("lang", chosen);
      // what was asked for once is kept
      await page.route(scripts, (route) => route.abort());
      await page.goto(new URL(address, baseURL).pathname);
      await expect(stands).toHaveText(heading);
      // another one that the server does not know of: nothing is shown that would change under the reader's eyes
      await context.clearCookies();
      await page.evaluate(() => localStorage.setItem("aidbridge-language", "en"));
      await page.reload();
      if (locale !== "en-US") await expect(stands).toHaveCount(0);
      await context.close();
    }
  },
);

test("the first paint waits for the app where the page may differ", { tag: "@desk" }, async ({ page }) => {
  await page.route(/\/assets\/.*\.js$/, (route) => route.abort());
  const standing = page.locator(".before-app").filter({ visible: true });
  for (const address of ["/about-us", "/login?error=access_denied", "/submit-request?form=single", "/my-requests"]) {
    await page.goto(address);
    await expect(page.locator(".before-app"), address).not.toHaveCount(0);
    await expect(standing, address).toHaveCount(0);
  }
  // somebody may be signed in
  await page.evaluate(() => localStorage.setItem("aidbridge-auth", "{}"));
  await page.goto("/");
  await expect(page.locator(".before-app")).not.toHaveCount(0);
  await expect(standing).toHaveCount(0);
});

test("leaving the request pages by 'Exit this page' is immediate and the back button does not return", async ({
  page,
}) => {
  await page.route("https://www.weather.gov/", (route) =>
    route.fulfill({ contentType: "text/html", body: "<h1>Weather</h1>" }),
  );
  const leave = page.getByRole("link", { name: "Exit this page" }).filter({ visible: true });
  const weather = page.getByRole("heading", { name: "Weather" });

  // before the app's code has come
  await page.route(/\/assets\/.*\.js$/, (route) => route.abort());
  await page.goto("/request-submission");
  await leave.click();
  await expect(weather).toBeVisible();
  await page.unroute(/\/assets\/.*\.js$/);

  for (const way of ["press", "keys"]) {
    await page.goto("/faq");
    await page.goto("/request-submission");
    await expect(page.locator(".before-app")).toHaveCount(0);
    if (way === "press") await leave.click();
    else for (let n = 0; n < 3; n++) await page.keyboard.press("Shift");
    await expect(weather).toBeVisible();
    await page.goBack();
    await expect(page).toHaveURL(/\/faq$/);
  }
});

test(
  "the first question of the request form needs only its own files, and the next step loads the rest",
  { tag: "@desk" },
  async ({ page }) => {
    // of the rest of the form, of supabase-js, of Radix, and of the web font
    const rest = /\/assets\/(?!index|question|pictures|request-form).*\.(?:js|woff2)$/;
    let asked = 0;
    await page.route(rest, (route) => {
      asked += 1;
      return route.abort();
    });
    await page.goto("/request-submission");
    const card = page.getByRole("button", { name: /^Rent Support/ });
    await card.click();
    expect(asked).toBeGreaterThan(0);
    await expect(page.getByRole("heading", { level: 1, name: "Choose nonprofits" })).toBeVisible();
    // the rest fails to load: the page says so, and the answer stays
    const again = page.getByRole("button", { name: "Try again" });
    await expect(again).toBeVisible();
    await page.unroute(rest);
    await again.click();
    await expect(page.getByRole("group", { name: "Nonprofits" }).getByRole("checkbox").first()).toBeVisible();
    await page.goBack();
    await expect(card).toHaveAttribute("aria-pressed", "true");
  },
);
