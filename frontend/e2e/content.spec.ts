/**
 * What the specification says of the public pages, the header and the footer (its section 2), sentence by sentence: words,
 * counts, and where each link leads. docs/spec-coverage.md names the line of each.
 */
import type { Locator, Page } from "@playwright/test";
import { isPhone } from "./fixtures/staff-pages";
import { expect, test } from "./fixtures/test";

const main = (page: Page) => page.getByRole("main");
/** Opens a page and waits until the app itself shows it. */
async function open(page: Page, path: string) {
  await page.goto(path);
  await expect(page.locator(".before-app")).toHaveCount(0);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
}

async function leads(within: Locator, links: readonly (readonly [name: string, to: string])[]) {
  for (const [name, to] of links) {
    const link = within.getByRole("link", { name, exact: true }).first();
    await expect(link, `${name} → ${to}`).toHaveAttribute("href", to);
    await expect(link, name).toBeVisible();
  }
}

test("the header: logo, five links (in the menu on small screens), three themes with System as default, Login", async ({
  page,
  accessible,
}) => {
  await open(page, "/faq");
  const header = page.getByRole("banner");
  await leads(header, [["AidBridge, home", "/"]]);
  const places = [
    ["Home", "/"],
    ["How It Works", "/how-it-works"],
    ["For Nonprofits", "/for-nonprofits"],
    ["About Us", "/about-us"],
    ["Resources", "/resource-library"],
  ] as const;
  if (isPhone(page)) {
    await expect(header.getByRole("link", { name: "About Us" })).toBeHidden();
    await header.getByRole("button", { name: "Menu" }).click();
    await leads(page.getByRole("dialog"), [...places, ["Login", "/login"]]);
    await accessible(page, page.getByRole("dialog"));
    await page.keyboard.press("Escape");
  } else {
    await leads(header, [...places, ["Login", "/login"]]);
  }
  await header.getByRole("button", { name: "Theme: System" }).click();
  await expect(page.getByRole("menuitemradio")).toHaveText(["Light", "Dark", "System"]);
  await expect(page.getByRole("menuitemradio", { name: "System" })).toBeChecked();
  await accessible(page, page.getByRole("menu"));
});

test("the avatar: first letter or NA, with Profile, Notifications and Logout behind it", async ({ page, people }) => {
  const person = await people.create("requester", "élodie Désir");
  await people.signIn(page, person);
  await expect(page).toHaveURL("/select-nonprofit");
  const avatar = page.getByRole("banner").getByRole("button", { name: "Account of élodie Désir" });
  await expect(avatar).toHaveText("É");
  await avatar.click();
  await leads(page.getByRole("menu"), []);
  for (const [name, to] of [
    ["Profile", "/profile"],
    ["Notifications", "/notifications"],
  ] as const) {
    await expect(page.getByRole("menuitem", { name })).toHaveAttribute("href", to);
  }
  await expect(page.getByRole("menuitem", { name: "Logout" })).toBeVisible();

  const nameless = await people.create("requester", "");
  await page.evaluate(() => localStorage.clear());
  await people.signIn(page, nameless);
  await expect(page.getByRole("banner").getByRole("button", { name: /^Account of/ })).toHaveText("NA");
});

test("the footer: two columns of links, the contact, social links, the year, three small links", async ({ page }) => {
  await open(page, "/about-us");
  const footer = page.getByRole("contentinfo");
  await leads(footer.getByRole("navigation", { name: "For Aid Seekers" }), [
    ["Submit a Request", "/request-submission"],
    ["How It Works", "/how-it-works"],
    ["Check Request Status", "/request-status"],
    ["FAQ", "/faq"],
  ]);
  await leads(footer.getByRole("navigation", { name: "For Nonprofits" }), [
    ["Login / Sign Up", "/nonprofit-login"],
    ["Pricing Plans", "/pricing"],
    ["Features", "/features"],
    ["Resource Library", "/resource-library"],
  ]);
  await expect(footer.getByRole("heading", { name: "Contact Us" })).toBeVisible();
  await expect(footer.getByRole("link", { name: /@/ })).toHaveAttribute("href", /^mailto:.+@.+/);
  await expect(footer.getByRole("list", { name: "Follow us" }).getByRole("link")).toHaveCount(3);
  await expect(footer).toContainText(`© ${new Date().getUTCFullYear()} AidBridge`);
  await leads(footer, [
    ["Privacy Policy", "/privacy"],
    ["Terms of Service", "/terms"],
    ["Accessibility", "/accessibility"],
  ]);
});

