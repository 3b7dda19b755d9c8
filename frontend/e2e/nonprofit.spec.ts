/** The nonprofit's side: founding, the three decisions, team, budget, settings, donors' messages. */
import { mailTo, rpc } from "./fixtures/api";
import { ask, found, invitationToken, join, prove } from "./fixtures/staff";
import { answer, figure, isPhone, toast } from "./fixtures/staff-pages";
import { expect, test } from "./fixtures/test";

// each page is looked at by axe in both themes, which takes its time
test.describe.configure({ timeout: 300_000 });

test.describe("founding an organization", () => {
  test("asks for everything at once, keeps what was typed, and opens the dashboard", async ({
    page,
    people,
    accessible,
  }) => {
    const founder = await people.create("nonprofit", "Amélie Haïtien");
    await people.signIn(page, founder);
    await page.goto("/nonprofit-dashboard");
    await expect(page.getByRole("heading", { name: "Complete your organization setup" })).toBeVisible();
    await accessible(page);
    await page.getByRole("button", { name: "Team Management" }).click();
    await expect(toast(page, "Organization required")).toContainText("You need to create an organization first");
    await page.getByRole("link", { name: "Set up your organization" }).click();

    await page.getByRole("button", { name: "Create organization" }).click();
    await expect(toast(page, "Please complete all required fields")).toBeVisible();
    await expect(page.getByRole("alert").getByRole("link")).toHaveCount(5);
    await accessible(page);
    await page.getByRole("alert").getByRole("link", { name: "Write the registration number" }).click();
    await expect(page.getByLabel("Registration number")).toBeFocused();

    await page.getByLabel("Organization name").fill("Casco Bay Pantry");
    await page.getByLabel("Legal status").fill("501(c)(3)");
    await page.getByLabel("Registration number").fill("01-0555001");
    await page.getByLabel("Mission").fill("We keep families fed.");
    await page.getByLabel("Name", { exact: true }).first().fill("Food Assistance");
    await page.getByLabel("What it covers").first().fill("Groceries within a day");
    await page.getByLabel("Name", { exact: true }).nth(1).fill("Without a description");
    await page.reload();
    await expect(page.getByLabel("Mission")).toHaveValue("We keep families fed.");

    await page.getByLabel("Number of employees").fill("many");
    await page.getByRole("button", { name: "Create organization" }).click();
    await expect(page.getByText("The number of employees must be a whole number")).toBeVisible();
    await page.getByLabel("Number of employees").fill("4");
    await page.getByRole("button", { name: "Create organization" }).click();

    await expect(toast(page, "Organization created")).toBeVisible();
    await expect(page).toHaveURL(/\/nonprofit-dashboard$/);
    await expect(page.getByRole("heading", { name: "Welcome, Amélie" })).toBeVisible();
    await expect(page.getByText("Admin at Casco Bay Pantry")).toBeVisible();
    await page.getByRole("tab", { name: "Categories" }).click();
    await expect(page.getByRole("tabpanel").getByText("Food Assistance")).toBeVisible();
    await expect(page.getByText("Without a description")).toHaveCount(0);
    await page.goto("/nonprofit-onboarding");
    await expect(page).toHaveURL(/\/nonprofit-dashboard$/);
  });

  test("a sub-role must be chosen, and without a membership asks for an invitation", async ({
    page,
    people,
    accessible,
  }) => {
    const someone = await people.create("nonprofit");
    await people.signIn(page, someone);
    await page.goto("/nonprofit-role-selection");
    await expect(page.getByRole("radio")).toHaveCount(3);
    await accessible(page);
    await page.getByRole("radio", { name: /Employee/ }).click();
    await page.getByRole("button", { name: "Continue" }).click();
    await expect(page).toHaveURL(/\/nonprofit-dashboard$/);
    await expect(page.getByRole("heading", { name: "Ask your admin for an invitation" })).toBeVisible();
    await page.goto("/nonprofit-requests");
    await expect(page.getByText("Ask your admin for an invitation")).toBeVisible();
  });
});

