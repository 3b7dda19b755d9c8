import { createServer } from "node:http";
import { connectFerrobase } from "@ferrobase/testing";
import { expect, test } from "@playwright/test";

const ferrobase = connectFerrobase();

// Stands for an app.
const html = `<form><label>Address <input name="email"></label><button>Sign up</button></form><output></output>
<script>
  document.querySelector("form").onsubmit = async (event) => {
    event.preventDefault();
    const body = JSON.stringify({ email: event.target.email.value, password: "secret-Words-1" });
    const headers = { apikey: "${ferrobase.anonKey}", "content-type": "application/json" };
    await fetch("${ferrobase.url}/auth/v1/signup", { method: "POST", headers, body });
    document.querySelector("output").textContent = "Look into your inbox";
  };
</script>`;
const app = createServer((_, answer) => answer.setHeader("content-type", "text/html").end(html));

test.beforeAll(() => new Promise((resolve) => app.listen(0, "127.0.0.1", resolve)));
test.afterAll(() => app.close());
test.afterEach(() => ferrobase.reset());

for (const round of ["first", "second"]) {
  test(`a person signs up and follows the link of the mail, the ${round} time`, async ({ page }) => {
    await page.goto(`http://127.0.0.1:${app.address().port}/`);
    await page.getByLabel("Address").fill("ada@example.com");
    await page.getByRole("button", { name: "Sign up" }).click();
    await expect(page.getByText("Look into your inbox")).toBeVisible();
    const mails = await ferrobase.inbox("ada@example.com");
    expect(mails).toHaveLength(1);
    await page.goto(mails[0].links[0]);
    await expect(page).toHaveURL(/^http:\/\/127\.0\.0\.1:\d+\/#access_token=/);
  });
}
