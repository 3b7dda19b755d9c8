/** Who sees differently: forced colours, less motion, and names that say where each link leads. */
import type { Locator, Page } from "@playwright/test";
import { DEMO_PASSWORD } from "./fixtures/api";
import { expect, test } from "./fixtures/test";
import { fillPersonal } from "./fixtures/wizard";

const button = (page: Page, name: string | RegExp) => page.getByRole("main").getByRole("button", { name });

test.describe("in forced colors", () => {
  test.use({ forcedColors: "active", reducedMotion: "reduce", serviceWorkers: "block" });

  /** Two states of one thing do not look the same. */
  async function differs(what: string, thing: Locator, change: () => Promise<unknown>) {
    const look = () => thing.screenshot({ animations: "disabled" });
    const before = await look();
    await change();
    // what a press changes may have to be loaded first
    await expect
      .poll(async () => before.equals(await look()), { message: `${what} looks the same before and after` })
      .toBe(false);
  }
  /** It has an edge, or lies apart from the page some other way. */
  const edge = (thing: Locator) =>
    thing.evaluate((element) => {
      const { borderTopWidth, borderTopStyle, borderTopColor, backgroundColor } = getComputedStyle(element);
      return borderTopStyle !== "none" && parseFloat(borderTopWidth) > 0 && borderTopColor !== backgroundColor;
    });

  test("borders show what is selected, focused, invalid, open or in progress", async ({ page }) => {
    await page.goto("/submit-request");
    const food = button(page, /^Food Assistance/);
    await differs("the focus", food, () => food.focus());
    const step = page.getByRole("listitem").filter({ hasText: "Nonprofits" }).first();
    await differs("the step one is at", step, () => food.click());
    const card = page.getByRole("checkbox").first();
    await differs("a chosen nonprofit", card, () => card.check());
    await button(page, "Continue").click();
    const email = page.getByLabel("Email", { exact: true });
    await differs("a field with a mistake", email, async () => {
      await email.fill("not an address");
      await email.blur();
      await expect(page.getByText("Please enter a valid email address").first()).toBeVisible();
    });
    await fillPersonal(page, "forced@test.example");
    const contact = page.getByRole("tab", { name: "Contact" });
    await page.mouse.move(0, 0);
    await differs("the open tab", contact, async () => {
      await button(page, "Next").click();
      await expect(contact).toHaveAttribute("aria-selected", "true");
      await page.mouse.move(0, 0);
    });

    // an open menu has an edge, and the item with the focus one of its own
    await page.getByRole("button", { name: /^Language/ }).click();
    const menu = page.getByRole("menu");
    expect(await edge(menu), "the open menu has an edge").toBe(true);
    const spanish = menu.getByRole("menuitemradio", { name: "Español" });
    await differs("the focus in a menu", spanish, () => spanish.focus());
    await page.keyboard.press("Escape");
    for (const control of await page.getByRole("main").getByRole("button").filter({ visible: true }).all())
      if (await control.evaluate((element) => element.classList.contains("btn")))
        expect(await edge(control), `${await control.innerText()} has an edge`).toBe(true);
  });

  test("borders show dialogs, figures and the current menu entry", async ({ page, people }) => {
    await people.signIn(page, { email: "manager@demo.aidbridge.test", password: DEMO_PASSWORD });
    await page.goto("/nonprofit-budget");
    await expect(page.getByRole("main").getByRole("img").first()).toBeVisible();
    // how full the bar is: its fill is not the colour of the page
    const fill = page.locator(".meter > i").first();
    expect(
      await fill.evaluate(
        (bar) => getComputedStyle(bar).backgroundColor !== getComputedStyle(document.body).backgroundColor,
      ),
    ).toBe(true);
    const menu = page.getByRole("navigation", { name: "Menu" });
    const widthOf = (link: Locator) => link.evaluate((element) => getComputedStyle(element).borderTopWidth);
    const here = menu.locator("a[aria-current]").first();
    const elsewhere = menu.locator("a:not([aria-current])").first();
    expect(await widthOf(here)).not.toBe(await widthOf(elsewhere));
    await page.goto("/nonprofit-request/REQ-001");
    await button(page, /^Approve/).click();
    expect(await edge(page.getByRole("dialog")), "the dialog has an edge").toBe(true);
  });
});

