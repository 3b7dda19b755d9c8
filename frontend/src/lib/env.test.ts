import { expect, it } from "vitest";
import { parseAppConfig } from "./env";

it("uses its own origin for an empty API URL", () => {
  expect(parseAppConfig({ apiUrl: "", publishableKey: "k" }, "https://aid.example")).toEqual({
    apiUrl: "https://aid.example",
    publishableKey: "k",
    supportEmail: "",
    siteName: "AidBridge",
    providers: { google: false, azure: false },
    autoconfirm: false,
    sms: false,
  });
});

it("keeps the server's settings", () => {
  const config = parseAppConfig(
    {
      apiUrl: "https://api.example/",
      publishableKey: "k",
      providers: { google: true, azure: "yes" },
      autoconfirm: true,
      sms: true,
    },
    "https://aid.example",
  );
  expect(config.apiUrl).toBe("https://api.example");
  expect(config.providers).toEqual({ google: true, azure: false });
  expect(config.autoconfirm).toBe(true);
  expect(config.sms).toBe(true);
});

it("rejects settings without a key", () => {
  expect(() => parseAppConfig({}, "https://aid.example")).toThrow("publishableKey");
  expect(() => parseAppConfig("<!doctype html>", "https://aid.example")).toThrow("publishableKey");
});
