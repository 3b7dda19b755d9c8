/** Accounts: signing in, up and out, passwords, the profile, sessions that end, a server that does not answer. */
import { randomUUID } from "node:crypto";
import type { APIRequestContext, Page } from "@playwright/test";
import { apiKey, mailTo, rpc } from "./fixtures/api";
import { ask } from "./fixtures/staff";
import { expect, test, type Account } from "./fixtures/test";
import { watchToasts } from "./fixtures/toasts";

const PASSWORD = "Harbor-light-7";

const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { level: 1, name });
const button = (page: Page, name: string | RegExp) => page.getByRole("main").getByRole("button", { name });
/** Beside 'Sign up with Google'. */
const signUp = (page: Page) => page.getByRole("main").getByRole("button", { name: "Sign Up", exact: true });
const email = (page: Page) => page.getByRole("main").getByLabel("Email");
const password = (page: Page) => page.getByLabel("Password", { exact: true });
const said = async (page: Page, ...words: (string | RegExp)[]) => {
  for (const word of words) await expect(page.locator(".toast").getByText(word).first()).toBeVisible();
};
const newAddress = () => `person-${randomUUID()}@test.example`;

async function fillSignup(page: Page, address: string, words = PASSWORD, again = words) {
  await page.getByLabel("Full name").fill("Marie Désir");
  await email(page).fill(address);
  await password(page).fill(words);
  await page.getByLabel("Confirm password").fill(again);
}

async function selected(account: Account, request: APIRequestContext) {
  await rpc(request, account.accessToken, "select_nonprofit", { nonprofit_id: "np-001" });
}

test.describe("signing in", () => {
  test("a wrong password shows an error and keeps the form's values", async ({ page, people, accessible }) => {
    const account = await people.create("requester");
    await page.goto("/login");
    await button(page, "Login").click();
    await expect(page.getByText("Please enter a valid email address").first()).toBeVisible();
    await expect(page.getByText("Password is required").first()).toBeVisible();
    await email(page).fill(account.email);
    await password(page).fill("not-the-password");
    await button(page, "Login").click();
    await said(page, "Login failed", "Invalid email or password");
    const alert = page.getByRole("main").getByRole("alert");
    await expect(alert).toContainText("Authentication Error");
    await expect(alert).toContainText("Invalid email or password");
    await expect(email(page)).toHaveValue(account.email);
    await expect(password(page)).toHaveValue("not-the-password");
    await accessible(page);

    await password(page).fill(account.password);
    await button(page, "Login").click();
    await expect(page).toHaveURL("/select-nonprofit");
  });

  test("an error in the URL is shown, with its description or a general one", async ({ page, accessible }) => {
    await page.goto("/login?error=access_denied&error_description=The+link+was+cut+off");
    const alert = page.getByRole("main").getByRole("alert");
    await expect(alert).toContainText("The link was cut off");
    await accessible(page);
    await page.goto("/login?error=server_error");
    await expect(alert).toContainText("An error occurred during authentication");
    await page.goto("/login?error=x&error_description=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E");
    await expect(alert).toContainText("<img src=x onerror=alert(1)>");
  });

  test("Google and Microsoft are announced as coming soon", async ({ page, accessible }) => {
    await page.goto("/login");
    await expect(page.getByText("Third-party login coming soon")).toBeVisible();
    await expect(page.getByText("Please sign in with email and password.")).toBeVisible();
    await accessible(page, page.getByRole("main"));
    for (const name of ["Continue with Google", "Continue with Microsoft"]) {
      await page.goto("/login");
      await expect(button(page, name)).toHaveAttribute("aria-disabled", "true");
      await button(page, name).click({ force: true });
      await said(page, "Feature coming soon");
      await expect(page).toHaveURL("/login");
    }
  });

  test("earlier guest requests are looked up once per sign-in, not on every load", async ({ page, people }) => {
    const asked: string[] = [];
    page.on("request", (call) => {
      if (call.url().endsWith("/rpc/claim_guest_requests")) asked.push(new URL(page.url()).pathname);
    });
    const account = await people.create("requester", "Marie Désir");
    await people.signInByPage(page, account);
    await expect(page).toHaveURL("/select-nonprofit");
    await expect.poll(() => asked.length).toBe(1);
    // a page left before the answer has arrived asks again, as it should
    const noted = () => page.evaluate(() => localStorage.getItem("aidbridge-claimed"));
    await expect.poll(noted).not.toBeNull();
    for (const path of ["/profile", "/notifications"]) {
      await page.goto(path);
      await page.waitForLoadState("networkidle");
    }
    expect(asked).toHaveLength(1);
    await page.evaluate(() => localStorage.removeItem("aidbridge-auth"));
    await people.signInByPage(page, account);
    await expect.poll(() => asked.length).toBe(2);
  });

  test("logging out shows a message and leads to login", async ({ page, people, accessible }) => {
    await people.signInByPage(page, await people.create("requester", "Marie Désir"));
    await expect(page).toHaveURL("/select-nonprofit");
    await page.getByRole("button", { name: "Account of Marie Désir" }).click();
    await expect(page.getByRole("menuitem", { name: "Logout" })).toBeVisible();
    await accessible(page);
    await page.getByRole("menuitem", { name: "Logout" }).click();
    await said(page, "Logged out", "You have been successfully logged out.");
    await expect(page).toHaveURL("/login");
    await page.goto("/my-requests");
    await expect(page).toHaveURL("/login?next=%2Fmy-requests");
  });
});

