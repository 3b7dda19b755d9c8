/** The request form offline: what the service worker caches, what it never caches, and its next version. */
import { randomUUID } from "node:crypto";
import { createServer, request as ask, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "@playwright/test";
import { rpc } from "./fixtures/api";
import { expect, test } from "./fixtures/test";
import { answerAll, DESCRIPTION } from "./fixtures/wizard";

test.use({ serviceWorkers: "allow" });

const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { level: 1, name });
const button = (page: Page, name: string | RegExp) => page.getByRole("button", { name });

/** Names of the caches, and the paths of all that is in them. */
const kept = (page: Page) =>
  page.evaluate(async () => {
    const names = await caches.keys();
    const all = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
    return { names, paths: all.flat().map(({ url }) => new URL(url).pathname) };
  });

/** Waits until the worker is active and has cached the page's files. */
async function workerStands(page: Page): Promise<void> {
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await expect.poll(async () => (await kept(page)).paths.some((path) => path.endsWith(".woff2"))).toBe(true);
}

test("a request written, reloaded and submitted offline is sent once when online", async ({
  page,
  context,
  accessible,
}) => {
  await page.goto("/submit-request");
  await expect(button(page, /^Food Assistance/)).toBeVisible();
  const workers = () => page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length);
  // the first question does not load it
  expect(await workers()).toBe(0);
  await answerAll(page, `line-${randomUUID()}@test.example`);
  await workerStands(page);

  await context.setOffline(true);
  await page.reload();
  await expect(heading(page, "Check your answers")).toBeVisible();
  await expect(page.getByText("You are offline")).toBeVisible();
  await expect(page.getByText(DESCRIPTION)).toBeVisible();
  await expect(page.getByRole("checkbox", { name: /You may contact me/ })).toBeChecked();
  await button(page, "Submit Request").click();
  await expect(page.getByText("Not sent yet")).toBeVisible();
  await accessible(page);
  await button(page, "Do not send it").click();
  await expect(page.getByText("Not sent yet")).toHaveCount(0);
  await button(page, "Submit Request").click();
  await expect(page.getByText("Not sent yet")).toBeVisible();
  await page.close();

  const later = await context.newPage();
  await later.goto("/submit-request?step=review");
  await expect(later.getByText("Not sent yet")).toBeVisible();
  let sent = 0;
  later.on("request", (asked) => (sent += Number(asked.url().endsWith("/rpc/submit_request"))));
  await context.setOffline(false);
  await expect(later.getByTestId("request-number")).toHaveText(/^REQ-\d+$/);
  await expect(later.getByText("Not sent yet")).toHaveCount(0);
  expect(sent).toBe(1);

  const { paths } = await kept(later);
  expect(paths.filter((path) => !/^\/(?:assets\/[^/]+|theme\.js|favicon\.svg|app-config\.json)?$/.test(path))).toEqual(
    [],
  );

  await later.route("https://www.weather.gov/", (route) => route.fulfill({ body: "Weather" }));
  await later.goto("/submit-request");
  await button(later, /^Food Assistance/).click();
  await expect(heading(later, "Choose nonprofits")).toBeVisible();
  const stored = () => later.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));
  await expect.poll(stored).toContain("Food Assistance");
  await later.getByRole("link", { name: "Exit this page" }).filter({ visible: true }).click();
  await expect(later.getByText("Weather")).toBeVisible();
  await later.goto("/faq");
  // neither these answers nor the number of the request that was sent
  expect(await stored()).not.toMatch(/Food Assistance|REQ-|aidbridge-request/);
  await expect.poll(async () => (await kept(later)).names).toEqual([]);
  expect(await later.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length)).toBe(0);
});

test("a user returning on another page is told that the request was not sent and can send it", async ({
  page,
  context,
  accessible,
}) => {
  await answerAll(page, `back-${randomUUID()}@test.example`);
  await context.setOffline(true);
  await button(page, "Submit Request").click();
  await expect(page.getByText("Not sent yet")).toBeVisible();
  await page.close();
  await context.setOffline(false);

  const later = await context.newPage();
  for (const path of ["/request-status", "/"]) {
    await later.goto(path);
    await expect(later.getByText("Your request is not sent yet")).toBeVisible();
    await accessible(later);
  }
  await later.getByRole("link", { name: "Open it and send it" }).click();
  await expect(later.getByTestId("request-number")).toHaveText(/^REQ-\d+$/);
  await later.goto("/");
  await expect(heading(later, /./)).toBeVisible();
  await expect(later.getByText("Your request is not sent yet")).toHaveCount(0);
});

