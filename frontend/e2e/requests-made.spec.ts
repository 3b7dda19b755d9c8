/** With ten thousand requests a list is still one page of rows. */
import type { Page } from "@playwright/test";
import { DEMO_PASSWORD } from "./fixtures/api";
import { OwnServer } from "./fixtures/server";
import { expect, test, type People } from "./fixtures/test";

const demo = (name: string) => ({ email: `${name}@demo.aidbridge.test`, password: DEMO_PASSWORD });

interface Call {
  /** Path and query. */
  target: string;
  /** Of the body as it is unpacked. */
  bytes: number;
}

/** Calls to the APIs since the last navigation. */
async function callsOf(page: Page): Promise<Call[]> {
  await page.waitForLoadState("networkidle");
  return page.evaluate(() =>
    (performance.getEntriesByType("resource") as PerformanceResourceTiming[])
      .filter((entry) => /\/(rest|auth|storage|functions)\/v1\//.test(entry.name))
      .map((entry) => {
        const { pathname, search } = new URL(entry.name);
        return { target: pathname + search, bytes: entry.decodedBodySize };
      }),
  );
}

test.describe("ten thousand requests", () => {
  const MARIE = "de300000-0000-4000-8000-000000000001";
  const SENT = 10_000;
  const BATCH = 1000;
  /** The development server's well-known key: it stands for the operator. */
  const OPERATOR =
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImV4cCI6MTk4MzgxMjk5Nn0.EGIM96RAZx35lJzdJsyH-qQwv8Hdp7fsn3W0YpN81IU";
  let server: OwnServer;

  async function insert(table: string, rows: readonly object[]) {
    const answer = await fetch(`${server.url}/rest/v1/${table}`, {
      method: "POST",
      headers: {
        apikey: OPERATOR,
        authorization: `Bearer ${OPERATOR}`,
        "content-type": "application/json",
        prefer: "return=minimal",
      },
      body: JSON.stringify(rows),
    });
    expect(answer.ok, await answer.text()).toBe(true);
  }

  test.beforeAll(async () => {
    test.setTimeout(600_000);
    server = await OwnServer.start();
    const now = Date.now();
    for (let first = 0; first < SENT; first += BATCH) {
      const numbers = Array.from({ length: BATCH }, (_, index) => first + index);
      const sentAt = (number: number) => new Date(now - (number + 1) * 1_800_000).toISOString();
      await insert(
        "requests",
        numbers.map((number) => ({
          id: `many-${number}`,
          request_number: `REQ-${500_000 + number}`,
          user_id: MARIE,
          category_id: `cat-00${1 + (number % 5)}`,
          title: `Help number ${number}`,
          description: `We need help for two weeks, number ${number}.`,
          amount: "$250",
          amount_requested: 250,
          status: "pending",
          nonprofits: ["np-001"],
          first_name: "Marie-Thérèse",
          last_name: "Désir",
          email: "requester@demo.aidbridge.test",
          phone: "+1 207 555 0142",
          address: "18 Main Street",
          city: "Portland",
          state: "ME",
          postal_code: "04101",
          contact_consent: true,
          submitted_at: sentAt(number),
        })),
      );
      await insert(
        "request_nonprofits",
        numbers.map((number) => ({
          request_id: `many-${number}`,
          nonprofit_id: "np-001",
          state: "open",
          submitted_at: sentAt(number),
        })),
      );
    }
  });
  test.afterAll(async () => {
    await server?.stop();
  });

  async function signIn(page: Page, { email, password }: Parameters<People["signIn"]>[1]) {
    await page.goto(`${server.url}/login`);
    await page.getByLabel("Email").fill(email);
    await page.getByLabel("Password", { exact: true }).fill(password);
    await page.getByRole("main").getByRole("button", { name: "Login" }).click();
    await page.waitForURL((url) => !/^\/(login|dashboard)$/.test(url.pathname));
  }

  /** One page of rows weighs far less than this; all of them weigh megabytes. */
  const PAGE_OF_ROWS = 40_000;

  /** `writes`: the number of the page's own writes. */
  const lightCalls = async (page: Page, { writes = 0 } = {}) => {
    const calls = await callsOf(page);
    expect(calls.filter((call) => call.bytes > PAGE_OF_ROWS)).toEqual([]);
    const different = new Set(calls.map((call) => call.target)).size;
    expect(different).toBeLessThanOrEqual(10);
    // once for the page, once more after joining the channel (changes may have been missed in between), and once for
    // each of the page's own writes
    expect(calls.length).toBeLessThanOrEqual((2 + writes) * different);
  };

  test("the staff's list is paged, counted, sorted and searched on the server", async ({ page }) => {
    await signIn(page, demo("manager"));
    await page.goto(`${server.url}/nonprofit-requests`);
    await expect(page.locator("tbody tr")).toHaveCount(20);
    await expect(page.getByText(/1–20 of 10,\d{3} requests/)).toBeVisible();
    await expect(page.getByRole("tab", { name: /Pending/ })).toContainText("10,002");
    await lightCalls(page);
    await page.goto(`${server.url}/nonprofit-requests?page=500&sort=date`);
    await expect(page.locator("tbody tr")).toHaveCount(20);
    await expect(page.getByText(/9,981–10,000 of 10,\d{3} requests/)).toBeVisible();
    await lightCalls(page);
    await page.getByLabel("Search requests").fill("REQ-507777");
    await expect(page.locator("tbody tr")).toHaveCount(1);
    await expect(page.getByRole("link", { name: "REQ-507777", exact: true })).toBeVisible();
    await page.goto(`${server.url}/nonprofit-dashboard?tab=requests`);
    await expect(page.locator("tbody tr")).toHaveCount(5);
    await lightCalls(page);
    await page.goto(`${server.url}/nonprofit-request/REQ-500042`);
    await expect(page.getByText("We need help for two weeks, number 42.")).toBeVisible();
    // that it was opened
    await lightCalls(page, { writes: 1 });
  });

  test("the requester's list is paged, counted, sorted and searched on the server", async ({ page }) => {
    await signIn(page, demo("requester"));
    await page.goto(`${server.url}/requester-dashboard`);
    await expect(page.locator(".figures")).toContainText(/10,\d{3}/);
    await lightCalls(page);
    await page.goto(`${server.url}/my-requests`);
    await expect(
      page
        .getByRole("main")
        .getByText(/of 10,\d{3}/)
        .first(),
    ).toBeVisible();
    await lightCalls(page);
    await page.getByRole("main").getByRole("searchbox").fill("REQ-507777");
    await expect(page.getByRole("main").getByText("REQ-507777")).toBeVisible();
  });
});