test.describe("signing up", () => {
  test("shows what is missing at each field and keeps the values", async ({ page, accessible }) => {
    const address = newAddress();
    await page.goto("/signup");
    await button(page, /Requester/).click();
    await expect(heading(page, "Sign Up as Requester")).toBeVisible();
    await fillSignup(page, address, "short", "different");
    await signUp(page).click();
    await expect(password(page)).toHaveAccessibleDescription(/Password must be at least 8 characters/);
    await expect(password(page)).toHaveAttribute("aria-invalid", "true");
    await accessible(page);
    // the server's limit, in bytes
    await password(page).fill("é".repeat(37));
    await expect(password(page)).toHaveAccessibleDescription(/Use a shorter password: at most 72 letters or numbers/);
    await password(page).fill(PASSWORD);
    await signUp(page).click();
    const again = page.getByLabel("Confirm password");
    await expect(again).toHaveAccessibleDescription(/Passwords do not match/);
    await expect(page.getByLabel("Full name")).toHaveValue("Marie Désir");
    await expect(email(page)).toHaveValue(address);
    await expect(password(page)).toHaveValue(PASSWORD);
    await expect(again).toHaveValue("different");
    await expect(page).toHaveURL("/signup?role=requester");

    await page.getByRole("main").getByRole("button", { name: "Back" }).click();
    await expect(heading(page, "Create your account")).toBeVisible();
  });

  test("rejects a taken email and keeps the values", async ({ page, people }) => {
    const account = await people.create("requester");
    await page.goto("/signup?role=requester");
    await fillSignup(page, account.email);
    await signUp(page).click();
    const sentence = "An account with this email already exists. Log in, or reset your password.";
    await said(page, "Error creating account", sentence);
    await expect(page.getByRole("main").getByRole("alert")).toContainText(sentence);
    await expect(email(page)).toHaveValue(account.email);
    await expect(page.getByLabel("Full name")).toHaveValue("Marie Désir");
    await expect(password(page)).toHaveValue(PASSWORD);
  });

  for (const { role, name, lands, body } of [
    {
      role: "a requester",
      name: /Requester/,
      lands: "/select-nonprofit",
      body: "You can now submit requests for assistance.",
    },
    {
      role: "a nonprofit",
      name: /Nonprofit Organization/,
      lands: "/nonprofit-onboarding",
      body: "You can now complete your nonprofit registration.",
    },
  ]) {
    test(`${role} signs up and lands on ${lands}`, async ({ page }) => {
      const wasSaid = await watchToasts(page);
      await page.goto("/signup");
      await button(page, name).click();
      await fillSignup(page, newAddress());
      await signUp(page).click();
      await expect(page).toHaveURL(lands);
      await wasSaid("Account created successfully", body);
    });
  }

  test("signs up on the nonprofit page and continues with onboarding", async ({ page }) => {
    const wasSaid = await watchToasts(page);
    await page.goto("/nonprofit-signup");
    await fillSignup(page, newAddress());
    await signUp(page).click();
    await expect(page).toHaveURL("/nonprofit-onboarding");
    await wasSaid("Account created successfully", "You can now complete your nonprofit onboarding.");
  });
});