/** Every animation and transition that takes time, from now on and on every page, by what moves. */
async function watchMotion(page: Page): Promise<() => Promise<string[]>> {
  await page.addInitScript(() => {
    const moved: string[] = JSON.parse(sessionStorage.getItem("moved") ?? "[]") as string[];
    const note = (event: Event) => {
      const target = event.target as Element;
      for (const animation of target.getAnimations({ subtree: true })) {
        const { duration, delay } = animation.effect?.getComputedTiming() ?? {};
        if (Number(duration) + Number(delay) <= 10) continue;
        const what =
          animation instanceof CSSTransition ? animation.transitionProperty : (animation as CSSAnimation).animationName;
        moved.push(`${what} of .${target.className}`);
        sessionStorage.setItem("moved", JSON.stringify([...new Set(moved)]));
      }
    };
    for (const start of ["animationstart", "transitionrun"]) document.addEventListener(start, note, true);
  });
  return () => page.evaluate(() => JSON.parse(sessionStorage.getItem("moved") ?? "[]") as string[]);
}

for (const reducedMotion of ["reduce", "no-preference"] as const) {
  test(`with '${reducedMotion}' what opens, folds, loads or is told ${reducedMotion === "reduce" ? "does not move" : "may move"}`, async ({
    page,
    people,
  }) => {
    await page.emulateMedia({ reducedMotion });
    const moved = await watchMotion(page);
    // slow enough that what stands in for a list is seen
    await page.route("**/rest/v1/rpc/**", async (route) => {
      await new Promise((later) => setTimeout(later, 300));
      await route.continue();
    });
    await page.goto("/faq");
    await page.getByRole("main").getByRole("button").first().click();
    expect(await page.evaluate(() => getComputedStyle(document.documentElement).scrollBehavior)).toBe("auto");
    await page.goto("/submit-request");
    await button(page, /^Food Assistance/).hover();
    await button(page, /^Food Assistance/).click();
    await page.getByRole("group", { name: "Nonprofits" }).getByRole("checkbox").first().check();
    await page.getByRole("button", { name: /^Language/ }).click();
    await expect(page.getByRole("menu")).toBeVisible();
    await page.keyboard.press("Escape");
    await people.signIn(page, { email: "manager@demo.aidbridge.test", password: DEMO_PASSWORD });
    await page.waitForURL(/nonprofit-dashboard/);
    await page.goto("/nonprofit-requests");
    await expect(page.getByRole("row").nth(1)).toBeVisible();
    await page.getByRole("button", { name: /sidebar/i }).click();
    await page.goto("/nonprofit-request/REQ-001");
    await button(page, /^Request More Information/).click();
    await expect(page.getByRole("dialog")).toBeVisible();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Logout" }).click();
    await expect(page.locator(".toast").first()).toBeVisible();
    if (reducedMotion === "reduce") expect(await moved()).toEqual([]);
    // the other half of the proof: this way of looking sees motion
    else expect((await moved()).join(", ")).toMatch(/(?=.*rise of)(?=.*breathe of)/);
  });
}

test("links of the same kind have distinct names", async ({ page, people }) => {
  /** Names that stand on a page twice and lead to two places. */
  const ambiguous = () =>
    page.evaluate(() => {
      const main = document.querySelector("main") ?? document.body;
      const places = new Map<string, Set<string>>();
      for (const link of main.querySelectorAll<HTMLAnchorElement>("a[href]")) {
        if (!link.checkVisibility()) continue;
        const by = link.getAttribute("aria-labelledby");
        const name = (
          link.ariaLabel ??
          (by
            ? by
                .split(" ")
                .map((id) => document.getElementById(id)?.textContent ?? "")
                .join(" ")
            : link.textContent) ??
          ""
        ).trim();
        places.set(name, new Set([...(places.get(name) ?? []), link.getAttribute("href") ?? ""]));
      }
      return [...places]
        .filter(([name, to]) => name === "" || to.size > 1)
        .map(([name, to]) => `${name}: ${[...to].join(" ")}`);
    });
  for (const [who, paths] of [
    ["requester", ["/requester-dashboard", "/my-requests", "/request-drafts", "/notifications", "/request/REQ-004"]],
    [
      "manager",
      [
        "/nonprofit-dashboard",
        "/nonprofit-requests",
        "/nonprofit-request/REQ-001",
        "/nonprofit-budget",
        "/nonprofit-team",
        "/nonprofit-donor-communication?tab=inbox",
      ],
    ],
    ["donor", ["/donor-dashboard", "/donor-dashboard?tab=donations"]],
  ] as const) {
    await page.context().clearCookies();
    await people.signIn(page, { email: `${who}@demo.aidbridge.test`, password: DEMO_PASSWORD });
    await expect(page).not.toHaveURL(/\/(login|dashboard)$/);
    for (const path of paths) {
      await page.goto(path);
      await expect(page.getByRole("heading", { level: 1 }).first()).toBeVisible();
      await expect(page.locator("main span.sk, main [aria-busy=true]")).toHaveCount(0);
      expect(await ambiguous(), path).toEqual([]);
    }
  }
});
