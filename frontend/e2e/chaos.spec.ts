/**
 * People ask for help while things break: reloads, the back button, offline, an expired session, a killed server.
 * Nothing on their screen is lost, and the request arrives once and as written. A seed determines what breaks when, so
 * a failed journey can be repeated. A few journeys here; `just chaos` walks many and writes the report.
 */
import { appendFileSync } from "node:fs";
import type { APIRequestContext, Page } from "@playwright/test";
import { rpc, tokenOf } from "./fixtures/api";
import { OwnServer } from "./fixtures/server";
import { expect, test as withPeople, type Account } from "./fixtures/test";

const JOURNEYS = Number(process.env.CHAOS_JOURNEYS ?? 2);
const FIRST_SEED = Number(process.env.CHAOS_SEED ?? 1);
/** The most breakages in a journey. */
const MOST = Number(process.env.CHAOS_MOST ?? 2);

const test = withPeople.extend<object, { own: OwnServer }>({
  own: [
    // oxlint-disable-next-line no-empty-pattern -- Playwright reads the fixture's needs from this pattern
    async ({}, use) => {
      const own = await OwnServer.start();
      await use(own);
      await own.stop();
    },
    { scope: "worker", timeout: 300_000 },
  ],
  serverUrl: [async ({ own }, use) => use(own.url), { scope: "worker" }],
});
test.use({ serviceWorkers: "allow" });
test.describe.configure({ mode: "parallel" });
test.skip(process.env.BASE_URL !== undefined, "kills its server");

type Random = () => number;
/** Mulberry32: small, and the same everywhere. */
function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const heading = (page: Page) => page.getByRole("heading", { level: 1 });
const button = (page: Page, name: string | RegExp) => page.getByRole("main").getByRole("button", { name });

const DISASTERS = ["reload", "back", "offline", "kill", "expired"] as const;
type Disaster = (typeof DISASTERS)[number];

class Journey {
  /** The written answers by label, which must all be found again. */
  private readonly written = new Map<string, string>();
  readonly broke: (Disaster | "sending")[] = [];
  private signedInAt = "";
  /** A unique last name. */
  readonly surname: string;

  constructor(
    private readonly page: Page,
    private readonly own: OwnServer,
    private readonly random: Random,
    private readonly account: Account | null,
    seed: number,
  ) {
    this.surname = `Seed${[...String(seed)].map((digit) => "abcdefghij"[Number(digit)]).join("")}q`;
  }

  private chance = (of: number): boolean => this.random() < of;

  /** By the beginning of its label, which may end with 'optional'. */
  private field = (label: string) =>
    this.page
      .getByRole("main")
      .getByLabel(new RegExp(`^${label}`))
      .and(this.page.locator("input, textarea"));

  /** Checks that the screen shows the written answers. */
  private async agrees(): Promise<void> {
    await expect(this.page.getByRole("main")).toBeVisible();
    for (const [label, text] of this.written) {
      const field = this.field(label);
      if ((await field.count()) === 1) await expect(field, label).toHaveValue(text);
    }
  }

  private async login(): Promise<void> {
    const { page, account } = this;
    const { pathname, search } = new URL(page.url());
    await page.goto(`/login?next=${encodeURIComponent(pathname + search)}`);
    await page
      .getByRole("main")
      .getByRole("textbox", { name: "Email", exact: true })
      .fill(account?.email ?? "");
    await page.getByLabel("Password", { exact: true }).fill(account?.password ?? "");
    await button(page, "Login").click();
    await page.waitForURL((url) => url.pathname === pathname);
    this.signedInAt = page.url();
  }

  private async break(disaster: Disaster): Promise<void> {
    const { page, own } = this;
    const title = await heading(page).textContent();
    /** The kinds of help and the list of nonprofits come from the server: offline the page says so. */
    const needsServer = /type of assistance|nonprofits/i.test(title ?? "");
    switch (disaster) {
      case "reload":
        await page.reload();
        break;
      case "back":
        await page.goBack();
        // going back from the page after the sign-in leads to that same page
        if (page.url() !== this.signedInAt) await expect(heading(page)).not.toHaveText(title ?? "");
        await page.goForward();
        break;
      case "offline":
        await page.context().setOffline(true);
        await page.reload();
        if (!needsServer) await this.agrees();
        await page.context().setOffline(false);
        if (needsServer) await page.reload();
        break;
      case "kill":
        await own.killWithoutWarning();
        await page.reload();
        if (!needsServer) await this.agrees();
        await own.startAgain();
        await page.reload();
        break;
      case "expired":
        await page.evaluate(() => {
          const session = JSON.parse(localStorage.getItem("aidbridge-auth") ?? "{}") as object;
          const ended = { expires_at: 1, access_token: "ended", refresh_token: "ended" };
          localStorage.setItem("aidbridge-auth", JSON.stringify({ ...session, ...ended }));
        });
        await this.login();
    }
    await expect(heading(page)).toHaveText(title ?? "");
    await this.agrees();
  }

  /** May break something now. */
  private async perhaps(): Promise<void> {
    if (this.broke.length >= MOST || !this.chance(0.3)) return;
    const possible = DISASTERS.filter((one) => (one === "expired" ? this.account !== null : true));
    const disaster = possible[Math.floor(this.random() * possible.length)] ?? "reload";
    // before the first step is another page
    if (disaster === "back" && !new URL(this.page.url()).searchParams.has("step")) return;
    this.broke.push(disaster);
    await this.break(disaster);
  }