test("a forgotten password is reset by a mailed link that works once", async ({
  page,
  people,
  request,
  accessible,
}) => {
  const account = await people.create("requester");
  // from a link to a page of one's own, which the new password leads to in the end
  await page.goto("/profile-settings?tab=password");
  await page.getByRole("link", { name: "Forgot password?" }).click();
  // the page before has an e-mail field too
  await expect(heading(page, "Reset your password")).toBeVisible();
  await email(page).fill(account.email);
  await button(page, "Send reset link").click();
  await expect(heading(page, "Check Your Email")).toBeVisible();
  await said(page, "Reset email sent");
  await accessible(page);

  const { text } = await mailTo(request, account.email, /reset|password/i);
  const link = /https?:\/\/\S+\/auth\/v1\/verify\S+/.exec(text)?.[0];
  expect(link, text).toBeTruthy();
  await page.goto(link as string);
  await expect(heading(page, "Choose a new password")).toBeVisible();
  // the tokens do not stay in the address bar
  await expect(page).toHaveURL(/\/reset-password\?next=/);
  expect(page.url()).not.toMatch(/token|code=/);
  await accessible(page);
  await page.getByLabel("New password", { exact: true }).fill(PASSWORD);
  await page.getByLabel("Confirm new password").fill("something else");
  await button(page, "Reset Password").click();
  await expect(page.getByText("Passwords do not match").first()).toBeVisible();
  await accessible(page, page.getByRole("main"));
  await page.getByLabel("Confirm new password").fill(PASSWORD);
  await button(page, "Reset Password").click();
  await expect(heading(page, "Password Reset Complete")).toBeVisible();
  await said(page, "Password reset successful");
  await accessible(page, page.getByRole("main"));
  await page.getByRole("link", { name: "Go to Login" }).click();

  await email(page).fill(account.email);
  await password(page).fill(account.password);
  await button(page, "Login").click();
  await said(page, "Login failed");
  await password(page).fill(PASSWORD);
  await button(page, "Login").click();
  await expect(page).toHaveURL("/profile-settings?tab=password");

  await page.goto(link as string);
  await expect(heading(page, "Invalid Reset Link")).toBeVisible();
  await said(page, "Invalid or expired link", "Please request a new one.");
  await accessible(page, page.getByRole("main"));
  await page.getByRole("link", { name: "Request a new link" }).click();
  await expect(page).toHaveURL(/\/forgot-password\?next=/);
});

test("an unknown email gets the same answer as a known one", async ({ page }) => {
  await page.goto("/forgot-password");
  await email(page).fill(newAddress());
  await button(page, "Send reset link").click();
  await expect(heading(page, "Check Your Email")).toBeVisible();
  await expect(
    page.getByText("If an account exists with this email, you'll receive password reset instructions."),
  ).toBeVisible();
  await button(page, "Try Again").click();
  await expect(heading(page, "Reset your password")).toBeVisible();
});

