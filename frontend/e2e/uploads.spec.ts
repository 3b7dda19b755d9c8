/** Documents on a slow connection: a photo shrunk on the phone, and a resumed upload. */
import { expect, test } from "./fixtures/test";

test("a photo is resized and its upload survives a broken connection", async ({ page, browserName }) => {
  expect(browserName).toBe("chromium");
  await page.goto("/request-submission?form=single");
  const photo = Buffer.from(
    await page.evaluate(async () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [3000, 2000];
      const drawing = canvas.getContext("2d") as CanvasRenderingContext2D;
      const noise = drawing.createImageData(3000, 2000);
      for (let at = 0; at < noise.data.length; at += 1) noise.data[at] = (at * 2654435761) >>> 24;
      drawing.putImageData(noise, 0, 0);
      const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/jpeg", 0.95));
      const bytes = new Uint8Array(await (blob as Blob).arrayBuffer());
      let text = "";
      for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
      return btoa(text);
    }),
    "base64",
  );
  const asked: string[] = [];
  let broken = 0;
  await page.route("**/storage/v1/upload/resumable/**", (route) => {
    const method = route.request().method();
    asked.push(method);
    if (method === "PATCH" && broken < 2) {
      broken += 1;
      return route.abort("connectionreset");
    }
    return route.continue();
  });
  const announced = page.waitForRequest(
    (request) => request.method() === "POST" && request.url().endsWith("/upload/resumable/sign"),
  );
  await page.locator("input[type=file]").setInputFiles({ name: "letter.jpg", mimeType: "image/jpeg", buffer: photo });
  expect(Number((await announced).headers()["upload-length"])).toBeLessThan(photo.length);
  await expect(page.getByText(/MB, arrived/)).toBeVisible();
  expect(asked.filter((method) => method !== "OPTIONS")).toEqual(["POST", "PATCH", "HEAD", "PATCH", "HEAD", "PATCH"]);
});

test("offline a document is shown as waiting and uploads when the connection is back", async ({
  page,
  context,
  accessible,
}) => {
  await page.goto("/request-submission?form=single");
  await page.route("**/storage/v1/upload/resumable/**", (route) => route.abort("internetdisconnected"));
  const begun = page.waitForRequest(/\/upload\/resumable\/sign/);
  await page
    .locator("input[type=file]")
    .setInputFiles({ name: "rent.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4\n%%EOF") });
  await begun;
  await context.setOffline(true);
  await expect(page.getByText("waits for the connection")).toBeVisible();
  await accessible(page, page.getByRole("main"));
  await page.unroute("**/storage/v1/upload/resumable/**");
  await context.setOffline(false);
  await expect(page.getByText(/MB, arrived/)).toBeVisible();
});
