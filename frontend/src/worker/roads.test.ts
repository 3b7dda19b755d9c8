import { describe, expect, it } from "vitest";
import { roadOf, type Road } from "./roads";

const ORIGIN = "https://aid.example";

describe("how the service worker routes a request", () => {
  it.each<[Road, string, string]>([
    ["file", "cors", "/assets/index-DJBBz_cz.js"],
    ["fresh", "no-cors", "/theme.js"],
    ["fresh", "cors", "/app-config.json"],
    ["page", "navigate", "/"],
    ["page", "navigate", "/submit-request?step=review"],
    ["page", "navigate", "/nonprofit-request/REQ-001"],
    // a link in a mail, an opened file: pages for the browser, but answers of the server
    ["network", "navigate", "/auth/v1/verify?token=1"],
    ["network", "navigate", "/storage/v1/object/public/logos/a.html"],
    ["network", "navigate", "/assets-of-others"],
    ["network", "cors", "/submit-request"],
    ["network", "cors", "/rest/v1/requests"],
    ["network", "cors", "/functions/v1/get-categories"],
    ["network", "cors", "/assets/../rest/v1/requests"],
    ["network", "navigate", "https://elsewhere.example/submit-request"],
    ["network", "cors", "https://elsewhere.example/assets/index.js"],
  ])("is %s: %s %s", (road, mode, path) => {
    expect(roadOf({ method: "GET", mode: mode as RequestMode, url: new URL(path, ORIGIN).href }, ORIGIN)).toBe(road);
  });

  it("uses the network for writes", () => {
    expect(roadOf({ method: "POST", mode: "navigate", url: `${ORIGIN}/submit-request` }, ORIGIN)).toBe("network");
  });
});
