/** Deciding on a request: approve, decline, ask for more; permissions and concurrent decisions. */
import { mailTo, rpc } from "./fixtures/api";
import { ask, found, join, opened, submitAs } from "./fixtures/staff";
import { answer, figure, toast } from "./fixtures/staff-pages";
import { expect, test } from "./fixtures/test";
import { watchToasts } from "./fixtures/toasts";

test.describe("deciding on a request", () => {
  test("a manager approves: list, figures, the requester's mail and the other nonprofit are updated", async ({
    page,
    request,
    people,
    accessible,
  }) => {
    const { organization, admin } = await found(request, people);
    const other = await found(request, people);
    const manager = await join(request, people, admin, organization, "manager");
    const sent = await ask(request, people, [organization, other.organization]);
    await rpc(request, admin.accessToken, "record_donation", {
      nonprofit_id: organization.id,
      amount: 1000,
      donor_name: "Daniel",
    });

    await people.signIn(page, manager);
    await expect(page).toHaveURL(/\/nonprofit-dashboard$/);
    await expect(figure(page, "Pending")).toHaveText("1");
    await accessible(page);
    await page.getByRole("link", { name: "Review request" }).click();
    await expect(page.getByRole("heading", { name: "Food Assistance", level: 1 })).toBeVisible();
    await expect(page.getByText("We need food until my new job starts.")).toBeVisible();
    await expect(page.getByText(`Also sent to ${other.organization.name}.`)).toBeVisible();
    await accessible(page);

    await answer(page, "Approve Request");
    const dialog = page.getByRole("dialog");
    await expect(dialog.getByText("After this").locator("..")).toContainText("$750");
    await dialog.getByLabel("Amount").fill("");
    await expect(dialog.getByRole("button", { name: "Approve Request" })).toBeDisabled();
    await dialog.getByLabel("Amount").fill("abc");
    await dialog.getByRole("button", { name: "Approve Request" }).click();
    await expect(dialog.getByText("Write an amount above 0 with at most two decimals")).toBeVisible();
    await accessible(page, dialog);
    await dialog.getByLabel("Amount").fill("1,200.50");
    await expect(dialog.getByText("This is more than you have left")).toBeVisible();
    await accessible(page);
    await dialog.getByRole("button", { name: "Approve for $1,200.50" }).click();
    // more than is left: it is asked once more
    await expect(dialog.getByText("Please look at the amount once more")).toBeVisible();
    await accessible(page, dialog);
    await dialog.getByRole("button", { name: "Yes, approve $1,200.50" }).click();

    await expect(toast(page, "Request Approved")).toContainText(`${sent.number} is approved for $1,200.50.`);
    await expect(page.getByText("This request has already been approved.")).toBeVisible();
    await expect(page.locator(".page-head .badge")).toHaveText("Approved");
    await accessible(page, page.getByRole("main"));
    expect((await mailTo(request, sent.person.email, /approved/)).text).toContain("$1200.50");

    await page.goto("/nonprofit-dashboard");
    await expect(figure(page, "Approved")).toHaveText("1");
    await expect(figure(page, "Pending")).toHaveText("0");

    await rpc(request, other.admin.accessToken, "open_request", {
      request_id: sent.id,
      nonprofit_id: other.organization.id,
    }).then((answered) => expect(answered).toMatchObject({ visible: false }));
  });

  test("denying needs a reason from the list and a message to the requester", async ({
    page,
    request,
    people,
    accessible,
  }) => {
    const { organization, admin } = await found(request, people);
    const sent = await ask(request, people, [organization]);
    await people.signIn(page, admin);
    await page.goto(`/nonprofit-request-details/${sent.id}`);
    await answer(page, "Deny Request");
    const dialog = page.getByRole("dialog");
    const deny = dialog.getByRole("button", { name: "Deny Request" });
    await expect(deny).toBeDisabled();
    await dialog.getByLabel("Reason").selectOption("Funding limit reached");
    await expect(deny).toBeDisabled();
    await dialog.getByLabel("Message to the person").fill("Our fund is empty until January.");
    await accessible(page);
    await deny.click();
    await expect(toast(page, "Request Declined")).toBeVisible();
    await expect(page.locator(".page-head .badge")).toHaveText("Declined");
    await accessible(page, page.getByRole("main"));
    expect((await mailTo(request, sent.person.email, /declined/)).text).toContain("Our fund is empty until January.");
  });

  test("asking for more information keeps the request pending and shows the answer", async ({
    page,
    request,
    people,
    accessible,
  }) => {
    const { sent } = await opened(page, request, people);
    await answer(page, "Request More Information");
    const dialog = page.getByRole("dialog");
    await expect(dialog.getByRole("button", { name: "Request information" })).toBeDisabled();
    // a tick is enough; ticked items are listed above the notes
    await dialog.getByRole("checkbox", { name: "Proof of income" }).click();
    await expect(dialog.getByRole("button", { name: "Request information" })).toBeEnabled();
    await dialog.getByLabel("What do you need?").fill("Please send the letter from the new job.");
    await accessible(page);
    await dialog.getByRole("button", { name: "Request information" }).click();
    await expect(toast(page, "Additional Information Requested")).toBeVisible();
    await expect(page.getByText("– Your last pay slip, or a letter that says what you get each month.")).toBeVisible();
    // the end of the day's list
    await expect(page.getByText("Nothing waits for you")).toBeVisible();
    await accessible(page, page.getByRole("main"));
    await expect(page.locator(".page-head .badge")).toHaveText("Needs More Proof");
    await rpc(request, sent.person.accessToken, "answer_request_info", {
      id: sent.id,
      message: "The letter comes on Monday.",
    });
    await page.reload();
    await expect(page.getByText("The person has answered")).toBeVisible();
    await expect(page.getByText("The letter comes on Monday.")).toBeVisible();
    await accessible(page);
  });

  test("complete requests are decided by keyboard on one screen, four presses each, until none is left", async ({
    page,
    request,
    people,
  }) => {
    const { organization, admin } = await found(request, people);
    const sent = [await ask(request, people, [organization]), await ask(request, people, [organization])];
    await rpc(request, admin.accessToken, "record_donation", {
      nonprofit_id: organization.id,
      amount: 5000,
      donor_name: "Daniel",
    });
    await people.signIn(page, admin);
    await page.goto("/nonprofit-dashboard");
    let presses = 0;
    /** Every key, Tab too. Keyboards stand on desks; on a phone the way leads around what stays in place. */
    let keys = 0;
    const most = (page.viewportSize()?.width ?? 0) < 768 ? 10 : 8;
    /** Walks to a link or a button with the Tab key, and presses it. */
    const press = async (role: "link" | "button", name: string | RegExp) => {
      const target = page.getByRole(role, { name });
      await expect(target).toBeVisible();
      for (let tabs = 0; tabs < 60; tabs += 1) {
        if (await target.evaluate((element) => element === document.activeElement)) break;
        await page.keyboard.press("Tab");
        keys += 1;
      }
      await expect(target).toBeFocused();
      await page.keyboard.press("Enter");
      presses += 1;
      keys += 1;
    };
    await press("link", "Review request");
    for (const { number } of sent) {
      await expect(page.locator(".page-head")).toContainText(number);
      const { pathname } = new URL(page.url());
      const before = keys;
      await press("button", "Approve Request");
      // the requested amount is prefilled
      await press("button", /^Approve for/);
      expect(keys - before, "keys from the page to the decision").toBeLessThanOrEqual(most);
      await expect(toast(page, "Request Approved").filter({ hasText: number })).toBeVisible();
      expect(new URL(page.url()).pathname).toBe(pathname);
      if (number === sent[0]?.number) await press("link", new RegExp(`${sent[1]?.number}`));
    }
    await expect(page.getByText("Nothing waits for you")).toBeVisible();
    expect(presses / sent.length).toBeLessThanOrEqual(4);
  });

  test("after a colleague's decision the page shows a message and the new state", async ({ page, request, people }) => {
    const { organization, admin, sent } = await opened(page, request, people, "manager");
    await answer(page, "Request More Information");
    await page.getByLabel("What do you need?").fill("A letter, please.");
    await rpc(request, admin.accessToken, "deny_request", {
      request_id: sent.id,
      nonprofit_id: organization.id,
      reason: "Outside our area.",
    });
    await page.getByRole("button", { name: "Request information" }).click();
    await expect(toast(page, "This request changed while you had it open")).toContainText(
      "This request has already been declined.",
    );
    await expect(page.locator(".page-head .badge")).toHaveText("Declined");
    await expect(page.getByText("Outside our area.")).toBeVisible();
  });

  test(
    "a withdrawn request says so, whether it was open or not",
    { tag: "@desk" },
    async ({ page, request, people, accessible }) => {
      const { organization, sent } = await opened(page, request, people);
      await expect(page.getByText("We need food until my new job starts.")).toBeVisible();
      await answer(page, "Request More Information");
      await page.getByLabel("What do you need?").fill("A letter, please.");
      await rpc(request, sent.person.accessToken, "withdraw_request", { id: sent.id });
      // the answer comes too late
      await page.getByRole("button", { name: "Request information" }).click();
      await expect(toast(page, "This request changed while you had it open")).toContainText(
        "This request has already been withdrawn.",
      );
      const panel = page.locator(".decide");
      await expect(panel.getByText("This request has already been withdrawn.")).toBeVisible();
      await accessible(page, page.getByRole("main"));
      await expect(panel.getByRole("button")).toHaveCount(0);

      const unread = await ask(request, people, [organization]);
      await rpc(request, unread.person.accessToken, "withdraw_request", { id: unread.id });
      await page.goto(`/nonprofit-request/${unread.number}`);
      await expect(page.getByText("This request has already been withdrawn.", { exact: true })).toBeVisible();
      // whom nobody here had seen stays unseen
      await expect(page.getByText("We need food until my new job starts.")).toHaveCount(0);
    },
  );

  test(
    "above the limit two different people must approve",
    { tag: "@desk" },
    async ({ page, request, people, browser, accessible }) => {
      const { organization, admin } = await found(request, people);
      const manager = await join(request, people, admin, organization, "manager");
      await rpc(request, admin.accessToken, "set_second_approval", { nonprofit_id: organization.id, above: 100 });
      await rpc(request, admin.accessToken, "record_donation", {
        nonprofit_id: organization.id,
        amount: 5000,
        donor_name: "Daniel",
      });
      const sent = await ask(request, people, [organization], "500");
      await people.signIn(page, manager);
      await page.goto(`/nonprofit-request/${sent.id}`);
      await answer(page, "Approve Request");
      await expect(page.getByRole("dialog").getByText("This amount needs two approvals.")).toBeVisible();
      await accessible(page, page.getByRole("dialog"));
      await page.getByRole("button", { name: "Approve for $500" }).click();
      await expect(toast(page, "First approval given")).toBeVisible();
      await expect(page.locator(".page-head .badge")).toHaveText("Processing");
      await expect(page.getByText("You gave the first approval for $500")).toBeVisible();
      await accessible(page, page.getByRole("main"));
      await expect(page.getByRole("button", { name: "Give second approval" })).toHaveCount(0);

      const context = await browser.newContext({ viewport: page.viewportSize() });
      const second = await context.newPage();
      await people.signIn(second, admin);
      await second.goto(`/nonprofit-request/${sent.id}`);
      await expect(second.getByText("Ruth Okonkwo approved $500")).toBeVisible();
      await accessible(second);
      await answer(second, "Give second approval");
      await second.getByRole("button", { name: "Approve for $500" }).click();
      await expect(toast(second, "Request Approved")).toBeVisible();
      await expect(second.locator(".page-head .badge")).toHaveText("Approved");
      await context.close();
    },
  );

  test("staff cannot decide their own request", { tag: "@desk" }, async ({ page, request, people, accessible }) => {
    const { organization, admin } = await found(request, people);
    const sent = await submitAs(request, admin, [organization]);
    await people.signIn(page, admin);
    await page.goto(`/nonprofit-request/${sent.id}`);
    await expect(page.getByRole("main").getByText("This is your own request")).toBeVisible();
    await expect(page.getByRole("button", { name: /Approve|Deny|Request More|Other answers/ })).toHaveCount(0);
    await accessible(page);
  });

  test("an unknown request redirects to the list", { tag: "@desk" }, async ({ page, request, people }) => {
    const { admin } = await found(request, people);
    await people.signIn(page, admin);
    const wasSaid = await watchToasts(page);
    await page.goto("/nonprofit-request/no-such-request");
    await expect(page).toHaveURL(/\/nonprofit-requests$/);
    await wasSaid("Request not found", "The requested aid request could not be found.");
  });

  test("an employee reads but does not decide, and sees neither budget nor team", async ({
    page,
    request,
    people,
    accessible,
  }) => {
    await opened(page, request, people, "employee");
    await expect(
      page.getByText("Limited Permissions: Only managers and admins can approve or deny requests."),
    ).toBeVisible();
    await expect(page.getByRole("button", { name: /Approve|Deny/ })).toHaveCount(0);
    await accessible(page);
    await page.goto("/nonprofit-dashboard");
    await expect(page.getByRole("tab")).toHaveText([/Overview/, /Aid Requests/]);
    await expect(page.getByRole("heading", { name: "Help Categories" })).toBeVisible();
    const wasSaid = await watchToasts(page);
    for (const [path, words] of [
      ["/nonprofit-budget", "You don't have permission to view the budget page."],
      ["/budget", "You don't have permission to view the budget page."],
      ["/nonprofit-team", "You don't have permission to view this page."],
      ["/team-management", "Only administrators can manage team members."],
      ["/nonprofit-settings", "You don't have permission to view this page."],
    ] as const) {
      await page.goto(path);
      await expect(page).toHaveURL(/\/nonprofit-dashboard$/);
      await wasSaid("Access Denied", words);
    }
  });
});