test.describe("the user's account", () => {
  test("saves the profile across a reload", async ({ page, people, accessible }) => {
    await people.signIn(page, await people.create("requester", "Marie Désir"));
    await page.goto("/profile-settings");
    await expect(page.getByLabel("First name")).toHaveValue("Marie");
    await expect(page.getByLabel("ID number")).toHaveAccessibleDescription(
      "So that you have it at hand when a nonprofit asks who you are. Only you can read it here; no nonprofit sees it.",
    );
    await page.getByLabel("First name").fill("");
    await button(page, "Save Changes").click();
    for (const message of [
      "First name is required",
      "Birthday is required",
      "Country is required",
      "ID type is required",
      "ID number is required",
    ]) {
      await expect(page.getByRole("main").getByText(message).first()).toBeVisible();
    }
    await accessible(page);
    await page.getByLabel("First name").fill("Marie-Thérèse");
    await page.getByLabel("Birthday").fill("1984-03-09");
    await page.getByLabel("Country").selectOption("Haiti");
    await page.getByLabel("ID type").selectOption("Passport");
    await page.getByLabel("ID number").fill("PP-203 118");
    await button(page, "Save Changes").click();
    await said(page, "Profile updated", "Your profile has been updated successfully.");

    await page.reload();
    await expect(page.getByLabel("First name")).toHaveValue("Marie-Thérèse");
    await expect(page.getByLabel("Birthday")).toHaveValue("1984-03-09");
    await expect(page.getByLabel("Country").locator("option:checked")).toHaveText("Haiti");
    await expect(page.getByLabel("ID number")).toHaveValue("PP-203 118");
  });

  test("My Profile and Profile Settings change one name and one phone number", async ({ page, people }) => {
    const wasSaid = await watchToasts(page);
    const save = async () => {
      await button(page, "Save Changes").click();
      await wasSaid("Profile updated");
    };
    await people.signIn(page, await people.create("requester", "Ada Byron"));
    const [name, phone] = [page.getByLabel("Full name"), page.getByLabel("Phone")];
    await page.goto("/profile");
    await phone.fill("207 555 0100");
    await name.fill("Ada Lovelace");
    await save();
    await page.goto("/profile-settings");
    await expect(page.getByLabel("Last name")).toHaveValue("Lovelace");
    await page.getByLabel("Birthday").fill("1984-03-09");
    await page.getByLabel("Country").selectOption("Haiti");
    await page.getByLabel("ID type").selectOption("Passport");
    await page.getByLabel("ID number").fill("PP-203 118");
    await page.getByLabel("Last name").fill("King");
    await phone.fill("207 555 0199");
    await save();
    await page.goto("/profile");
    await expect(name).toHaveValue("Ada King");
    // the values of before, which the account's metadata had
    await name.fill("Ada Lovelace");
    await phone.fill("207 555 0100");
    await save();
    await page.reload();
    await expect(name).toHaveValue("Ada Lovelace");
    await expect(phone).toHaveValue("207 555 0100");
  });

  test("needs the current password to change it", async ({ page, people, browser, accessible }) => {
    const account = await people.create("requester");
    await people.signIn(page, account);
    await page.goto("/profile-settings?tab=password");
    const current = page.getByLabel("Current password");
    const wanted = page.getByLabel("New password", { exact: true });
    const again = page.getByLabel("Confirm new password");
    const change = button(page, "Change Password");
    await current.fill("not-the-password");
    await wanted.fill("harbor-light");
    await again.fill("harbor-light");
    await change.click();
    await expect(wanted).toHaveAccessibleDescription(/Password must contain at least 1 uppercase letter/);
    await wanted.fill(PASSWORD);
    await again.fill(PASSWORD);
    await change.click();
    await said(page, "Password change failed");
    await expect(current).toHaveAccessibleDescription(/This is not your current password\./);
    await accessible(page, page.getByRole("main"));
    await expect(wanted).toHaveValue(PASSWORD);
    await current.fill(account.password);
    await change.click();
    await said(page, "Password changed", "Your password has been updated successfully.");
    await expect(current).toHaveValue("");

    const context = await browser.newContext();
    const elsewhere = await context.newPage();
    await people.signInByPage(elsewhere, { email: account.email, password: PASSWORD });
    await expect(elsewhere).toHaveURL("/select-nonprofit");
    await context.close();
  });

  test("another user's request is not found", async ({ page, people, request, accessible }) => {
    const foreign = await ask(request, people, [{ id: "np-001", name: "Harbor Relief Fund" }]);
    const account = await people.create("requester");
    await selected(account, request);
    await people.signIn(page, account);
    await expect(page).toHaveURL("/requester-dashboard");
    for (const id of [foreign.id, foreign.number, "no-such-request"]) {
      await page.goto(`/request-details/${id}`);
      await expect(heading(page, "Request Not Found")).toBeVisible();
      await expect(page.getByRole("main")).not.toContainText("We need food until my new job starts.");
    }
    await accessible(page);
    await page.getByRole("link", { name: "Return to Dashboard" }).click();
    await expect(page).toHaveURL("/requester-dashboard");
  });
});

