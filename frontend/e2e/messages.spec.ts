/**
 * The specification's messages that no other journey shows: failing calls, empty lists, and accounts in unusual states.
 * `src/messages/specification.test.ts` lists every message and its test.
 */
import type { Page, Route } from "@playwright/test";
import { rpc } from "./fixtures/api";
import { ask, write } from "./fixtures/staff";
import { expect, test } from "./fixtures/test";
import { watchToasts } from "./fixtures/toasts";

const main = (page: Page) => page.getByRole("main");
const button = (page: Page, name: string | RegExp) => main(page).getByRole("button", { name });
const said = async (page: Page, ...words: string[]) => {
  for (const word of words) {
    await expect(page.locator(".toast").getByText(word, { exact: true }).first()).toBeVisible();
  }
};

/** An error without a specific text in the app. */
const authFault = (route: Route) =>
  route.fulfill({ status: 422, json: { code: 422, error_code: "unheard_of", msg: "unheard of" } });
const dataFault = (route: Route) =>
  route.fulfill({ status: 400, json: { code: "XX000", message: "unheard of", details: null, hint: null } });

/** The given method of an address fails; everything else passes. */
const fails = (page: Page, method: string, address: string, fault: (route: Route) => Promise<void>) =>
  page.route(address, (route) => (route.request().method() === method ? fault(route) : route.fallback()));

test.describe("signing in and up", () => {
  test("a login that fails for an unknown reason", async ({ page, people }) => {
    const account = await people.create("requester");
    const wasSaid = await watchToasts(page);
    await fails(page, "POST", "**/auth/v1/token?*", authFault);
    await page.goto("/login");
    await page.getByLabel("Email").fill(account.email);
    await page.getByLabel("Password", { exact: true }).fill(account.password);
    await button(page, "Login").click();
    await said(page, "Login failed", "Please check your credentials and try again.");
    const alert = main(page).getByRole("alert");
    await expect(alert).toContainText("Authentication Error");
    await expect(alert).toContainText("Authentication error. Please try logging in again.");

    await page.unroute("**/auth/v1/token?*");
    await button(page, "Login").click();
    await expect(page).toHaveURL("/select-nonprofit");
    await wasSaid("Logged in successfully");
  });

  test("a sign-up that fails for an unknown reason", async ({ page }) => {
    await fails(page, "POST", "**/auth/v1/signup*", authFault);
    await page.goto("/signup?role=requester");
    await page.getByLabel("Full name").fill("Marie Désir");
    await main(page).getByLabel("Email").fill("marie@test.example");
    await page.getByLabel("Password", { exact: true }).fill("Harbor-light-7");
    await page.getByLabel("Confirm password").fill("Harbor-light-7");
    await main(page).getByRole("button", { name: "Sign Up", exact: true }).click();
    await said(page, "Error creating account", "Please try again later.");
  });

  test("a login before the address is confirmed", async ({ page }) => {
    await fails(page, "POST", "**/auth/v1/token?*", (route) =>
      route.fulfill({
        status: 400,
        json: { code: 400, error_code: "email_not_confirmed", msg: "Email not confirmed" },
      }),
    );
    await page.goto("/login");
    await page.getByLabel("Email").fill("marie@test.example");
    await page.getByLabel("Password", { exact: true }).fill("Harbor-light-7");
    await button(page, "Login").click();
    await said(page, "Login failed", "Please confirm your email address before logging in");
  });

  test("a sign-up form sent empty", async ({ page, accessible }) => {
    await page.goto("/signup?role=requester");
    await main(page).getByRole("button", { name: "Sign Up", exact: true }).click();
    for (const words of ["Full name is required", "Please confirm your password"]) {
      await expect(main(page).getByText(words).first()).toBeVisible();
    }
    await accessible(page, main(page));
  });

  test("a URL with an unknown role", async ({ page }) => {
    await page.goto("/signup?role=emperor");
    await said(page, "Error", "Please select a role before signing up.");
    await expect(page.getByRole("heading", { level: 1, name: "Create your account" })).toBeVisible();
  });

  for (const [provider, words] of [
    ["google", "Signed up with Google successfully"],
    ["azure", "Signed up with Microsoft successfully"],
  ] as const) {
    test(`back from ${provider} with a session`, async ({ page, people }) => {
      const wasSaid = await watchToasts(page);
      await people.signIn(page, await people.create("requester"));
      await page.goto(`/nonprofit-signup?signed-up-with=${provider}`);
      await expect(page).toHaveURL("/nonprofit-onboarding");
      await wasSaid(words, "You can now complete your nonprofit onboarding.");
    });
  }

  test("a reset mail that cannot be sent gets the same answer as one that was sent", async ({ page }) => {
    await fails(page, "POST", "**/auth/v1/recover*", authFault);
    await page.goto("/forgot-password");
    await main(page).getByLabel("Email").fill("marie@test.example");
    await button(page, "Send reset link").click();
    await said(page, "Instructions sent");
    await expect(page.getByRole("heading", { level: 1, name: "Check Your Email" })).toBeVisible();
  });

  test("a recovery link without a token", async ({ page }) => {
    await page.goto("/reset-password?type=recovery");
    await said(
      page,
      "Invalid or expired link",
      "This password reset link is invalid or has expired. Please request a new one.",
    );
  });

  test("a new password that is refused", async ({ page, people }) => {
    const account = await people.create("requester");
    await fails(page, "PUT", "**/auth/v1/user*", authFault);
    await page.goto(`/reset-password?type=recovery&access_token=${account.accessToken}`);
    await page.getByLabel("New password", { exact: true }).fill("Harbor-light-7");
    await page.getByLabel("Confirm new password").fill("Harbor-light-7");
    await button(page, "Reset Password").click();
    await said(page, "Password reset failed", "There was a problem resetting your password. Please try again.");
  });

  test("a logout that fails", async ({ page, people }) => {
    await people.signIn(page, await people.create("requester", "Marie Désir"));
    await expect(page).toHaveURL("/select-nonprofit");
    await fails(page, "POST", "**/auth/v1/logout*", authFault);
    await page.getByRole("button", { name: "Account of Marie Désir" }).click();
    await page.getByRole("menuitem", { name: "Logout" }).click();
    await said(page, "Logout Failed", "An error occurred during logout");
    await expect(page).toHaveURL("/select-nonprofit");
  });
});

