/** The list of incoming requests: tabs, search, order, the file. */
import { rpc } from "./fixtures/api";
import { ask, found } from "./fixtures/staff";
import { isPhone } from "./fixtures/staff-pages";
import { expect, test } from "./fixtures/test";

test("the list: tabs, search and order in the URL; empty states; CSV", async ({
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
  await accessible(page, page.getByRole("main"));
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
