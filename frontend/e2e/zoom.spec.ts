/**
 * A desk's window at 400 % (320 × 256 CSS pixels, WCAG 1.4.10): nothing is cut, nothing scrolls sideways, and whatever the keyboard reaches
 * can be seen. The screens are those of a request's way: asking, being asked, deciding, giving.
 */
import { randomUUID } from "node:crypto";
import type { APIRequestContext, Page } from "@playwright/test";
import { apiKey, DEMO_PASSWORD, mailTo, rpc, tokenOf } from "./fixtures/api";
import { REQUESTER } from "./fixtures/pages";
import { answersOf, ask, found } from "./fixtures/staff";
import { expect, test } from "./fixtures/test";
import { DESCRIPTION, fillContact, fillPersonal } from "./fixtures/wizard";

test.use({ viewport: { width: 320, height: 256 } });
test.describe.configure({ timeout: 900_000 });

/** Each screen tells all that is wrong with it. */
const softly = expect.configure({ soft: true });

const button = (page: Page, name: string | RegExp) => page.getByRole("main").getByRole("button", { name });

/** Words that are wider than what shows them, and controls beyond the edges of the page. */
const cut = (page: Page) =>
  page.evaluate(() => {
    const found: string[] = [];
    const { clientWidth, scrollWidth } = document.documentElement;
    if (scrollWidth > clientWidth) found.push(`the page is ${scrollWidth} wide`);
    for (const element of document.querySelectorAll<HTMLElement>("body *")) {
      if (!element.checkVisibility({ visibilityProperty: true }) || element.closest("svg, [aria-hidden=true]"))
        continue;
      const box = element.getBoundingClientRect();
      // for screen readers alone
      if (box.width <= 1 || box.height <= 1) continue;
      const style = getComputedStyle(element);
      const named = `${element.tagName.toLowerCase()}.${element.className} '${(element.textContent ?? "").slice(0, 40)}'`;
      const words = [...element.childNodes].some(
        (node) => node.nodeType === Node.TEXT_NODE && /\S/.test(node.textContent ?? ""),
      );
      const hides = (overflow: string) => overflow === "hidden" || overflow === "clip";
      if (words && hides(style.overflowX) && element.scrollWidth > element.clientWidth + 1)
        found.push(`${named} is cut`);
      if (words && hides(style.overflowY) && element.scrollHeight > element.clientHeight + 2)
        found.push(`${named} is cut below`);
      const scrolls = element.parentElement?.closest("[data-scrolls], .table-scroll, [role=tablist]") ?? null;
      if (words && !scrolls && (box.left < -1 || box.right > clientWidth + 1)) found.push(`${named} lies outside`);
    }
    return found;
  });

/** What has the focus, and whether at least a corner of it is to be seen under nothing else. */
const focused = (page: Page) =>
  page.evaluate(() => {
    const element = document.activeElement as HTMLElement | null;
    if (!element || element === document.body) return null;
    // the visible thing of a hidden input is its label
    const shown = element.matches("input[type=checkbox], input[type=radio], input[type=file]")
      ? (element.closest("label") ?? element)
      : element;
    const box = shown.getBoundingClientRect();
    const points: [number, number][] = [];
    for (const x of [0.05, 0.25, 0.5, 0.75, 0.95])
      for (const y of [0.05, 0.25, 0.5, 0.75, 0.95]) points.push([box.left + box.width * x, box.top + box.height * y]);
    const seen = points.filter(([x, y]) => {
      if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) return false;
      const top = document.elementFromPoint(x, y);
      return top !== null && (shown.contains(top) || top.contains(shown) || top.closest("label") === shown);
    });
    element.dataset.reached ??= String(document.querySelectorAll("[data-reached]").length + 1);
    const named = (which: Element | null) =>
      which instanceof HTMLElement
        ? `${which.tagName.toLowerCase()} '${(which.ariaLabel ?? which.innerText).trim().slice(0, 50) || which.id}'`
        : "nothing";
    const over = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    return {
      nth: element.dataset.reached,
      hidden:
        seen.length > 0
          ? null
          : `${named(element)} has the focus at ${Math.round(box.top)} px, hidden by ${named(over)} (scrolled by ${scrollY} px)`,
    };
  });

/** Walks through the page, or the open dialog, with the Tab key: how many controls it reaches, and which of them cannot be seen. */
async function walk(page: Page) {
  await page.evaluate(() => {
    for (const element of document.querySelectorAll<HTMLElement>("[data-reached]")) delete element.dataset.reached;
  });
  const met = new Set<string>();
  const hidden: string[] = [];
  for (let presses = 0; presses < 150; presses += 1) {
    await page.keyboard.press("Tab");
    const at = await focused(page);
    // after the last control the browser's own have the focus
    if (at === null || met.has(at.nth)) break;
    met.add(at.nth);
    if (at.hidden) hidden.push(at.hidden);
  }
  return { reached: met.size, hidden };
}