test.describe("roles", () => {
  test("a role that cannot be read", async ({ page, people }) => {
    const account = await people.create("requester");
    await people.signIn(page, account);
    await expect(page).toHaveURL("/select-nonprofit");
    await page.route("**/rest/v1/rpc/me", dataFault);
    await page.goto("/select-nonprofit");
    await said(page, "Error", "Error fetching user role from database");
  });

  test("a role that the app does not know", async ({ page, people }) => {
    await people.signIn(page, await people.create("requester"));
    await expect(page).toHaveURL("/select-nonprofit");
    // the database allows no such role, so the answer is changed on its way
    await page.route("**/rest/v1/rpc/me", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...((await response.json()) as object), role: "emperor" } });
    });
    await page.goto("/dashboard");
    await said(page, "Invalid user role", "Your account has an invalid role. Please contact support.");
    await expect(page).toHaveURL("/");
  });

  test("a role that is not chosen, and one that cannot be saved", async ({ page, people, request }) => {
    const account = await people.create("nonprofit");
    const row = { user_id: account.id, role: "nonprofit", nonprofit_role: null };
    await write(request, account, "user_roles", row, { merge: true });
    await people.signIn(page, account);
    await expect(page).toHaveURL("/nonprofit-role-selection");
    await button(page, "Continue").click();
    await said(page, "Please select a role");

    await fails(page, "POST", "**/rest/v1/user_roles*", dataFault);
    await page.goto("/role-selection");
    await button(page, /Requester/).click();
    await said(page, "Role selection required");
  });
});

