/** Build, dev server and unit tests of the web app. Nothing of an installation is baked in: see src/lib/env.ts. */
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const backend = process.env.FERROBASE_URL ?? "http://127.0.0.1:54321";
const proxied = ["/auth", "/rest", "/storage", "/realtime", "/functions", "/app-config.json"];

export default defineConfig({
  plugins: [react(), tailwindcss()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  server: {
    proxy: Object.fromEntries(
      proxied.map((path) => [path, { target: backend, changeOrigin: false, ws: path === "/realtime" }]),
    ),
  },
  preview: {
    proxy: Object.fromEntries(
      proxied.map((path) => [path, { target: backend, changeOrigin: false, ws: path === "/realtime" }]),
    ),
  },
  build: {
    // what Tailwind 4 itself asks of a browser; nesting is written out for them
    cssTarget: ["chrome111", "safari16.4", "firefox128"],
    target: "es2022",
    manifest: true,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
  test: {
    restoreMocks: true,
    // What needs no document runs without one: a fraction of the time.
    projects: [
      { extends: true, test: { name: "plain", environment: "node", include: ["src/**/*.test.ts"] } },
      {
        extends: true,
        test: {
          name: "screens",
          environment: "jsdom",
          include: ["src/**/*.test.tsx"],
          setupFiles: ["./src/testing/setup.ts"],
        },
      },
    ],
  },
});
