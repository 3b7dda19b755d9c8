// The app, its component tests, and a separate cache folder for Vite, because several run at once.
import { join } from "node:path";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [react()],
  cacheDir: join(process.env.FERROBASE_TEST_FOLDER ?? ".", "vite"),
  test: { environment: "jsdom", include: ["src/**/*.test.jsx"], setupFiles: "./src/setup.js", testTimeout: 120_000, hookTimeout: 120_000 },
});
