/** An uploaded script does not run on the app's origin, neither in a page of ours nor as a page itself. */
import { expect, test } from "./fixtures/test";

/** The public secret key accepted by a development server. */
const SECRET_KEY = "sb_secret_N7UND0UgjKTVK-Uodkm0Hg_xSvEMPvz";

test("an uploaded script runs neither in an app page nor as its own page", async ({ page, request }) => {
  const headers = { apikey: SECRET_KEY };
  const bucket = `open-${crypto.randomUUID()}`;
  const made = await request.post("/storage/v1/bucket", { headers, data: { name: bucket, public: true } });
  expect(made.ok(), await made.text()).toBe(true);
  const script = "window.uploadedScriptRan = true";
  for (const [name, type, text] of [
    ["evil.js", "text/javascript", script],
    ["evil.html", "text/html", `<title>uploaded</title><script>${script}</script><script src="evil.js"></script>`],
    ["evil.svg", "image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg"><script>${script}</script></svg>`],
  ] as const) {
    const stored = await request.post(`/storage/v1/object/${bucket}/${name}`, {
      headers: { ...headers, "content-type": type },
      data: text,
    });
    expect(stored.ok(), await stored.text()).toBe(true);
  }
  const place = `/storage/v1/object/public/${bucket}`;
  const hasRun = () => page.evaluate(() => "uploadedScriptRan" in window);

  await page.goto("/faq");
  await expect(page.getByRole("heading", { level: 1, name: "Questions, answered plainly" })).toBeVisible();
  const outcome = await page.evaluate(
    (source) =>
      new Promise<string>((done) => {
        const element = Object.assign(document.createElement("script"), { src: source });
        element.addEventListener("load", () => done("loaded"));
        element.addEventListener("error", () => done("refused"));
        document.head.append(element);
      }),
    `${place}/evil.js`,
  );
  expect(outcome).toBe("refused");
  const worker = await page.evaluate(
    (source) =>
      new Promise<string>((done) => {
        try {
          const made = new Worker(source);
          made.addEventListener("error", () => done("refused"));
          made.addEventListener("message", () => done("ran"));
        } catch {
          done("refused");
        }
      }),
    `${place}/evil.js`,
  );
  expect(worker).toBe("refused");
  expect(await hasRun()).toBe(false);

  for (const name of ["evil.html", "evil.svg"]) {
    const response = await page.goto(`${place}/${name}`);
    expect(response?.ok()).toBe(true);
    expect(await hasRun(), name).toBe(false);
  }
});