test.describe("requests", () => {
  test("no kind of help to choose from", async ({ page, accessible }) => {
    await page.route("**/functions/v1/get-categories*", (route) => route.fulfill({ json: { categories: [] } }));
    await page.goto("/submit-request");
    await expect(page.getByText("No assistance categories found.")).toBeVisible();
    await accessible(page, main(page));
    await page.unroute("**/functions/v1/get-categories*");
    await button(page, "Refresh").click();
    await expect(button(page, /^Food Assistance/)).toBeVisible();
  });

  test("too many files, a submission that fails, and its number once it arrives", async ({
    page,
    people,
    accessible,
  }) => {
    const account = await people.create("requester", "Marie Désir");
    await people.signIn(page, account);
    await page.goto("/submit-request?form=single");
    await expect(
      page.getByText("If your request requires financial support, please specify the amount."),
    ).toBeVisible();
    await expect(page.getByText("Please select a category")).toBeVisible();
    await page.getByLabel("Category").selectOption("Medical Aid");
    await page.getByRole("group", { name: "Nonprofits" }).getByRole("checkbox").first().click();
    await button(page, "Submit Request").click();
    for (const words of ["Street address is required", "State/Province is required", "Postal/ZIP code is required"]) {
      await expect(main(page).getByText(words).first()).toBeVisible();
    }
    await page.getByLabel("Details").fill("We need medicine until my new job starts.");
    await page.getByLabel("Phone", { exact: true }).fill("+1 207 555 0142");
    await page.getByLabel("Street address").fill("18 Main Street");
    await page.getByLabel("City").fill("Portland");
    await page.getByLabel("State/Province").fill("ME");
    await page.getByLabel("Postal/ZIP code").fill("04101");
    const pdf = (name: string) => ({ name, mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4") });
    await page
      .locator("input[type=file]")
      .setInputFiles(["1.pdf", "2.pdf", "3.pdf", "4.pdf", "5.pdf", "6.pdf"].map((name) => pdf(name)));
    await said(page, "Too many files", "You can only upload a maximum of 5 files.");
    await accessible(page, main(page).locator("form"));
    await expect(page.getByText(/arrived/)).toHaveCount(5);
    await page.getByRole("checkbox", { name: /You may contact me/ }).click();

    await page.route("**/rest/v1/rpc/submit_request", dataFault);
    await button(page, "Submit Request").click();
    await said(page, "Error submitting request");
    await accessible(page, main(page).getByRole("alert"));
    await page.unroute("**/rest/v1/rpc/submit_request");
    await button(page, "Submit Request").click();
    const number = await page.getByTestId("request-number").innerText();
    await said(page, "Request submitted successfully", `Your request ID is ${number.trim()}`);
  });

  test("drafts that cannot be read or deleted", async ({ page, people, request, accessible }) => {
    const account = await people.create("requester");
    await rpc(request, account.accessToken, "select_nonprofit", { nonprofit_id: "np-001" });
    await rpc(request, account.accessToken, "save_draft", { input: { category_id: "cat-004", step: 1 } });
    await people.signIn(page, account);
    await expect(page).toHaveURL("/requester-dashboard");
    await fails(page, "DELETE", "**/rest/v1/requests?*", dataFault);
    await page.goto("/request-drafts");
    await button(page, "Delete School Tuition").click();
    await accessible(page, page.getByRole("alertdialog"));
    await page.getByRole("alertdialog").getByRole("button", { name: "Delete draft" }).click();
    await said(page, "Failed to delete draft");
    await expect(page.getByRole("heading", { name: "School Tuition" })).toBeVisible();

    await fails(page, "GET", "**/rest/v1/requests?*", dataFault);
    await page.goto("/request-drafts");
    await said(page, "Failed to load drafts", "Please try again later");
    await accessible(page, main(page));
  });

  test("a request whose nonprofits no longer exist", async ({ page, people, request }) => {
    const sent = await ask(request, people, [{ id: "np-001", name: "Harbor Relief Fund" }]);
    await rpc(request, sent.person.accessToken, "select_nonprofit", { nonprofit_id: "np-001" });
    await people.signIn(page, sent.person);
    await expect(page).toHaveURL("/requester-dashboard");
    // a sent request keeps its nonprofits, so the answer is changed on its way
    await page.route("**/rest/v1/rpc/request_detail", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...((await response.json()) as object), nonprofits: [] } });
    });
    await page.goto(`/request-details/${sent.id}`);
    await expect(page.getByText("No nonprofits selected")).toBeVisible();
  });
});

