/** Every public page once: its heading, its title, axe in both themes; the newsletter; the theme's memory. */
import { randomUUID } from "node:crypto";
import { mailTo } from "./fixtures/api";
import { expect, test } from "./fixtures/test";

/** `lands` is where the address leads, when not to itself. */
interface PublicRoute {
  path: string;
  h1: string;
  title: string;
  lands?: string;
}

const ROUTES: readonly PublicRoute[] = [
  {
    path: "/",
    h1: "Ask for help once. Up to three nonprofits can answer.",
    title: "Ask for help once",
  },
  { path: "/login", h1: "Welcome Back", title: "Login" },
  { path: "/nonprofit-login", h1: "Welcome Back", title: "Login" },
  { path: "/signup", h1: "Create your account", title: "Sign up" },
  { path: "/signup?role=requester", h1: "Sign Up as Requester", title: "Sign Up as Requester" },
  { path: "/signup?role=nonprofit", h1: "Sign Up as Nonprofit", title: "Sign Up as Nonprofit" },
  { path: "/nonprofit-signup", h1: "Sign up your nonprofit", title: "Nonprofit signup" },
  { path: "/forgot-password", h1: "Reset your password", title: "Forgot password" },
  { path: "/reset-password", h1: "Invalid Reset Link", title: "Invalid Reset Link" },
  { path: "/about-us", h1: "Help exists. The way to it is what is missing.", title: "About us" },
  { path: "/how-it-works", h1: "From your words to an answer, in three steps", title: "How It Works" },
  { path: "/for-nonprofits", h1: "One list for every request. One answer for every person.", title: "For Nonprofits" },
  { path: "/faq", h1: "Questions, answered plainly", title: "FAQ" },
  { path: "/blog", h1: "News from the bridge", title: "Blog" },
  {
    path: "/blog/1",
    h1: "How to write a request that gets a quick answer",
    title: "How to write a request that gets a quick answer",
  },
  { path: "/blog/no-such-post", h1: "This post is not here", title: "This post is not here" },
  { path: "/features", h1: "Everything between a request and its answer", title: "Features" },
  { path: "/partners", h1: "The people on the other side", title: "Partners" },
  { path: "/pricing", h1: "Free for aid seekers. Free for nonprofits, for now.", title: "Pricing" },
  {
    path: "/resource-library",
    h1: "Things that help you ask, and help you answer",
    title: "Resource Library",
  },
  { path: "/privacy", h1: "Privacy Policy", title: "Privacy Policy" },
  { path: "/terms", h1: "Terms of Service", title: "Terms of Service" },
  { path: "/accessibility", h1: "Accessibility", title: "Accessibility" },
  { path: "/request-status", h1: "Request Status", title: "Request Status" },
  { path: "/request-submission", h1: "Choose type of assistance", title: "Choose type of assistance" },
  { path: "/submit-request", h1: "Choose type of assistance", title: "Choose type of assistance" },
  { path: "/nonprofit/np-001", h1: "Harbor Relief Fund", title: "Harbor Relief Fund" },
  { path: "/nonprofit/np-none", h1: "This nonprofit is not here", title: "Nonprofit" },
  { path: "/404", h1: "Page not found", title: "Page not found" },
  { path: "/no/such/page", h1: "Page not found", title: "Page not found", lands: "/404" },
];

for (const { path, h1, title, lands } of ROUTES) {
  test(`${path} has its heading and its title, and axe finds nothing serious`, async ({ page, accessible }) => {
    await page.goto(path);
    await expect(page.getByRole("heading", { level: 1, name: h1, exact: true })).toBeVisible();
    await expect(page.getByRole("heading", { level: 1 })).toHaveCount(1);
    await expect(page).toHaveTitle(`${title} · AidBridge`);
    await expect(page).toHaveURL(lands ?? path);
    await accessible(page);
  });
}

test("an unknown URL offers two links home", async ({ page }) => {
  for (const name of ["Return to Home", "Go Back"]) {
    await page.goto("/no/such/page");
    await expect(page.getByText("The page you're looking for doesn't exist or has been moved.")).toBeVisible();
    await page.getByRole("link", { name }).click();
    await expect(page).toHaveURL("/");
  }
});

test("the FAQ has nine questions and opens one at a time", async ({ page, accessible }) => {
  await page.goto("/faq");
  const questions = page.locator(".acc").getByRole("button");
  await expect(questions).toHaveCount(9);
  const open = page.locator(".acc").getByRole("button", { expanded: true });
  await expect(open).toHaveCount(0);
  for (const index of [0, 4, 8]) {
    await questions.nth(index).click();
    await expect(questions.nth(index)).toHaveAttribute("aria-expanded", "true");
    await expect(open).toHaveCount(1);
  }
  await accessible(page, page.locator(".acc"));
  await questions.nth(8).click();
  await expect(open).toHaveCount(0);
});

test("each of the three posts opens from the blog", async ({ page }) => {
  await page.goto("/blog");
  const posts = page.getByRole("main").locator('a[href^="/blog/"]');
  await expect(posts.first()).toBeVisible();
  const addresses = new Set(await posts.evaluateAll((links) => links.map((link) => link.getAttribute("href") ?? "")));
  expect([...addresses].toSorted()).toEqual(["/blog/1", "/blog/2", "/blog/3"]);
  for (const address of addresses) {
    await page.goto(address);
    // the loading view has a heading, too
    const heading = page.getByRole("article").getByRole("heading", { level: 1 });
    await expect(heading).toBeVisible();
    await expect(page).toHaveTitle(`${await heading.innerText()} · AidBridge`);
  }
});

test("a newsletter subscription is confirmed by the link in its mail", async ({ page, request, accessible }) => {
  const email = `reader-${randomUUID()}@test.example`;
  await page.goto("/blog");
  await page.getByRole("button", { name: "Subscribe" }).click();
  await expect(page.getByText("Please enter a valid email address").first()).toBeVisible();
  await accessible(page, page.getByRole("main").locator("form"));
  await page.getByRole("main").getByLabel("Email").fill(email);
  await page.getByRole("button", { name: "Subscribe" }).click();
  await expect(page.getByText("The letter comes only after you opened it.")).toBeVisible();
  await accessible(page, page.getByRole("main"));

  const { text } = await mailTo(request, email, /confirm|newsletter/i);
  const link = /\/newsletter\?token=[\w-]+/.exec(text)?.[0];
  expect(link, text).toBeTruthy();
  await page.goto(link as string);
  await expect(page.getByRole("heading", { level: 1, name: "You get our next letter" })).toBeVisible();
  await accessible(page);

  await page.goto("/newsletter?token=forged");
  await expect(page.getByRole("heading", { level: 1, name: "This link no longer works" })).toBeVisible();
  await accessible(page, page.getByRole("main"));
});

test("the chosen theme is remembered", async ({ page }) => {
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme ?? "system");
  const button = (name: string) => page.getByRole("button", { name: `Theme: ${name}` });
  await page.goto("/");
  let before = "System";
  for (const choice of ["Dark", "Light", "System"]) {
    await button(before).click();
    await page.getByRole("menuitemradio", { name: choice }).click();
    await expect(button(choice)).toBeVisible();
    await expect.poll(theme).toBe(choice.toLowerCase());
    await page.goto("/about-us");
    await expect(button(choice)).toBeVisible();
    await expect.poll(theme).toBe(choice.toLowerCase());
    before = choice;
  }
});