test("home: two entry links, fixed figures, three cards, a call to action, three stories", async ({ page }) => {
  await open(page, "/");
  await leads(main(page), [
    ["Submit Aid Request", "/request-submission"],
    ["For Nonprofits", "/nonprofit-signup"],
    ["Submit Request", "/request-submission"],
    ["Nonprofit Signup", "/nonprofit-signup"],
  ]);
  const mock = page.getByRole("region", { name: "Aid Requests Dashboard" });
  await expect(mock).toContainText("Live");
  await expect(mock.locator(".total")).toHaveText(/^247\s*Total Requests$/);
  await expect(mock.locator("dl > div")).toHaveText([/Approved\s*189/, /Pending\s*58/]);
  for (const name of ["Aid Seekers", "Nonprofits", "Global Impact"])
    await expect(main(page).getByRole("heading", { level: 2, name, exact: true })).toBeVisible();
  await expect(page.getByRole("region", { name: "Success stories" }).locator("blockquote")).toHaveCount(3);
});

test("login: order of its elements and targets of its links", { tag: "@desk" }, async ({ page }) => {
  await open(page, "/login");
  await expect(page.getByRole("heading", { level: 1, name: "Welcome Back" })).toBeVisible();
  await expect(main(page).locator("section").first()).toHaveText(
    /Welcome Back.*Google.*Microsoft.*Third-party login coming soon.*Please sign in with email and password\..*OR.*Email.*Password.*Login/s,
  );
  await leads(main(page), [
    ["Submit a request without an account", "/request-submission"],
    ["Create an account", "/signup"],
    ["Forgot password?", "/forgot-password"],
  ]);
});

test("signup: the role first, then the form with Back to the roles", { tag: "@desk" }, async ({ page }) => {
  await open(page, "/signup");
  await leads(main(page), [["Login", "/login"]]);
  for (const [role, words, title] of [
    ["Requester", "I need assistance from nonprofits", "Sign Up as Requester"],
    ["Nonprofit Organization", "I represent a nonprofit providing assistance", "Sign Up as Nonprofit"],
  ] as const) {
    await main(page)
      .getByRole("button", { name: `${role} ${words}` })
      .click();
    await expect(page.getByRole("heading", { level: 1, name: title })).toBeVisible();
    await leads(main(page), [["Login", "/login"]]);
    await main(page).getByRole("button", { name: "Back" }).click();
    await expect(main(page).getByRole("button", { name: new RegExp(`^${role}`) })).toBeVisible();
  }
});

test(
  "nonprofit signup: two disabled buttons, OR, four fields, terms, privacy, login",
  { tag: "@desk" },
  async ({ page }) => {
    await open(page, "/nonprofit-signup");
    for (const name of ["Sign up with Google", "Sign up with Microsoft"])
      await expect(main(page).getByRole("button", { name })).toHaveAttribute("aria-disabled", "true");
    await expect(main(page).getByText("OR", { exact: true })).toBeVisible();
    for (const name of ["Full name", "Email", "Password", "Confirm password"])
      await expect(main(page).getByLabel(name, { exact: true })).toBeVisible();
    await leads(main(page), [
      ["Terms of Service", "/terms"],
      ["Privacy Policy", "/privacy"],
      ["Login", "/login"],
    ]);
  },
);