async function look(page: Page, screen: string, least = 3) {
  await expect(page.locator("main span.sk, main [aria-busy=true]"), screen).toHaveCount(0);
  // what was told goes after five seconds
  await expect(page.locator(".toast"), screen).toHaveCount(0);
  await softly.poll(() => cut(page), { message: `${screen}: what is cut` }).toEqual([]);
  // what stays in place while one reads leaves most of the window to the page
  const covered = await page.evaluate(() => {
    let rows = 0;
    const main = document.querySelector("main");
    for (let y = 2; y < innerHeight; y += 4) {
      const top = document.elementFromPoint(innerWidth / 2, y);
      for (let at: Element | null = top; at && !main?.contains(at); at = at.parentElement)
        if (["fixed", "sticky"].includes(getComputedStyle(at).position)) {
          rows += 4;
          break;
        }
    }
    return rows / innerHeight;
  });
  if (!(await page.locator("[role=dialog], [role=alertdialog]").count()))
    softly(covered, `${screen}: bars cover ${Math.round(covered * 100)} % of the window`).toBeLessThan(0.5);
  // A page that renders anew in the middle takes the focus back to its beginning, and one that is still moving may hide
  // what has it: what matters is a page at rest.
  await softly(async () => {
    const { reached, hidden } = await walk(page);
    expect(hidden, `${screen}: what has the focus and is hidden`).toEqual([]);
    expect(reached, `${screen}: what the keyboard reaches`).toBeGreaterThanOrEqual(least);
  }).toPass({ timeout: 60_000 });
}

test("the request form: every question, its errors, the confirmation and the look-up", async ({ page }) => {
  await page.goto("/");
  await look(page, "the first page", 8);
  await page.goto("/submit-request");
  await look(page, "what kind of help");
  await button(page, /^Food Assistance/).click();
  await look(page, "which nonprofits");
  await page.getByRole("group", { name: "Nonprofits" }).getByRole("checkbox").first().check();
  await button(page, "Continue").click();
  await expect(page.getByLabel("First name")).toBeVisible();
  await button(page, "Next").click();
  await expect(page.getByText("First name is required").first()).toBeVisible();
  await look(page, "who is asking, with mistakes");
  await fillPersonal(page, `zoom-${randomUUID()}@test.example`);
  await button(page, "Next").click();
  await look(page, "where they live");
  await fillContact(page);
  await button(page, "Continue").click();
  await look(page, "what they need");
  await page.getByLabel("Details").fill(DESCRIPTION);
  await page
    .locator("input[type=file]")
    .first()
    .setInputFiles({
      name: "a letter of the landlord whose name is longer than the window is wide.pdf",
      mimeType: "application/pdf",
      buffer: Buffer.from("%PDF-1.4 letter"),
    });
  await expect(page.getByText("a letter of the landlord").first()).toBeVisible();
  await look(page, "what they need, with a paper");
  await button(page, "Continue").click();
  await look(page, "the answers once more");
  await page.getByRole("checkbox", { name: /You may contact me/ }).check();
  await button(page, "Submit Request").click();
  const number = await page.getByTestId("request-number").textContent();
  await look(page, "it is sent");
  await page.goto(`/request-status?id=${number}`);
  await expect(page.getByRole("heading", { level: 2, name: number ?? "" })).toBeVisible();
  await look(page, "the look-up");
  await page.goto("/submit-request?form=single");
  await look(page, "the form on one page", 8);
});

test("a guest's request by mailed code: the code, the question, withdrawing it", async ({ page, request }) => {
  const email = `zoom-${randomUUID()}@test.example`;
  const { id, request_number: number } = await rpc<{ id: string; request_number: string }>(
    request,
    null,
    "submit_request",
    {
      input: { ...answersOf({ email }, [{ id: "np-001" }]), key: randomUUID() },
    },
  );
  const staff = await tokenOf(request, "manager@demo.aidbridge.test");
  await rpc(request, staff, "request_more_info", {
    request_id: id,
    nonprofit_id: "np-001",
    notes: "Please send the letter.",
  });
  await page.goto(`/open-request?number=${number}`);
  await look(page, "asking for a code");
  await page.getByRole("button", { name: "Send me a code" }).click();
  await page.getByLabel("Code").fill("000000");
  await page.getByRole("button", { name: "Open my request" }).click();
  await expect(page.getByText(/This code is not right/).first()).toBeVisible();
  await look(page, "a wrong code");
  const { subject } = await mailTo(request, email, new RegExp(`opens ${number}$`));
  await page.getByLabel("Code").fill(/\b\d{6}\b/.exec(subject)?.[0] ?? "");
  await page.getByRole("button", { name: "Open my request" }).click();
  await expect(page.getByText("Please send the letter.").first()).toBeVisible();
  await look(page, "the request with a question");
  await button(page, "Correct my contact data").click();
  await look(page, "correcting contact data");
  await button(page, "Cancel Request").click();
  await expect(page.getByRole("alertdialog")).toBeVisible();
  await look(page, "taking it back", 2);
});

