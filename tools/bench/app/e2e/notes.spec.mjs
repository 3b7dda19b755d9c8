// The app in a browser: what one page writes appears on another.
import { expect, test } from "@playwright/test";

async function enter(page, verb, email) {
  await page.goto("/");
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill("secret words");
  await page.getByRole("button", { name: verb }).click();
  await expect(page.getByText("Live")).toBeVisible();
}

test("a note shows on another page of the same person", async ({ page, browser }) => {
  await enter(page, "Sign up", "ada@example.com");
  const other = await (await browser.newContext()).newPage();
  await enter(other, "Sign in", "ada@example.com");
  await page.getByLabel("Title").fill("Milk");
  await page.getByRole("button", { name: "Add" }).click();
  await expect(other.getByRole("listitem")).toHaveText(["Milk"]);
});

test("a session survives a reload, and ends", async ({ page }) => {
  await enter(page, "Sign up", "bob@example.com");
  await page.reload();
  await expect(page.getByText("bob@example.com")).toBeVisible();
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByLabel("Password")).toBeVisible();
});