test("forgot password: sent, and 'Try Again' leads back to the form", { tag: "@desk" }, async ({ page }) => {
  await open(page, "/forgot-password");
  await main(page).getByLabel("Email").fill("nobody-here@test.example");
  await main(page).getByRole("button", { name: "Send reset link" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Check Your Email" })).toBeVisible();
  await leads(main(page), [["Back to login", "/login"]]);
  await main(page).getByRole("button", { name: "Try Again" }).click();
  await expect(main(page).getByLabel("Email")).toBeVisible();
});

test("reset password: only an access token of type recovery opens the form", { tag: "@desk" }, async ({ page }) => {
  for (const query of ["", "?type=recovery", "?access_token=x&refresh_token=y&expires_at=1&type=signup"]) {
    await page.goto(`/reset-password${query}`);
    await expect(page.getByRole("heading", { level: 1, name: "Invalid Reset Link" }), query).toBeVisible();
    await leads(main(page), [
      ["Request a new link", "/forgot-password"],
      ["Back to login", "/login"],
    ]);
  }
});

test("about: mission, story, and a team that is still empty", { tag: "@desk" }, async ({ page }) => {
  await open(page, "/about-us");
  await expect(main(page).getByRole("heading", { level: 2 })).toHaveText(["Our Mission", "Our Story", "Our Team"]);
  await expect(main(page)).toContainText("The people behind AidBridge will introduce themselves here.");
  for (const kind of ["food assistance", "housing", "healthcare", "education", "business support", "emergency relief"])
    await expect(main(page)).toContainText(kind);
});

test(
  "how it works: three steps, three sections for nonprofits, questions, two links",
  { tag: "@desk" },
  async ({ page }) => {
    await open(page, "/how-it-works");
    await expect(page.getByRole("region", { name: "For Aid Seekers" }).getByRole("heading", { level: 3 })).toHaveText([
      "Submit a request",
      "Track the status",
      "Receive communication",
    ]);
    await expect(main(page).locator("dt")).toHaveText([
      "Request dashboard",
      "Budget control",
      "Automated communication",
    ]);
    const question = main(page).locator(".acc").getByRole("button").first();
    await question.click();
    await expect(question).toHaveAttribute("aria-expanded", "true");
    await leads(main(page), [
      ["Submit Aid Request", "/submit-request"],
      ["Nonprofit Login", "/nonprofit-login"],
    ]);
  },
);

test("for nonprofits: signup, donor communication, login", { tag: "@desk" }, async ({ page }) => {
  await open(page, "/for-nonprofits");
  await expect(main(page)).toContainText("For Nonprofits");
  await leads(main(page), [
    ["Sign up your nonprofit", "/nonprofit-signup"],
    ["Open donor communication", "/nonprofit-donor-communication"],
    ["Login", "/login"],
  ]);
});

test(
  "the FAQ: 3-5 business days, no edit but a withdrawal, a mail to support, two cards",
  { tag: "@desk" },
  async ({ page }) => {
    await open(page, "/faq");
    for (const [question, answer] of [
      ["How long until I hear something?", /3-5 business days.*5-7 days/],
      ["Can I edit my request after I send it?", /^No\..*withdraw it and send it again/],
      ["Does it cost anything?", /free for aid seekers.*donations/],
    ] as const) {
      await main(page).getByRole("button", { name: question }).click();
      await expect(main(page).getByRole("region", { name: question })).toHaveText(answer);
    }
    await expect(main(page).getByRole("link", { name: "Contact Support" })).toHaveAttribute("href", /^mailto:.+@/);
    for (const [name, to] of [
      ["How It Works", "/how-it-works"],
      ["Resource Library", "/resource-library"],
    ] as const)
      await expect(main(page).getByRole("link", { name })).toHaveAttribute("href", to);
  },
);

test("the blog: each post with title, excerpt, date, category and picture", { tag: "@desk" }, async ({ page }) => {
  await open(page, "/blog");
  const posts = main(page).getByRole("article");
  await expect(posts).toHaveCount(3);
  for (const post of await posts.all()) {
    await expect(post.getByRole("heading", { level: 2 })).toHaveText(/\w/);
    await expect(post.locator("time")).toHaveText(/^[A-Z][a-z]{2} \d{1,2}, \d{4}$/);
    await expect(post.locator(".tag")).toHaveText(/\w/);
    await expect(post.locator("svg").first()).toBeVisible();
    await expect(post.locator("p.soft")).toHaveText(/\w/);
  }
});

test("features: nine features, a card for each side, a link to pricing", { tag: "@desk" }, async ({ page }) => {
  await open(page, "/features");
  await expect(main(page).locator("dt")).toHaveText([
    "Multilingual support",
    "Saved drafts",
    "Document attachments",
    "Role-based dashboards",
    "Built-in messaging",
    "Cross-border connections",
    "Request tracking",
    "Notifications",
    "Transparent process",
  ]);
  await expect(main(page)).toContainText("Admin, Manager, Employee, Requester");
  await expect(main(page)).toContainText("English, French, Spanish or Haitian Creole");
  await expect(main(page)).toContainText("By e-mail, at every step, in plain words. By SMS too, if you want it.");
  for (const name of ["For Nonprofits", "For Aid Seekers"])
    await expect(main(page).getByRole("heading", { level: 2, name })).toBeVisible();
  await leads(main(page), [
    ["Sign Up Now", "/nonprofit-signup"],
    ["View Pricing", "/pricing"],
  ]);
});

test(
  "partners: five, each with place, services and website, and how to become one",
  { tag: "@desk" },
  async ({ page }) => {
    await open(page, "/partners");
    const partners = main(page).getByRole("article");
    await expect(partners).toHaveCount(5);
    for (const partner of await partners.all()) {
      await expect(partner.getByRole("heading", { level: 2 })).toHaveText(/\w/);
      expect(await partner.getByRole("listitem").count()).toBeGreaterThan(0);
      await expect(partner.getByRole("link")).toHaveAttribute("href", /^https:\/\//);
    }
    await expect(main(page).getByRole("heading", { name: "Become a Partner" })).toBeVisible();
  },
);

test("pricing: three plans with prices and features", { tag: "@desk" }, async ({ page }) => {
  await open(page, "/pricing");
  const plans: [string, RegExp, string[], string[]][] = [
    [
      "Free",
      /^\$0\s*\/ month$/,
      ["Available Now"],
      ["Basic request management", "Up to 50 requests/month", "E-mail notifications", "Single admin account"],
    ],
    [
      "Pro",
      /^\$29\s*\/ month$/,
      ["RECOMMENDED", "Coming Soon"],
      ["Unlimited requests", "Team of 5 users", "Custom categories", "Advanced analytics", "Priority support"],
    ],
    [
      "Organization",
      /^\$99\s*\/ month$/,
      ["Coming Soon"],
      ["Unlimited team", "Multi-department", "White-label", "API access", "Dedicated account manager"],
    ],
  ];
  for (const [name, price, marks, holds] of plans) {
    const plan = main(page)
      .getByRole("article")
      .filter({ has: page.getByRole("heading", { level: 2, name, exact: true }) });
    await expect(plan.locator(".amount")).toHaveText(price);
    for (const mark of marks) await expect(plan.getByText(mark, { exact: true })).toBeVisible();
    await expect(plan.getByRole("listitem")).toHaveText(holds);
  }
  await main(page).getByRole("button", { name: "Make a Donation" }).click();
  await expect(page.getByRole("dialog", { name: "Make a Donation" })).toBeVisible();
});

test(
  "the resource library: three coming-soon sections with inactive buttons, the available one, the contact",
  { tag: "@desk" },
  async ({ page }) => {
    await open(page, "/resource-library");
    for (const name of ["Featured Resources", "Guides", "Video Tutorials", "Best Practices"])
      await expect(main(page).getByRole("heading", { level: 2, name })).toBeVisible();
    const buttons = main(page).getByRole("button");
    await expect(buttons).toHaveText(Array.from({ length: 9 }, () => "Coming Soon"));
    for (const button of await buttons.all()) {
      await expect(button).toHaveAttribute("aria-disabled", "true");
      await button.click({ force: true });
    }
    await expect(page).toHaveURL("/resource-library");
    await expect(main(page).getByRole("link", { name: /@/ })).toHaveAttribute("href", /^mailto:/);
  },
);

test("a page that waits for the session shows the full-screen loading view", async ({ page, people, accessible }) => {
  await people.signIn(page, await people.create("requester"));
  await expect(page).toHaveURL("/select-nonprofit");
  let answer = () => {};
  const held = new Promise<void>((go) => (answer = go));
  await page.route("**/rest/v1/rpc/me", async (route) => {
    await held;
    await route.continue();
  });
  for (const path of ["/login", "/profile"]) {
    await page.goto(path);
    await expect(page.getByRole("heading", { level: 1, name: "Loading, please wait..." })).toBeVisible();
  }
  await accessible(page);
  answer();
  await expect(page.getByRole("heading", { level: 1, name: "My Profile" })).toBeVisible();
});