test("signing in and up, and the requester's pages", async ({ page, people }) => {
  for (const path of ["/login", "/signup", "/signup?role=requester", "/forgot-password"]) {
    await page.goto(path);
    await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
    await look(page, path);
  }
  await people.signIn(page, { email: "requester@demo.aidbridge.test", password: DEMO_PASSWORD });
  await page.waitForURL(/requester-dashboard/);
  for (const path of REQUESTER) {
    await page.goto(path);
    await expect(page.getByRole("heading", { level: 1 }).first()).toBeVisible();
    await look(page, path);
  }
  await page
    .getByRole("button", { name: /^Menu|^Open menu/ })
    .first()
    .click();
  await expect(page.getByRole("dialog")).toBeVisible();
  await look(page, "the menu");
});

test("the pages of staff, and each decision's dialog", async ({ page, people, request }) => {
  const { organization, admin } = await found(request, people);
  const sent = await ask(request, people, [organization]);
  await people.signIn(page, admin);
  await page.waitForURL(/nonprofit-dashboard/);
  for (const path of [
    "/nonprofit-dashboard",
    "/nonprofit-requests",
    `/nonprofit-request/${sent.id}`,
    "/nonprofit-budget",
    "/nonprofit-team",
    "/nonprofit-donor-communication",
  ]) {
    await page.goto(path);
    await expect(page.getByRole("heading", { level: 1 }).first()).toBeVisible();
    await look(page, path);
  }
  for (const decide of ["approve", "deny", "info"]) {
    await page.goto(`/nonprofit-request/${sent.id}?decide=${decide}`);
    await expect(page.getByRole("dialog"), decide).toBeVisible();
    await look(page, `deciding: ${decide}`);
  }
});

test("the pages of donors, and a pledge", async ({ page, people }) => {
  await people.signIn(page, { email: "donor@demo.aidbridge.test", password: DEMO_PASSWORD });
  await page.waitForURL(/donor-dashboard/);
  for (const path of ["/donor-dashboard", "/donor-dashboard?tab=donations"]) {
    await page.goto(path);
    await expect(page.getByRole("heading", { level: 1 }).first()).toBeVisible();
    await look(page, path);
  }
  await page.goto("/donor-dashboard?donate");
  await expect(page.getByRole("dialog")).toBeVisible();
  await look(page, "a pledge");
});

const categoriesOf = async (request: APIRequestContext, id: string) => {
  const answer = await request.get(`/rest/v1/categories?select=id&nonprofit_id=eq.${id}`, {
    headers: { apikey: await apiKey(request) },
  });
  return (await answer.json()) as { id: string }[];
};

/** A name without a space, as long as it may be. */
const long = (letter: string) => letter.toUpperCase() + letter.repeat(94);

test("long words in names, web addresses and texts push no page sideways", async ({ page, people, request }) => {
  const admin = await people.create("nonprofit", long("a"));
  const mission = `Everything is at https://example.org/${"together".repeat(8)} for you.`;
  const organization = await rpc<{ id: string; name: string }>(request, admin.accessToken, "create_organization", {
    input: {
      name: long("o"),
      legal_status: "501(c)(3)",
      registration_number: "01-0555001",
      employee_count: "4",
      mission,
      categories: [{ name: long("c"), description: long("d") }],
    },
  });
  const categories = await categoriesOf(request, organization.id);
  const person = await people.create("requester", long("r"));
  const asked = answersOf(person, [organization], { category: categories[0]?.id });
  const { id } = await rpc<{ id: string }>(request, person.accessToken, "submit_request", {
    input: { ...asked, first_name: long("f"), last_name: long("l"), description: long("w"), key: randomUUID() },
  });
  await rpc(request, person.accessToken, "select_nonprofit", { nonprofit_id: organization.id });
  const gift = { nonprofit_id: organization.id, amount: "75", email: "gift@mail.example", name: long("g") };
  await rpc(request, null, "pledge_donation", { input: { ...gift, key: randomUUID() } });
  const allocation = { nonprofit_id: organization.id, category: long("c"), amount: 100 };
  await rpc(request, admin.accessToken, "set_budget_allocation", allocation);

  const fits = async (...paths: string[]) => {
    for (const path of paths) {
      await page.goto(path);
      await expect(page.getByRole("heading", { level: 1 }).first()).toBeVisible();
      await expect(page.locator("main span.sk, main [aria-busy=true]"), path).toHaveCount(0);
      for (const width of [1280, 390, 320]) {
        await page.setViewportSize({ width, height: 844 });
        // a name in a bar may end in dots
        const wider = () =>
          page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        await softly.poll(wider, { message: `${path} at ${width}`, timeout: 5000 }).toBeLessThanOrEqual(0);
      }
    }
  };
  await fits(`/nonprofit/${organization.id}`);
  await people.signIn(page, admin);
  const tabs = ["?tab=donations", "?allocations="].map((tab) => `/nonprofit-budget${tab}`);
  await fits("/nonprofit-dashboard", "/nonprofit-requests", `/nonprofit-request/${id}`, "/nonprofit-budget", ...tabs);
  await fits("/nonprofit-team", "/nonprofit-settings", "/categories-management");
  await page.evaluate(() => localStorage.removeItem("aidbridge-auth"));
  await people.signIn(page, person);
  await fits("/requester-dashboard", "/my-requests", `/request/${id}`, "/select-nonprofit", "/profile");
});
