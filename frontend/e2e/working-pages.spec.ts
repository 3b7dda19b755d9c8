/**
 * What the specification says of the working pages (its section 2: requesters, nonprofits, donors, profile, notifications,
 * the shell) that the journeys pass by: figures, filters, tabs, columns, limits. docs/spec-coverage.md names the line of each.
 */
import { randomUUID } from "node:crypto";
import type { Page } from "@playwright/test";
import { rpc } from "./fixtures/api";
import { ask, found, join, submitAs } from "./fixtures/staff";
import { figure, isPhone } from "./fixtures/staff-pages";
import { expect, test } from "./fixtures/test";

const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { level: 1, name });
const tabs = (page: Page, list: string) => page.getByRole("tablist", { name: list }).getByRole("tab");

const optionsOf = (page: Page, label: string) => page.getByLabel(label).locator("option");

test("the requester's dashboard: four totals, two filters, five of six requests, links", async ({
  page,
  people,
  request,
  accessible,
}) => {
  const { organization, admin } = await found(request, people);
  const second = await found(request, people);
  const person = await people.create("requester", "Marie-Thérèse Désir");
  await rpc(request, person.accessToken, "select_nonprofit", { nonprofit_id: organization.id });
  await people.signIn(page, person);
  await expect(page).toHaveURL("/requester-dashboard");
  await expect(page.getByText("You haven't submitted any requests yet")).toBeVisible();

  await rpc(request, admin.accessToken, "record_donation", {
    nonprofit_id: organization.id,
    donor_name: "Daniel Whitcombe",
    amount: 5000,
    key: randomUUID(),
  });
  const both = [organization, second.organization];
  const approved: string[] = [];
  for (const amount of ["1,200.50", "300"]) approved.push((await submitAs(request, person, both, { amount })).id);
  const denied = await submitAs(request, person, [organization], { amount: "", category: "cat-003" });
  for (let more = 0; more < 3; more += 1)
    await submitAs(request, person, [organization], { amount: "", category: "cat-002" });
  for (const [index, id] of approved.entries()) {
    await rpc(request, admin.accessToken, "approve_request", {
      request_id: id,
      nonprofit_id: organization.id,
      amount: index === 0 ? 1200.5 : 300,
    });
  }
  await rpc(request, admin.accessToken, "deny_request", {
    request_id: denied.id,
    nonprofit_id: organization.id,
    reason_code: "funding_limit",
    reason: "The fund is empty until January.",
  });
  await page.reload();
  await expect(figure(page, "Total Aid Received")).toHaveText("$1,500.50");
  await expect(figure(page, "Total Requests")).toHaveText("6");
  await expect(figure(page, "Requests in Process")).toHaveText("3");
  await expect(figure(page, "Nonprofits Connected")).toHaveText("2");

  const recent = page.getByRole("list", { name: "Recent Requests" }).getByRole("listitem");
  await expect(recent).toHaveCount(5);
  await expect(recent.first()).toContainText("View Details");
  await expect(optionsOf(page, "Status")).toHaveText(["All", "Pending", "Processing", "Approved", "Declined"]);
  await expect(optionsOf(page, "Category")).toHaveText([
    "All categories",
    "Food Assistance",
    "Rent Support",
    "Medical Aid",
    "School Tuition",
    "Small Business Help",
  ]);
  await page.getByLabel("Status").selectOption("Approved");
  await expect(recent).toHaveCount(2);
  await page.getByLabel("Category").selectOption("School Tuition");
  await expect(page.getByText("Try changing your filters")).toBeVisible();
  await accessible(page, page.getByRole("main"));

  await expect(page.getByRole("link", { name: "View All" })).toHaveAttribute("href", "/my-requests");
  await expect(page.getByRole("link", { name: "New Request" }).filter({ visible: true }).first()).toHaveAttribute(
    "href",
    "/submit-request",
  );
  await page.goto("/requester-dashboard?status=approved");
  await recent.first().getByRole("link").click();
  await expect(page).toHaveURL(/\/request-details\//);
});

test("My Requests: empty state, two-month date picker, 'LLL dd, y', a button for a new one", async ({
  page,
  people,
  request,
}) => {
  const person = await people.create("requester");
  await rpc(request, person.accessToken, "select_nonprofit", { nonprofit_id: "np-001" });
  await people.signIn(page, person);
  await page.goto("/my-requests");
  await expect(page.getByRole("heading", { name: "No requests found" })).toBeVisible();
  await expect(page.getByText("You haven't submitted any assistance requests yet.")).toBeVisible();
  await expect(page.getByRole("main").getByRole("link", { name: "New Request" }).first()).toHaveAttribute(
    "href",
    "/submit-request",
  );
  await page.goto("/my-requests?from=2026-09-05&to=2026-10-07");
  await expect(page.getByLabel("Dates")).toHaveText("Sep 05, 2026 - Oct 07, 2026");
  await page.getByLabel("Dates").click();
  await expect(page.getByRole("dialog").getByRole("grid")).toHaveCount(2);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Clear Filters" }).first().click();
  await expect(page).toHaveURL("/my-requests");
});

test("Saved Drafts while loading", async ({ page, people, request, accessible }) => {
  const person = await people.create("requester");
  await rpc(request, person.accessToken, "select_nonprofit", { nonprofit_id: "np-001" });
  await people.signIn(page, person);
  await page.route("**/rest/v1/requests**", () => undefined);
  await page.goto("/request-drafts");
  await expect(page.getByText("Loading your drafts...").first()).toBeVisible();
  await accessible(page, page.getByRole("main"));
});

test("a request's page: back, timeline, details, recipients, all requests; the URL of an unknown number", async ({
  page,
  people,
  request,
}) => {
  const { organization } = await found(request, people);
  const { number, person } = await ask(request, people, [organization]);
  await rpc(request, person.accessToken, "select_nonprofit", { nonprofit_id: organization.id });
  await people.signIn(page, person);
  await page.goto(`/request/${number}`);
  await expect(heading(page, "Food Assistance")).toBeVisible();
  await expect(page.getByRole("main").getByRole("link", { name: "Back" })).toHaveAttribute("href", "/my-requests");
  await expect(page.getByRole("list", { name: "Timeline" }).getByRole("listitem")).toHaveText([
    /^Request Submitted \(done\)/,
    /^Under Review/,
    /^Decision/,
  ]);
  await expect(page.getByRole("region", { name: "Submitted To" })).toContainText(organization.name);
  await expect(page.getByRole("link", { name: "All Requests" })).toHaveAttribute("href", "/my-requests");
  await expect(page.getByRole("button", { name: "Cancel Request" })).toBeVisible();
  if (!isPhone(page)) {
    const crumbs = page.getByRole("navigation", { name: "Breadcrumb" }).getByRole("listitem");
    await expect(crumbs).toHaveText(["Requester", "My Requests", number]);
  }
  await page.goto("/request-details/REQ-000");
  await expect(heading(page, "Request Not Found")).toBeVisible();
  await expect(page.getByRole("link", { name: "Return to Dashboard" })).toHaveAttribute("href", "/requester-dashboard");
});

test("the picker and the role page", async ({ page, people }) => {
  await people.signIn(page, await people.create("requester"));
  await expect(heading(page, "Select a Nonprofit")).toBeVisible();
  await page.getByLabel("Search nonprofits").fill("Lakeside");
  await expect(page.getByRole("main").getByRole("listitem")).toHaveCount(1);
  await expect(optionsOf(page, "Field of work")).toHaveText([
    "All fields",
    "Healthcare",
    "Education",
    "Environment",
    "Food & Nutrition",
    "Housing",
    "Technology",
    "Emergency Relief",
  ]);
  await page.goto("/role-selection");
  await expect(page.getByRole("main").getByRole("button")).toHaveText([/^Requester/, /^Donor/, /^Nonprofit/]);
  await page
    .getByRole("main")
    .getByRole("button", { name: /^Donor/ })
    .click();
  await expect(page).toHaveURL("/donor-dashboard");
});

test("the nonprofit's dashboard: role, tabs by role, five of six requests, at most three activities", async ({
  page,
  people,
  request,
  browser,
  accessible,
}) => {
  const { organization, admin } = await found(request, people);
  const employee = await join(request, people, admin, organization, "employee");
  const person = await people.create("requester", "Marie-Thérèse Désir");
  for (let sent = 0; sent < 6; sent += 1) await submitAs(request, person, [organization]);
  await people.signIn(page, admin);
  await expect(heading(page, "Welcome, Amélie")).toBeVisible();
  await expect(page.getByText(`Admin at ${organization.name}`)).toBeVisible();
  if (!isPhone(page)) {
    await expect(page.getByRole("main").getByRole("link", { name: "Team Management" })).toHaveAttribute(
      "href",
      "/team-management",
    );
    await expect(page.getByRole("navigation", { name: "Breadcrumb" }).getByRole("listitem")).toHaveText([
      organization.name,
      "Dashboard",
    ]);
  }
  await expect(tabs(page, "Dashboard")).toHaveText([
    "Overview",
    /^Aid Requests/,
    "Team Members",
    "Budget",
    "Categories",
  ]);
  for (const label of ["Pending", "Approved", "Declined"])
    await expect(figure(page, label)).toHaveText(label === "Pending" ? "6" : "0");
  await expect(figure(page, "Budget Used")).toHaveText("0%");
  await expect(page.getByRole("region", { name: "Recent Activity" }).getByRole("listitem")).toHaveCount(3);
  await expect(page.getByRole("region", { name: "Budget Summary" })).toBeVisible();

  await page.getByRole("tab", { name: "Aid Requests" }).click();
  await expect(page.getByRole("table").locator("tbody tr")).toHaveCount(5);
  await accessible(page, page.getByRole("tabpanel"));
  await expect(page.getByRole("table").locator("th")).toHaveText([
    "Request ID",
    "Category",
    "Date",
    "Status",
    "Action",
  ]);
  await page.getByRole("tab", { name: "Team Members" }).click();
  await expect(page.getByRole("table")).toContainText("Samuel Brightwater");
  await accessible(page, page.getByRole("tabpanel"));
  await page.getByRole("tab", { name: "Budget" }).click();
  const budget = page.getByRole("tabpanel");
  for (const label of ["Total", "Used", "Remaining"])
    await expect(budget.getByText(label, { exact: true })).toBeVisible();
  await expect(budget.getByRole("img", { name: "0%" })).toBeVisible();
  await accessible(page, budget);
  await page.getByRole("tab", { name: "Categories" }).click();
  await expect(page.getByRole("tabpanel").getByRole("listitem")).toContainText([
    /Food Assistance.*Active.*6 requests/s,
  ]);

  const context = await browser.newContext({ viewport: page.viewportSize() });
  const theirs = await context.newPage();
  await people.signIn(theirs, employee);
  await expect(heading(theirs, "Welcome, Samuel")).toBeVisible();
  await expect(tabs(theirs, "Dashboard")).toHaveText(["Overview", /^Aid Requests/]);
  await expect(theirs.getByRole("region", { name: "Help Categories" })).toContainText("Food Assistance");
  await expect(theirs.getByRole("region", { name: "Budget Summary" })).toHaveCount(0);
  await accessible(theirs, theirs.getByRole("main"));
  await context.close();
});

test("tabs and columns of the other staff pages", async ({ page, people, request }) => {
  const { organization, admin } = await found(request, people);
  await ask(request, people, [organization]);
  await people.signIn(page, admin);
  await page.goto("/nonprofit-requests");
  await expect(page.getByRole("tab")).toHaveText([/^All/, /^Pending/, /^Processing/, /^Approved/, /^Declined/]);
  await expect(page.getByRole("table").locator("th")).toHaveText([
    "Request ID",
    "Category",
    "Date",
    "Amount",
    "Status",
    "Action",
  ]);
  await page.goto("/nonprofit-settings");
  await expect(heading(page, "Organization Settings")).toBeVisible();
  await expect(page.getByRole("tab")).toHaveText(["General", "Branding", "Help Categories"]);
  await page.goto("/nonprofit-donor-communication");
  await expect(heading(page, "Donor Communications")).toBeVisible();
  await expect(page.getByRole("tab")).toHaveText(["Compose Message", /^Inbox/, /^Sent/]);
  for (const [path, name] of [
    ["/nonprofit-budget", "Budget Management"],
    ["/budget", "Budget Management"],
    ["/nonprofit-team", "Team Members"],
    ["/team-management", "Team Management"],
    ["/categories-management", "Manage Categories"],
  ] as const) {
    await page.goto(path);
    await expect(heading(page, name)).toBeVisible();
  }
});

test("notifications: three tabs with counts, read one, read all, delete, relative time", async ({
  page,
  people,
  request,
  accessible,
}) => {
  const { organization } = await found(request, people);
  const person = await people.create("requester", "Marie-Thérèse Désir");
  await rpc(request, person.accessToken, "select_nonprofit", { nonprofit_id: organization.id });
  const numbers: string[] = [];
  for (let sent = 0; sent < 3; sent += 1)
    numbers.push((await submitAs(request, person, [organization])).request_number);
  await people.signIn(page, person);
  await page.goto("/notifications");
  const items = page.getByRole("tabpanel").getByRole("listitem");
  const counts = (all: number, unread: number, read: number) =>
    expect(page.getByRole("tab")).toHaveText([
      new RegExp(`^All\\s*${all}$`),
      new RegExp(`^Unread\\s*${unread}$`),
      new RegExp(`^Read\\s*${read}$`),
    ]);
  await counts(3, 3, 0);
  await expect(items.first()).toContainText("Request Submitted");
  await expect(items.first().locator("time")).toHaveText(/^(Just now|\d+ minutes? ago)$/);
  await expect(page.getByRole("link", { name: "Notifications, 3 unread" })).toBeVisible();
  await accessible(page, page.getByRole("main"));

  const menu = items.first().getByRole("button", { name: /^More about/ });
  await menu.click();
  await expect(page.getByRole("menuitem")).toHaveText(["Mark as read", "Delete"]);
  await accessible(page, page.getByRole("menu"));
  await page.getByRole("menuitem", { name: "Mark as read" }).click();
  await counts(3, 2, 1);
  await menu.click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await counts(2, 2, 0);
  await page.getByRole("button", { name: "Mark all as read" }).click();
  await counts(2, 0, 2);
  await page.reload();
  await counts(2, 0, 2);
  await page.getByRole("tab", { name: /^Unread/ }).click();
  await expect(page.getByRole("heading", { name: "No notifications" })).toBeVisible();
});

test("notifications beyond the first page are counted, marked and reached", async ({ page, people, request }) => {
  const { organization } = await found(request, people);
  const person = await people.create("requester", "Marie-Thérèse Désir");
  await rpc(request, person.accessToken, "select_nonprofit", { nonprofit_id: organization.id });
  await submitAs(request, person, [organization]);
  await people.signIn(page, person);
  // as many as a requester has after years: a page of them, and one more behind it
  let read = false;
  const row = (index: number) => ({
    id: `n${index}`,
    type: "info",
    title: `Notice ${index}`,
    message: "Words",
    code: null,
    params: null,
    link: null,
    date: new Date(Date.now() - index * 60_000).toISOString(),
    read,
  });
  await page.route("**/rest/v1/notifications?*", async (route) => {
    const url = new URL(route.request().url());
    const wanted = url.searchParams.get("read");
    const all = wanted === null || wanted === `eq.${read}` ? 101 : 0;
    if (route.request().method() === "HEAD")
      return route.fulfill({
        headers: { "content-range": `*/${all}`, "access-control-expose-headers": "content-range" },
      });
    const [offset, limit] = ["offset", "limit"].map((name) => Number(url.searchParams.get(name)));
    const rows = Array.from({ length: all }, (_, index) => row(index)).slice(offset, (offset ?? 0) + (limit ?? 0));
    return route.fulfill({ json: rows });
  });
  await page.route("**/rest/v1/rpc/mark_all_notifications_read", (route) => {
    read = true;
    return route.fulfill({ json: 101 });
  });
  await page.goto("/notifications?tab=unread");
  const items = page.getByRole("tabpanel").getByRole("listitem");
  await expect(page.getByRole("tab", { name: /^All/ })).toContainText("101");
  await expect(items).toHaveCount(100);
  await page.getByRole("button", { name: "Show older ones" }).click();
  await expect(items).toHaveCount(101);
  await expect(items.last()).toContainText("Notice 100");
  await expect(page.getByRole("button", { name: "Show older ones" })).toHaveCount(0);
  await page.getByRole("button", { name: "Mark all as read" }).click();
  await expect(page.getByRole("tab", { name: /^Unread/ })).toContainText("0");
  await expect(page.getByRole("button", { name: "Mark all as read" })).toHaveCount(0);
  await page.getByRole("tab", { name: /^Read/ }).click();
  await expect(items).toHaveCount(100);
});

test("My Profile: three fields, account details, a link to the password", async ({ page, people, request }) => {
  const { admin } = await found(request, people);
  await people.signIn(page, admin);
  for (const path of ["/profile", "/user-profile"]) {
    await page.goto(path);
    await expect(heading(page, "My Profile")).toBeVisible();
    await expect(page.getByLabel("Full name")).toHaveValue(admin.fullName);
    await expect(page.getByLabel("Email")).toHaveValue(admin.email);
    await expect(page.getByLabel("Email")).not.toBeEditable();
    await expect(page.getByLabel(/^Phone/)).toBeEditable();
    await expect(page.getByRole("region", { name: "Account Information" }).locator("dl > div")).toHaveText([
      /User role\s*Nonprofit Organization/,
      /Organization role\s*Admin/i,
      /Account created\s*Not available/,
    ]);
  }
  await page.getByRole("link", { name: "Change Password" }).click();
  await expect(page).toHaveURL("/profile-settings?tab=password");
  await expect(page.getByRole("tab")).toHaveText(["Profile Information", "Change Password"]);
  await expect(page.getByRole("tab", { name: "Change Password" })).toHaveAttribute("aria-selected", "true");
});

test("the shell: entries by role; in its footer initials, name, email, Profile, Notifications, Logout", async ({
  page,
  people,
  request,
}) => {
  const { organization } = await found(request, people);
  const person = await people.create("requester", "Marie-Thérèse Désir");
  await rpc(request, person.accessToken, "select_nonprofit", { nonprofit_id: organization.id });
  await submitAs(request, person, [organization]);
  await people.signIn(page, person);
  await expect(page).toHaveURL("/requester-dashboard");
  if (isPhone(page)) await page.getByRole("banner").getByRole("button", { name: "Menu" }).click();
  const side = isPhone(page)
    ? page.getByRole("dialog", { name: "Menu" })
    : page.getByRole("complementary", { name: "Sidebar" });
  const entries = side.getByRole("navigation", { name: "Menu" }).getByRole("link");
  await expect(entries).toHaveText(["Dashboard", "New Request", "My Requests"]);
  const foot = side.locator(".me");
  await expect(foot.locator(".avatar")).toHaveText("MD");
  await expect(foot).toContainText("Marie-Thérèse Désir");
  await expect(foot).toContainText(person.email);
  await expect(foot.getByRole("link", { name: "Profile" })).toHaveAttribute("href", "/profile");
  const notifications = foot.getByRole("link", { name: /^Notifications/ });
  await expect(notifications).toHaveAttribute("href", "/notifications");
  await expect(notifications).toContainText("1 unread");
  await foot.getByRole("button", { name: "Logout" }).click();
  await expect(page).toHaveURL("/login");
});