test.describe("deciding on a request", () => {
  test("a manager approves: list, figures, the person's mail and the other nonprofit follow", async ({
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
    await dialog.getByLabel("Amount").fill("1,200.50");
    await expect(dialog.getByText("This is more than you have left")).toBeVisible();
    await accessible(page);
    await dialog.getByRole("button", { name: "Approve for $1,200.50" }).click();

    await expect(toast(page, "Request Approved")).toContainText(`${sent.number} is approved for $1,200.50.`);
    await expect(page.getByText("This request has already been approved.")).toBeVisible();
    await expect(page.locator(".page-head .badge")).toHaveText("Approved");
    expect((await mailTo(request, sent.person.email, /approved/)).text).toContain("$1200.50");

    await page.goto("/nonprofit-dashboard");
    await expect(figure(page, "Approved")).toHaveText("1");
    await expect(figure(page, "Pending")).toHaveText("0");

    await rpc(request, other.admin.accessToken, "open_request", {
      request_id: sent.id,
      nonprofit_id: other.organization.id,
    }).then((opened) => expect(opened).toMatchObject({ visible: false }));
  });

  test("denying needs a reason from the list and words for the person", async ({
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
    await dialog.getByLabel("Reason").click();
    await page.getByRole("option", { name: "Funding limit reached" }).click();
    await expect(deny).toBeDisabled();
    await dialog.getByLabel("Message to the person").fill("Our fund is empty until January.");
    await accessible(page);
    await deny.click();
    await expect(toast(page, "Request Declined")).toBeVisible();
    await expect(page.locator(".page-head .badge")).toHaveText("Declined");
    expect((await mailTo(request, sent.person.email, /declined/)).text).toContain("Our fund is empty until January.");
  });

  test("asking for more keeps the request pending; the answer shows", async ({ page, request, people, accessible }) => {
    const { organization, admin } = await found(request, people);
    const sent = await ask(request, people, [organization]);
    await people.signIn(page, admin);
    await page.goto(`/nonprofit-request/${sent.id}`);
    await answer(page, "Request More Information");
    const dialog = page.getByRole("dialog");
    await expect(dialog.getByRole("button", { name: "Request information" })).toBeDisabled();
    await dialog.getByLabel("What do you need?").fill("Please send the letter from the new job.");
    await accessible(page);
    await dialog.getByRole("button", { name: "Request information" }).click();
    await expect(toast(page, "Additional Information Requested")).toBeVisible();
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

  test("a colleague was faster: the page says so and shows the new state", async ({ page, request, people }) => {
    const { organization, admin } = await found(request, people);
    const manager = await join(request, people, admin, organization, "manager");
    const sent = await ask(request, people, [organization]);
    await people.signIn(page, manager);
    await page.goto(`/nonprofit-request/${sent.id}`);
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

  test("above the limit two different people must approve", async ({ page, request, people, browser, accessible }) => {
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
    await page.getByRole("button", { name: "Approve for $500" }).click();
    await expect(toast(page, "First approval given")).toBeVisible();
    await expect(page.locator(".page-head .badge")).toHaveText("Processing");
    await expect(page.getByText("You gave the first approval for $500")).toBeVisible();
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
  });

  test("an unknown request sends back to the list", async ({ page, request, people }) => {
    const { admin } = await found(request, people);
    await people.signIn(page, admin);
    await page.goto("/nonprofit-request/no-such-request");
    await expect(page).toHaveURL(/\/nonprofit-requests$/);
    await expect(toast(page, "Request not found")).toContainText("The requested aid request could not be found.");
  });

  test("an employee reads but does not decide, and sees neither budget nor team", async ({
    page,
    request,
    people,
    accessible,
  }) => {
    const { organization, admin } = await found(request, people);
    const employee = await join(request, people, admin, organization, "employee");
    const sent = await ask(request, people, [organization]);
    await people.signIn(page, employee);
    await page.goto(`/nonprofit-request/${sent.id}`);
    await expect(
      page.getByText("Limited Permissions: Only managers and admins can approve or deny requests."),
    ).toBeVisible();
    await expect(page.getByRole("button", { name: /Approve|Deny/ })).toHaveCount(0);
    await accessible(page);
    await page.goto("/nonprofit-dashboard");
    await expect(page.getByRole("tab")).toHaveText([/Overview/, /Aid Requests/]);
    await expect(page.getByRole("heading", { name: "Help Categories" })).toBeVisible();
    for (const [path, words] of [
      ["/nonprofit-budget", "You don't have permission to view the budget page."],
      ["/budget", "You don't have permission to view the budget page."],
      ["/nonprofit-team", "You don't have permission to view this page."],
      ["/team-management", "Only administrators can manage team members."],
      ["/nonprofit-settings", "You don't have permission to view this page."],
    ] as const) {
      await page.goto(path);
      await expect(page).toHaveURL(/\/nonprofit-dashboard$/);
      await expect(toast(page, "Access Denied")).toContainText(words);
    }
  });
});

test("the list: tabs, search and order live in the address; empty states; CSV", async ({
  page,
  request,
  people,
  accessible,
}) => {
  const { organization, admin } = await found(request, people);
  await people.signIn(page, admin);
  await page.goto("/nonprofit-requests");
  await expect(page.getByText("When somebody chooses your organization, the request appears here.")).toBeVisible();
  await accessible(page);

  const first = await ask(request, people, [organization], "100");
  const second = await ask(request, people, [organization], "900");
  await rpc(request, admin.accessToken, "deny_request", {
    request_id: first.id,
    nonprofit_id: organization.id,
    reason: "Outside our area.",
  });
  await page.reload();
  await expect(page.getByRole("link", { name: first.number, exact: true })).toBeVisible();
  await expect(page.getByText("One waits for you.")).toBeVisible();
  await accessible(page);

  await page.getByRole("tab", { name: /Declined/ }).click();
  await expect(page).toHaveURL(/\?status=declined$/);
  await expect(page.getByRole("link", { name: second.number, exact: true })).toHaveCount(0);
  await page.getByLabel("Search requests").fill("nothing like this");
  await expect(page).toHaveURL(/q=nothing\+like\+this/);
  await expect(page.getByText("No requests match your current filters.")).toBeVisible();
  await page.reload();
  await expect(page.getByLabel("Search requests")).toHaveValue("nothing like this");
  await page.getByRole("button", { name: "Clear Filters" }).click();
  await expect(page).toHaveURL(/\/nonprofit-requests$/);
  await expect(page.getByLabel("Search requests")).toHaveValue("");
  await page.getByLabel("Search requests").fill(second.number.toLowerCase());
  await expect(page.getByRole("link", { name: first.number, exact: true })).toHaveCount(0);
  await expect(page.getByRole("link", { name: second.number, exact: true })).toBeVisible();
  await page.goto("/nonprofit-requests?sort=amount");

  if (isPhone(page)) return;
  await expect(page.locator("tbody tr td:first-child")).toHaveText([first.number, second.number]);
  await page.getByRole("button", { name: "Amount" }).click();
  await expect(page).toHaveURL(/sort=-amount/);
  await expect(page.locator("tbody tr td:first-child")).toHaveText([second.number, first.number]);
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export CSV" }).click();
  const stream = await (await download).createReadStream();
  let csv = "";
  for await (const chunk of stream) csv += String(chunk);
  expect(csv).toContain("Request ID,Category,Date,Amount,Status");
  expect(csv).toMatch(new RegExp(`${second.number},Food Assistance,\\d{4}-\\d{2}-\\d{2},900,Pending,No,`));
  expect(csv).not.toContain("Désir");
});

test("the team: invite, accept by mail, edit, deactivate, activate", async ({
  page,
  request,
  people,
  browser,
  accessible,
}) => {
  const { organization, admin } = await found(request, people);
  const colleague = await people.create("nonprofit", "Tomasz Kowalczyk");
  await people.signIn(page, admin);
  await page.goto("/team-management");
  await accessible(page);
  await page.getByRole("button", { name: "Add Member" }).click();
  await page.getByRole("button", { name: "Send invitation" }).click();
  await expect(toast(page, "Missing Information")).toContainText("Please fill in all required fields.");
  await page.getByLabel("Full name").fill("Tomasz Kowalczyk");
  await page.getByLabel("Email", { exact: true }).fill(colleague.email);
  await accessible(page);
  await page.getByRole("button", { name: "Send invitation" }).click();
  // the founder's own address is not proved yet: the invitation waits, and goes with the proof
  await expect(toast(page, "Team Member Added")).toContainText("as soon as you have confirmed your own email address");
  const row = page.getByRole("row").filter({ hasText: "Tomasz Kowalczyk" });
  await expect(row).toContainText("Not sent yet");
  await expect(page.getByText("Confirm your email address first")).toBeVisible();
  await page.getByRole("button", { name: "Send me a code" }).click();
  const { subject } = await mailTo(request, admin.email, /is your AidBridge code$/);
  await page.getByLabel("Code").fill("12");
  await page.getByRole("button", { name: "Check code" }).click();
  await expect(page.getByText("The code has six digits.")).toBeVisible();
  await page.getByLabel("Code").fill(subject.slice(0, 6));
  await page.getByRole("button", { name: "Check code" }).click();
  await expect(toast(page, "Email address confirmed")).toContainText("One invitation is on its way.");
  await expect(page.getByText("Confirm your email address first")).toHaveCount(0);
  await expect(row).toContainText("Invited");
  await expect(row).toContainText("Employee");

  await page.getByRole("button", { name: "Add Member" }).click();
  await page.getByLabel("Full name").fill("Again");
  await page.getByLabel("Email", { exact: true }).fill(colleague.email.toUpperCase());
  await page.getByRole("button", { name: "Send invitation" }).click();
  await expect(page.getByText("Somebody with this email is already on the team.")).toBeVisible();
  await page.getByRole("button", { name: "Cancel" }).click();

  const context = await browser.newContext();
  const theirs = await context.newPage();
  await people.signIn(theirs, colleague);
  await theirs.goto(`/team-invitation?token=${await invitationToken(request, colleague.email)}`);
  await theirs.getByRole("button", { name: "Accept" }).click();
  await expect(theirs).toHaveURL(/\/nonprofit-dashboard$/);
  await expect(theirs.getByText(`Employee at ${organization.name}`)).toBeVisible();

  await page.reload();
  await expect(row).toContainText("Active");
  await page.getByRole("button", { name: "Edit Tomasz Kowalczyk" }).click();
  await page.getByLabel("Role").click();
  await page.getByRole("option", { name: "Manager" }).click();
  await page.getByRole("button", { name: "Save changes" }).click();
  await expect(row).toContainText("Manager");

  await page.getByLabel("Search team members").fill("tomasz");
  await expect(page.getByRole("row").filter({ hasText: admin.email })).toHaveCount(0);
  await page.getByRole("button", { name: "Deactivate Tomasz Kowalczyk" }).click();
  await accessible(page);
  await page.getByRole("alertdialog").getByRole("button", { name: "Deactivate" }).click();
  await expect(toast(page, "Member Deactivated")).toBeVisible();
  await expect(row).toContainText("Inactive");
  await theirs.goto("/nonprofit-requests");
  await expect(theirs.getByText("Ask your admin for an invitation")).toBeVisible();
  await page.getByRole("button", { name: "Activate Tomasz Kowalczyk" }).click();
  await expect(toast(page, "Member Activated")).toBeVisible();
  await theirs.reload();
  await theirs.goto("/team-management");
  await expect(toast(theirs, "Access Denied")).toContainText("Only administrators can manage team members.");
  await theirs.goto("/nonprofit-team");
  await expect(theirs.getByText("Only administrators can manage team members.")).toBeVisible();
  await expect(theirs.getByRole("button", { name: "Add Member" })).toHaveCount(0);
  await accessible(theirs);
  await context.close();

  await page.goto("/team-management");
  await page.getByRole("button", { name: "Deactivate Amélie Haïtien" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Deactivate" }).click();
  await expect(toast(page, "Update failed")).toContainText("An organization needs at least one active admin.");
});

test("one allocation, donation, decision and payout move each figure", async ({
  page,
  request,
  people,
  accessible,
}) => {
  const { organization, admin } = await found(request, people);
  const sent = await ask(request, people, [organization], "300");
  await people.signIn(page, admin);
  await page.goto("/nonprofit-budget");
  await expect(figure(page, "Donated")).toHaveText("$0");
  await accessible(page);

  await page.getByRole("button", { name: "Set allocations" }).click();
  await page.getByLabel("Food Assistance").fill("1,000");
  await accessible(page);
  await page.getByRole("button", { name: "Save allocations" }).click();
  await expect(toast(page, "Allocations saved")).toContainText("$1,000 is allocated now.");
  await expect(figure(page, "Allocated")).toHaveText("$1,000");

  await page.getByRole("button", { name: "Record donation" }).click();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("alert").getByRole("link")).toHaveCount(2);
  await page.getByLabel("Donor", { exact: true }).fill("Daniel Whitcombe");
  await page.getByLabel("Amount").fill("800");
  await page.getByRole("button", { name: "Record $800" }).click();
  await expect(toast(page, "Donation recorded")).toBeVisible();
  await expect(figure(page, "Donated")).toHaveText("$800");
  await expect(figure(page, "Remaining")).toContainText("$800");
  await expect(page.getByRole("row").filter({ hasText: "Daniel Whitcombe" })).toContainText("+ $800");

  await rpc(request, admin.accessToken, "approve_request", {
    request_id: sent.id,
    nonprofit_id: organization.id,
    amount: 300,
  });
  await page.reload();
  await expect(figure(page, "Approved")).toHaveText("$300");
  await expect(figure(page, "Remaining")).toContainText("$500");
  await expect(page.getByRole("heading", { name: "Utilization 30%" })).toBeVisible();
  await expect(page.locator(".alloc li")).toContainText("$300 of $1,000");

  await page.getByRole("tab", { name: "Payouts" }).click();
  await page.getByRole("button", { name: `Record payout for ${sent.number}` }).click();
  await page.getByLabel("Amount").fill("300.01");
  await page.getByRole("button", { name: "Record $300.01" }).click();
  await expect(page.getByText("This is more than what is left of the grant")).toBeVisible();
  await page.getByLabel("Amount").fill("120");
  await page.getByRole("button", { name: "Record $120" }).click();
  await expect(toast(page, "Payout recorded")).toBeVisible();
  await expect(page.getByRole("row").filter({ hasText: sent.number })).toContainText("$180");
  await accessible(page);

  await page.goto("/nonprofit-dashboard");
  await expect(figure(page, "Budget Used")).toHaveText("12%");
  await expect(page.getByText("Used", { exact: true }).locator("..")).toContainText("$120");
});

test("a pledge waits until it is marked as received", async ({ page, request, people, accessible }) => {
  const { organization, admin } = await found(request, people);
  await rpc(request, null, "pledge_donation", {
    input: {
      nonprofit_id: organization.id,
      amount: "75",
      email: "pledge@mail.example",
      name: "Priya Raman",
      key: crypto.randomUUID(),
    },
  });
  await people.signIn(page, admin);
  await page.goto("/budget?tab=donations");
  await expect(page.getByText("Pledged")).toBeVisible();
  await accessible(page);
  await page.getByRole("button", { name: "Mark $75 from Priya Raman as received" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Mark as received" }).click();
  await expect(toast(page, "Donation received")).toBeVisible();
  await expect(figure(page, "Donated")).toHaveText("$75");
  await expect(page.getByText("Received", { exact: true })).toBeVisible();
});

test("settings: admins change them, managers read them; the logo; help categories", async ({
  page,
  request,
  people,
  browser,
  accessible,
}) => {
  const { organization, admin } = await found(request, people);
  const manager = await join(request, people, admin, organization, "manager");
  await people.signIn(page, admin);
  await page.goto("/nonprofit-settings");
  await accessible(page);
  await page.getByLabel("Website").fill("harbor.example");
  await page.getByRole("button", { name: "Save changes" }).click();
  await expect(page.getByText("Write the whole address, beginning with https://")).toBeVisible();
  await page.getByLabel("Website").fill("https://harbor.example");
  await page.getByLabel("Second approval above").fill("1000");
  await page.getByRole("button", { name: "Save changes" }).click();
  await expect(toast(page, "Settings saved")).toBeVisible();
  await page.reload();
  await expect(page.getByLabel("Website")).toHaveValue("https://harbor.example");
  await expect(page.getByLabel("Second approval above")).toHaveValue("1000");

  await page.getByRole("tab", { name: "Branding" }).click();
  const png = Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64",
  );
  await page
    .locator("input[type=file]")
    .setInputFiles({ name: "logo.svg", mimeType: "image/svg+xml", buffer: Buffer.from("<svg/>") });
  await expect(toast(page, "Invalid file type")).toContainText("logo.svg is not an accepted file type.");
  await page
    .locator("input[type=file]")
    .setInputFiles({ name: "big.png", mimeType: "image/png", buffer: Buffer.alloc(5 * 1024 * 1024 + 1) });
  await expect(toast(page, "File too large")).toContainText("big.png exceeds the maximum file size of 5MB.");
  await page.locator("input[type=file]").setInputFiles({ name: "logo.png", mimeType: "image/png", buffer: png });
  await accessible(page);
  await page.getByRole("button", { name: "Save logo" }).click();
  await expect(toast(page, "Logo updated")).toBeVisible();
  const logo = page.getByRole("img", { name: `Logo of ${organization.name}` });
  await expect(logo).toBeVisible();
  await expect.poll(() => logo.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBeGreaterThan(0);

  await page.getByRole("tab", { name: "Help Categories" }).click();
  await page.getByRole("button", { name: "Add category" }).click();
  await expect(page.getByText("Category name required")).toHaveCount(0);

  await page.goto("/categories-management");
  await accessible(page);
  await page.getByRole("button", { name: "Add category" }).click();
  await expect(page.locator("form .error")).toHaveText("Category name required");
  await page.getByLabel("Category name").fill("food assistance");
  await page.getByRole("button", { name: "Add category" }).click();
  await expect(page.getByText("You already have a category with this name.")).toBeVisible();
  await page.getByLabel("Category name").fill("Rent Support");
  await page.getByRole("button", { name: "Add category" }).click();
  await expect(toast(page, "Category added")).toBeVisible();
  await page.getByRole("button", { name: "Delete Rent Support" }).click();
  await page.getByRole("button", { name: "Delete category" }).click();
  await expect(toast(page, "Category deleted")).toBeVisible();
  await expect(page.getByRole("listitem").filter({ hasText: "Rent Support" })).toHaveCount(0);

  const context = await browser.newContext();
  const theirs = await context.newPage();
  await people.signIn(theirs, manager);
  await theirs.goto("/nonprofit-settings");
  await expect(theirs.getByLabel("Organization name")).toHaveAttribute("readonly");
  await expect(theirs.getByRole("button", { name: "Save changes" })).toHaveCount(0);
  await theirs.getByRole("tab", { name: "Help Categories" }).click();
  await expect(theirs.getByText("Only administrators can manage help categories.")).toBeVisible();
  await expect(theirs.getByRole("button", { name: "Add category" })).toHaveCount(0);
  await accessible(theirs);
  await context.close();
});

test("writing to donors: rules at the fields, kept while away, then under Sent", async ({
  page,
  request,
  people,
  accessible,
}) => {
  const { organization, admin } = await found(request, people);
  await prove(request, admin);
  await rpc(request, admin.accessToken, "record_donation", {
    nonprofit_id: organization.id,
    amount: 20,
    donor_name: "Daniel",
    donor_email: "daniel.by.mail@mail.example",
  });
  await people.signIn(page, admin);
  await page.goto("/nonprofit-donor-communication");
  await expect(page.getByText("One active donor gets your messages.")).toBeVisible();
  await page.getByRole("button", { name: "Send message" }).click();
  await expect(page.getByText("Subject is required").first()).toBeVisible();
  await expect(page.getByText("Message must be at least 10 characters").first()).toBeVisible();
  await accessible(page);
  await page.getByLabel("Subject").fill("Winter pantry opens");
  await page.getByRole("textbox", { name: "Message" }).fill("It opens on Monday at nine.");
  await page.reload();
  await expect(page.getByRole("textbox", { name: "Message" })).toHaveValue("It opens on Monday at nine.");
  await page.getByRole("button", { name: "Send message" }).click();
  await expect(toast(page, "Message sent successfully")).toBeVisible();
  await expect(page).toHaveURL(/tab=sent/);
  await page.getByRole("button", { name: "Winter pantry opens" }).click();
  await expect(page.getByText("To one donor")).toBeVisible();
  expect((await mailTo(request, "daniel.by.mail@mail.example", /Winter pantry opens/)).text).toContain("Unsubscribe:");
  await page.getByRole("tab", { name: "Inbox" }).click();
  await expect(page.getByText("When a donor answers one of your messages, you read it here.")).toBeVisible();
  await accessible(page);
});

test("when the server fails, the page says what failed and keeps what was typed", async ({ page, request, people }) => {
  const { admin } = await found(request, people);
  const newcomer = await people.create("nonprofit");
  const broken = (path: string, method: string) =>
    page.route(`**/rest/v1/${path}`, (route) =>
      route.request().method() === method
        ? route.fulfill({ status: 500, json: { code: "XX000", message: "internal", details: null, hint: null } })
        : route.fallback(),
    );
  await people.signIn(page, admin);

  await broken("nonprofit_team_members**", "GET");
  await page.goto("/team-management");
  await expect(page.getByRole("heading", { name: "Error retrieving team" })).toBeVisible();
  await expect(toast(page, "Error")).toContainText("Failed to load team members.");
  await page.unrouteAll();
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(page.getByRole("row").filter({ hasText: admin.email })).toBeVisible();

  await broken("nonprofit_team_members**", "POST");
  await page.getByRole("button", { name: "Add Member" }).click();
  await page.getByLabel("Full name").fill("Ruth Okonkwo");
  await page.getByLabel("Email", { exact: true }).fill("ruth@mail.example");
  await page.getByRole("button", { name: "Send invitation" }).click();
  await expect(toast(page, "Error adding team member")).toContainText("Failed to add team member.");
  await expect(page.getByLabel("Full name")).toHaveValue("Ruth Okonkwo");
  await page.unrouteAll();

  await broken("categories**", "GET");
  await page.goto("/categories-management");
  await expect(toast(page, "Error retrieving categories")).toContainText("Failed to load categories");
  await page.unrouteAll();
  await page.getByRole("button", { name: "Try again" }).click();
  await broken("categories**", "POST");
  await page.getByLabel("Category name").fill("Rent Support");
  await page.getByRole("button", { name: "Add category" }).click();
  await expect(toast(page, "Error adding category")).toContainText("Failed to add category");
  await expect(page.getByLabel("Category name")).toHaveValue("Rent Support");
  await broken("categories**", "DELETE");
  await page.getByRole("button", { name: "Delete Food Assistance" }).click();
  await page.getByRole("button", { name: "Delete category" }).click();
  await expect(toast(page, "Error")).toContainText("Failed to delete category");
  await page.unrouteAll();

  await page.context().clearCookies();
  await page.evaluate(() => localStorage.clear());
  await people.signIn(page, newcomer);
  await page.goto("/nonprofit-onboarding");
  await broken("rpc/create_organization", "POST");
  await page.getByLabel("Organization name").fill("Casco Bay Pantry");
  await page.getByLabel("Legal status").fill("501(c)(3)");
  await page.getByLabel("Registration number").fill("01-0555001");
  await page.getByLabel("Number of employees").fill("4");
  await page.getByLabel("Mission").fill("We keep families fed.");
  await page.getByRole("button", { name: "Create organization" }).click();
  await expect(toast(page, "Error creating organization")).toContainText(
    "Failed to create organization. Please try again.",
  );
  await expect(page.getByLabel("Mission")).toHaveValue("We keep families fed.");
});