test.describe("an ended session", () => {
  /** Changes the session stored by supabase-js while no page of the app is open. */
  const tamper = async (page: Page, change: object) => {
    await page.goto("/app-config.json");
    await page.evaluate((values) => {
      const key = "aidbridge-auth";
      const kept = JSON.parse(localStorage.getItem(key) ?? "null") as object | null;
      if (!kept) throw new Error("no session is kept");
      localStorage.setItem(key, JSON.stringify({ ...kept, ...values }));
    }, change);
  };

  for (const [kind, change] of [
    ["expired", { expires_at: 1, refresh_token: "gone" }],
    ["forged", { access_token: "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtZSIsImV4cCI6NDEwMjQ0NDgwMH0.forged" }],
  ] as const) {
    test(`${kind}: login gives the reason and leads back`, async ({ page, people, request }) => {
      const account = await people.create("requester");
      await selected(account, request);
      await people.signIn(page, account);
      await expect(page).toHaveURL("/requester-dashboard");
      await tamper(page, change);
      const wasSaid = await watchToasts(page);
      await page.goto("/profile-settings?tab=password");
      await expect(page).toHaveURL(`/login?next=${encodeURIComponent("/profile-settings?tab=password")}`);
      await wasSaid("Authentication required", "You were signed out for your safety");
      await email(page).fill(account.email);
      await password(page).fill(account.password);
      await button(page, "Login").click();
      await expect(page).toHaveURL("/profile-settings?tab=password");
      await expect(page.getByLabel("Current password")).toBeVisible();
    });
  }
});

test.describe("an unreachable server", () => {
  const cut = (page: Page) => page.route("**/rest/v1/**", (route) => route.abort("connectionfailed"));
  const failed = (page: Page) => page.getByRole("main").getByRole("alert");

  test("a public page shows the error and 'Try again' loads it", async ({ page, accessible }) => {
    await cut(page);
    await page.goto("/nonprofit/np-001");
    await expect(failed(page)).toContainText("We could not load this nonprofit", { timeout: 90_000 });
    await accessible(page);
    await page.unroute("**/rest/v1/**");
    await button(page, "Try again").click();
    await expect(heading(page, "Harbor Relief Fund")).toBeVisible();
  });

  test("a signed-in page shows the error and 'Try again' loads it with the session", async ({
    page,
    people,
    request,
    accessible,
  }) => {
    const account = await people.create("requester");
    await selected(account, request);
    await people.signIn(page, account);
    await expect(page).toHaveURL("/requester-dashboard");
    await cut(page);
    await page.goto("/my-requests");
    await expect(failed(page)).toContainText("You are offline", { timeout: 90_000 });
    await accessible(page, page.getByRole("main"));
    await page.unroute("**/rest/v1/**");
    await button(page, "Try again").click();
    await expect(heading(page, "My Requests")).toBeVisible();
    await expect(page).toHaveURL("/my-requests");
  });

  test("keeps what was typed into a form", async ({ page, people }) => {
    const account = await people.create("requester");
    await page.route("**/auth/v1/**", (route) => route.abort("connectionfailed"));
    await page.goto("/login");
    await email(page).fill(account.email);
    await password(page).fill(account.password);
    await button(page, "Login").click();
    await said(page, "Login failed", /We cannot reach the server/);
    await expect(password(page)).toHaveValue(account.password);
    await page.unroute("**/auth/v1/**");
    await button(page, "Login").click();
    await expect(page).toHaveURL("/select-nonprofit");
  });
});

test("a browser shows the second factor's QR code as supabase-js returns it", async ({ page, people, request }) => {
  const account = await people.create("requester");
  const response = await request.post("/auth/v1/factors", {
    headers: { apikey: await apiKey(request), authorization: `Bearer ${account.accessToken}` },
    data: { factor_type: "totp" },
  });
  expect(response.ok(), await response.text()).toBe(true);
  const { totp } = (await response.json()) as { totp: { qr_code: string } };
  // A page without a content security policy.
  await page.goto("about:blank");
  const width = await page.evaluate(async (picture) => {
    const image = new Image();
    // As `mfa.enroll` does: raw, behind this prefix.
    image.src = `data:image/svg+xml;utf-8,${picture}`;
    await image.decode();
    return image.naturalWidth;
  }, totp.qr_code);
  expect(width).toBeGreaterThan(100);
});