  private async write(label: string, text: string): Promise<void> {
    const field = this.field(label);
    await expect(field).toBeVisible();
    // an account's address cannot be edited
    if (!(await field.isEditable())) return;
    if ((await field.inputValue()) !== text) await field.fill(text);
    this.written.set(label, text);
  }

  /** Answers the question; true if it leads to another one. */
  private async writeAll(answers: Record<string, string>): Promise<void> {
    for (const [label, text] of Object.entries(answers)) {
      await this.write(label, text);
      await this.perhaps();
    }
  }

  private async information(email: string): Promise<void> {
    const { page } = this;
    const first = page.getByLabel("First name", { exact: true });
    const street = page.getByLabel("Street address", { exact: true });
    const half = first.or(street);
    const contact = {
      "Street address": "18 Main Street",
      City: "Portland",
      "State/Province": "ME",
      "Postal/ZIP code": "04101",
    };
    for (;;) {
      await expect(half).toBeVisible();
      if (await first.isVisible()) {
        await this.writeAll({
          "First name": "Marie",
          "Last name": this.surname,
          Email: email,
          Phone: "+1 207 555 0142",
        });
        await button(page, "Next").click();
        await expect(street).toBeVisible();
      }
      for (const [label, text] of Object.entries(contact)) {
        // what broke leads back to the first half
        if (!(await street.isVisible())) break;
        await this.write(label, text);
        await this.perhaps();
        await expect(half).toBeVisible();
      }
      if (await street.isVisible()) return button(page, "Continue").click();
    }
  }

  private async send(): Promise<void> {
    const { page, own } = this;
    await page.getByRole("checkbox", { name: /You may contact me/ }).check();
    await this.perhaps();
    await expect(page.getByRole("checkbox", { name: /You may contact me/ })).toBeChecked();
    const killed = this.broke.length < MOST && this.chance(0.25);
    await button(page, "Submit Request").click();
    const number = page.getByTestId("request-number");
    if (killed) {
      // it may already have arrived, so it is sent again with the same key
      this.broke.push("sending");
      await own.killWithoutWarning();
      await own.startAgain();
      const again = button(page, /^(?:Submit Request|Try now)$/).first();
      await expect(async () => {
        if (await number.isVisible()) return;
        if (await again.isEnabled()) await again.click();
        await expect(number).toBeVisible({ timeout: 5_000 });
      }).toPass();
    }
    await expect(number).toHaveText(/^REQ-\d+$/);
  }

  /** From the first question to the number of the request. */
  async walk(email: string): Promise<string> {
    const { page } = this;
    await page.goto("/submit-request");
    await button(page, /^Food Assistance/).click();
    const title = (words: string) => expect(heading(page)).toHaveText(words);
    await title("Choose nonprofits");
    // from here on the page opens without the server (`waitForFunction` would take a promise for a yes)
    await expect
      .poll(() =>
        page.evaluate(
          async () =>
            navigator.serviceWorker.controller?.state === "activated" && (await caches.match("/")) !== undefined,
        ),
      )
      .toBe(true);
    const harbor = page.getByRole("checkbox", { name: /^Harbor Relief Fund/ });
    await harbor.check();
    await this.perhaps();
    await expect(harbor).toBeChecked();
    await button(page, "Continue").click();
    await title("Your information");
    await this.perhaps();
    await this.information(email);
    await title("Tell us what you need");
    await this.writeAll({ Details: this.story, Amount: "250.50" });
    await button(page, "Continue").click();
    await title("Check your answers");
    await this.perhaps();
    await expect(page.getByText(this.story)).toBeVisible();
    await this.send();
    return (await page.getByTestId("request-number").textContent()) ?? "";
  }

  get story(): string {
    return `I lost my job in October. ${this.surname} needs food until my new job starts.`;
  }
}

/** Walks the journey and checks that the nonprofit has the request once, as written. */
async function arrivesWhole(request: APIRequestContext, journey: Journey, email: string): Promise<void> {
  const number = await journey.walk(email);

  const staff = await tokenOf(request, "admin@demo.aidbridge.test");
  const found = await rpc<{ total: number; rows: { request_number: string }[] }>(request, staff, "incoming_page", {
    nonprofit_id: "np-001",
    search: journey.surname,
  });
  expect(found.rows.map(({ request_number: name }) => name)).toEqual([number]);
  const { request: sent } = await rpc<{ request: Record<string, unknown> }>(request, staff, "staff_request", {
    request_id: number,
    nonprofit_id: "np-001",
  });
  expect(sent).toMatchObject({
    description: journey.story,
    amount: "$250.50",
    email,
    last_name: journey.surname,
    phone: "+1 207 555 0142",
    address: "18 Main Street",
    city: "Portland",
    state: "ME",
    postal_code: "04101",
  });
}

for (let seed = FIRST_SEED; seed < FIRST_SEED + JOURNEYS; seed += 1) {
  const withAccount = seed % 2 === 0;
  test(`journey ${seed}, ${withAccount ? "with an account" : "as a guest"}, loses nothing`, async ({
    page,
    people,
    request,
    own,
  }) => {
    const account = withAccount ? await people.create("requester", "Marie Test") : null;
    if (account) await people.signInByPage(page, account);
    const email = account?.email ?? `chaos-${seed}@test.example`;
    const journey = new Journey(page, own, randomOf(seed), account, seed);
    let whole = false;
    try {
      await arrivesWhole(request, journey, email);
      whole = true;
    } finally {
      if (process.env.CHAOS_LOG) {
        const { broke } = journey;
        appendFileSync(process.env.CHAOS_LOG, `${JSON.stringify({ seed, withAccount, whole, broke })}\n`);
      }
    }
  });
}
