// Pictures of the main screens for docs/screens: `just screens`, against a server with the demo data (BASE_URL).
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "@playwright/test";

const base = process.env.BASE_URL ?? "http://127.0.0.1:54321";
const folder = fileURLToPath(new URL("../../docs/screens/", import.meta.url));
const password = "aidbridge-demo1A";
mkdirSync(folder, { recursive: true });

const shots = [
  ["home", "/", null],
  ["wizard", "/request-submission", null],
  ["status", "/request-status?id=REQ-002", null],
  ["login", "/login", null],
  ["requester-dashboard", "/requester-dashboard", "requester"],
  ["my-requests", "/my-requests", "requester"],
  ["request-detail", "/request/REQ-004", "requester"],
  ["nonprofit-dashboard", "/nonprofit-dashboard", "manager"],
  ["incoming-requests", "/nonprofit-requests", "manager"],
  ["nonprofit-request", "/nonprofit-request/REQ-001", "manager"],
  ["budget", "/nonprofit-budget", "manager"],
  ["donor-dashboard", "/donor-dashboard", "donor"],
];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH,
  args: ["--disable-gpu", "--disable-background-networking", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])],
});

for (const who of [null, "requester", "manager", "donor"]) {
  for (const [width, height] of [
    [1280, 860],
    [390, 844],
  ]) {
    for (const colorScheme of ["light", "dark"]) {
      const context = await browser.newContext({
        viewport: { width, height },
        colorScheme,
        locale: "en-US",
        reducedMotion: "reduce",
      });
      const page = await context.newPage();
      if (who) {
        await page.goto(`${base}/login`);
        await page.getByLabel("Email").fill(`${who}@demo.aidbridge.test`);
        await page.getByLabel("Password", { exact: true }).fill(password);
        await page.getByRole("main").getByRole("button", { name: "Login" }).click();
        await page.waitForURL((url) => url.pathname !== "/login" && url.pathname !== "/dashboard");
      }
      for (const [name, path, owner] of shots) {
        if (owner !== who) continue;
        await page.goto(base + path);
        // on a busy machine the network is idle long before the page is rendered
        await page.getByRole("main").getByRole("heading", { level: 1 }).first().waitFor();
        await page.waitForFunction(() => !document.querySelector("main span.sk, main [aria-busy=true]"));
        await page.waitForLoadState("networkidle");
        await page.waitForTimeout(300);
        await page.screenshot({ path: `${folder}${name}-${width}${colorScheme === "dark" ? "-dark" : ""}.png` });
      }
      await context.close();
    }
  }
}
await browser.close();
console.log(`pictures are in ${folder}`);
