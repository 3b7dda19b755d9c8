/** Others' changes appear on open pages; without the socket the pages say so and poll. */
import type { Page, WebSocketRoute } from "@playwright/test";
import { rpc, tokenOf, DEMO_PASSWORD } from "./fixtures/api";
import { ask, found, join, opened, submitAs } from "./fixtures/staff";
import { expect, test } from "./fixtures/test";

const PAUSED = /New answers do not show by themselves right now\. This page looks for them every 30 seconds\./;

/** Lets a test close the page's sockets, and block new ones until it allows them again. */
async function sockets(page: Page) {
  const open = new Set<WebSocketRoute>();
  let allowed = true;
  await page.routeWebSocket(/\/realtime\/v1\//, (socket) => {
    if (!allowed) return void socket.close({ code: 1011 });
    open.add(socket);
    socket.connectToServer();
  });
  return {
    async cut() {
      allowed = false;
      await Promise.all([...open].map((socket) => socket.close({ code: 1011 })));
      open.clear();
    },
    allow: () => void (allowed = true),
  };
}

/** Resolves once the page's channel receives changes, so that the page no longer polls. */
function followed(page: Page): Promise<void> {
  return new Promise((done) => {
    page.on("websocket", (socket) =>
      socket.on("framereceived", ({ payload }) => {
        if (String(payload).includes("Subscribed to PostgreSQL")) done();
      }),
    );
  });
}

test("a requester sees a decision live on the request, in the list and at the bell", async ({
  page,
  context,
  people,
  request,
}) => {
  const { organization, admin } = await found(request, people);
  const sent = await ask(request, people, [organization]);
  await rpc(request, sent.person.accessToken, "select_nonprofit", { nonprofit_id: organization.id });
  const ready = followed(page);
  await people.signIn(page, sent.person);
  await page.goto(`/request-details/${sent.id}`);
  await expect(page.locator(".badge").getByText("Pending")).toBeVisible();
  await ready;
  const list = await context.newPage();
  const listReady = followed(list);
  await list.goto("/my-requests");
  await expect(list.locator("main .badge").getByText("Pending")).toBeVisible();
  await listReady;
  const unread = /Notifications, (\d+) unread/;
  const before = Number(
    unread.exec((await page.getByRole("link", { name: unread }).getAttribute("aria-label")) ?? "")?.[1],
  );

  await rpc(request, admin.accessToken, "approve_request", {
    request_id: sent.id,
    nonprofit_id: organization.id,
    amount: 25,
    accept_over_budget: true,
  });
  await expect(page.locator(".badge").getByText("Approved")).toBeVisible();
  await expect(page.getByText("Approved for $25").first()).toBeVisible();
  await expect(page.getByRole("link", { name: `Notifications, ${before + 1} unread` })).toBeVisible();
  await expect(list.locator("main .badge").getByText("Approved")).toBeVisible();
});

test("staff see new requests and a colleague's decision live", async ({ page, people, request, accessible }) => {
  const { organization, admin } = await found(request, people);
  const manager = await join(request, people, admin, organization, "manager");
  const first = await ask(request, people, [organization]);
  const ready = followed(page);
  await people.signIn(page, manager);
  await page.goto("/nonprofit-requests");
  await expect(page.getByRole("main").getByText(first.number)).toBeVisible();
  await ready;

  const second = await submitAs(request, first.person, [organization]);
  await expect(page.getByRole("main").getByText(second.request_number)).toBeVisible();
  await expect(page.getByRole("navigation", { name: "Menu" }).getByText("2 waiting")).toBeAttached();

  await page
    .getByRole("link", { name: new RegExp(first.number) })
    .first()
    .click();
  await expect(page.getByRole("button", { name: "Approve" }).first()).toBeVisible();
  await rpc(request, admin.accessToken, "deny_request", {
    request_id: first.id,
    nonprofit_id: organization.id,
    reason: "Our funds are used up until January.",
    reason_code: "funding_limit",
  });
  await expect(page.locator(".badge.big").getByText("Declined")).toBeVisible();
  await expect(page.getByRole("button", { name: "Approve" })).toHaveCount(0);
  await accessible(page);
});

test("a donor's reply appears in the open inbox", async ({ page, context, people, request }) => {
  await people.signIn(page, { email: "admin@demo.aidbridge.test", password: DEMO_PASSWORD });
  await page.goto("/nonprofit-donor-communication?tab=inbox");
  const inbox = page.getByRole("tabpanel");
  await expect(
    inbox
      .getByRole("list")
      .or(inbox.getByText(/No .*messages|yet/i))
      .first(),
  ).toBeVisible();
  const ready = followed(page);
  await page.reload();
  await ready;
  const admin = await tokenOf(request, "admin@demo.aidbridge.test");
  const donor = await tokenOf(request, "donor@demo.aidbridge.test");
  const message = await rpc<{ id: string }>(request, admin, "send_donor_message", {
    nonprofit_id: "np-001",
    subject: "What your gifts did in November",
    message: "Thank you. Three families have heating again.",
    key: crypto.randomUUID(),
  });
  await rpc(request, donor, "reply_to_donor_message", {
    message_id: message.id,
    message: "I am glad to hear of the heating.",
    key: crypto.randomUUID(),
  });
  await expect(page.getByText("I am glad to hear of the heating.").first()).toBeVisible();
  await context.close();
});

test("without the socket the page says so and polls; after reconnecting it loads what was missed", async ({
  page,
  people,
  request,
  accessible,
}) => {
  const line = await sockets(page);
  await page.clock.install();
  const ready = followed(page);
  const { organization, admin, sent } = await opened(page, request, people, "admin");
  await expect(page.locator(".badge.big").getByText("Pending")).toBeVisible();
  await ready;
  await page.clock.runFor(1_000);
  await expect(page.getByText(PAUSED)).toHaveCount(0);

  await line.cut();
  await expect(async () => {
    await page.clock.runFor(1_000);
    await expect(page.getByText(PAUSED)).toBeVisible({ timeout: 500 });
  }).toPass();
  await accessible(page);

  // changed meanwhile: the next poll has it
  await rpc(request, admin.accessToken, "request_more_info", {
    request_id: sent.id,
    nonprofit_id: organization.id,
    notes: "Please send the letter from your landlord.",
  });
  await expect(page.getByText("Please send the letter from your landlord.")).toHaveCount(0);
  await page.clock.runFor(31_000);
  await expect(page.getByText("Please send the letter from your landlord.").first()).toBeVisible();

  // and changes during the reconnect are read after the join
  await rpc(request, sent.person.accessToken, "withdraw_request", { id: sent.id });
  line.allow();
  await expect(async () => {
    await page.clock.runFor(1_000);
    await expect(page.getByText(PAUSED)).toHaveCount(0, { timeout: 500 });
  }).toPass();
  await page.clock.runFor(1_000);
  await expect(page.locator(".badge.big").getByText("Withdrawn")).toBeVisible();
});