test.describe("empty lists", () => {
  test("no notifications", async ({ page, people, accessible }) => {
    await people.signIn(page, await people.create("requester"));
    await page.goto("/notifications");
    await expect(page.getByRole("heading", { name: "No notifications" })).toBeVisible();
    await accessible(page, main(page));
  });

  test("an organization without categories", async ({ page, people, request, accessible }) => {
    const admin = await people.create("nonprofit");
    const organization = await rpc<{ id: string }>(request, admin.accessToken, "create_organization", {
      input: {
        name: "Harbor Without Categories",
        legal_status: "501(c)(3)",
        registration_number: "01-0555002",
        employee_count: "4",
        mission: "We keep families fed and housed.",
        categories: [],
      },
    });
    await page.goto(`/nonprofit/${organization.id}`);
    await expect(page.getByText("No categories defined yet.")).toBeVisible();
    await people.signIn(page, admin);
    await page.goto("/categories-management");
    await expect(page.getByText("No categories defined yet.")).toBeVisible();
    await accessible(page, main(page));
  });
});

test.describe("the profile", () => {
  test("a new password that breaks each rule", async ({ page, people, accessible }) => {
    await people.signIn(page, await people.create("requester"));
    await page.goto("/profile-settings?tab=password");
    const field = (label: string) => page.getByLabel(label, { exact: true });
    const complains = async (...words: string[]) => {
      await button(page, "Change Password").click();
      for (const word of words) await expect(main(page).getByText(word).first()).toBeVisible();
    };
    await complains(
      "Please enter your current password",
      "Password must be at least 8 characters",
      "Please confirm your new password",
    );
    await accessible(page, main(page));
    await field("New password").fill("harbor-light");
    await complains("Password must contain at least 1 uppercase letter");
    await field("New password").fill("Harbor-light");
    await field("Confirm new password").fill("Harbor-night");
    await complains("Password must contain at least 1 number");
    await field("New password").fill("Harbor-light-7");
    await field("Current password").fill("Harbor-light-6");
    await complains("Passwords don't match");
  });

  test("a photo upload that succeeds, and one that fails", async ({ page, people }) => {
    await people.signIn(page, await people.create("requester"));
    await page.goto("/profile-settings");
    const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const photo = { name: "me.png", mimeType: "image/png", buffer: Buffer.from(png, "base64") };
    const input = page.locator("input[type=file]");
    await input.setInputFiles(photo);
    await said(page, "Photo updated");
    await fails(page, "POST", "**/storage/v1/object/profile-photos/**", (route) =>
      route.fulfill({ status: 400, json: { statusCode: "400", error: "unheard_of", message: "unheard of" } }),
    );
    await input.setInputFiles(photo);
    await said(page, "Upload failed", "Could not upload photo. Please try again.");
  });

  test("a profile that cannot be saved", async ({ page, people }) => {
    await people.signIn(page, await people.create("requester", "Marie Désir"));
    await expect(page).toHaveURL("/select-nonprofit");
    await fails(page, "PUT", "**/auth/v1/user*", authFault);
    await page.goto("/user-profile");
    await page.getByLabel("Full name").fill("Marie-Thérèse Désir");
    await button(page, "Save Changes").click();
    await said(page, "Update failed", "Could not update profile. Please try again.");
    await expect(page.getByLabel("Full name")).toHaveValue("Marie-Thérèse Désir");
  });
});