test("a signed-in user's answers survive an offline reload and are sent in their name", async ({
  page,
  context,
  people,
  request,
}) => {
  const account = await people.create("requester", "Marie Désir");
  await people.signIn(page, account);
  await answerAll(page, null);
  await workerStands(page);
  await context.setOffline(true);
  await page.reload();
  await expect(heading(page, "Check your answers")).toBeVisible();
  await button(page, "Submit Request").click();
  await expect(page.getByText("Not sent yet")).toBeVisible();
  await context.setOffline(false);
  const number = page.getByTestId("request-number");
  await expect(number).toHaveText(/^REQ-\d+$/);
  const { request: sent } = await rpc<{ request: { description: string } }>(
    request,
    account.accessToken,
    "request_detail",
    { id: await number.textContent() },
  );
  expect(sent.description).toBe(DESCRIPTION);
});

test("losing the connection before the form is cached costs a reload but no answers", async ({ page, context }) => {
  // the worker never comes
  await page.addInitScript(() => {
    navigator.serviceWorker.register = () => new Promise(() => undefined);
  });
  await page.goto("/submit-request");
  await button(page, /^Food Assistance/).click();
  await page.getByRole("group", { name: "Nonprofits" }).getByRole("checkbox").first().check();
  await button(page, "Continue").click();
  await page.getByLabel("First name").fill("Marie");
  await context.setOffline(true);
  await expect(page.reload()).rejects.toThrow("ERR_INTERNET_DISCONNECTED");
  await context.setOffline(false);
  await page.reload();
  await expect(page.getByLabel("First name")).toHaveValue("Marie");
});

/** What the next version's worker and page say: another name, and another first file. */
const changes: Record<string, (text: string) => string> = {
  "/sw.js": (text) =>
    text.replace(/version:`\w+`/, "version:`next`").replace(/entry:`[^`]+`/, "entry:`/assets/next.js`"),
  "/": (text) => `${text}<!-- /assets/next.js -->`,
};

/** A proxy before the server that can serve the next version of the worker. */
async function road(target: string): Promise<{ url: string; update: () => void; server: Server }> {
  let next = false;
  const server = createServer((asked, answer) => {
    const changed = changes[asked.url ?? ""];
    const { "if-none-match": _, ...others } = asked.headers;
    const headers = changed ? { ...others, "accept-encoding": "identity" } : asked.headers;
    const onward = ask(new URL(asked.url ?? "/", target), { method: asked.method, headers }, (given) => {
      if (!changed || !next) {
        answer.writeHead(given.statusCode ?? 502, given.headers);
        given.pipe(answer);
        return;
      }
      let text = "";
      given.on("data", (part: Buffer) => (text += part.toString()));
      given.on("end", () => {
        const { "content-length": _, etag: __, ...rest } = given.headers;
        answer.writeHead(200, rest).end(changed(text));
      });
    });
    onward.on("error", () => answer.destroy());
    asked.pipe(onward);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, update: () => (next = true), server };
}

test("a new version does not disturb open pages and is used on the next visit", async ({ context, serverUrl }) => {
  const { url, update, server } = await road(serverUrl);
  const [page, other] = [await context.newPage(), await context.newPage()];
  for (const each of [page, other]) {
    await each.goto(`${url}/submit-request`);
    await button(each, /^Food Assistance/).click();
    await workerStands(each);
  }
  const {
    names: [old],
  } = await kept(page);
  update();
  const waits = () =>
    page.evaluate(async () => {
      const registration = await navigator.serviceWorker.ready;
      if (!registration.waiting) await registration.update();
      return registration.waiting !== null;
    });
  await expect.poll(waits).toBe(true);
  await other.reload();
  await workerStands(other);

  // two pages are open, and both keep their files
  expect((await kept(page)).names).toEqual([old, "aidbridge-shell-next"]);
  expect(await waits()).toBe(true);

  await other.close();
  await page.close();
  const later = await context.newPage();
  await later.goto(`${url}/submit-request?step=nonprofits`);
  await expect.poll(async () => (await kept(later)).names).toEqual(["aidbridge-shell-next"]);
  await expect(heading(later, "Choose nonprofits")).toBeVisible();
  await context.setOffline(true);
  await later.reload();
  await expect(heading(later, "Choose nonprofits")).toBeVisible();
  server.closeAllConnections();
  server.close();
});
