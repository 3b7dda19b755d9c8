/** Unit tests of the web app, built as the app is. */
import { defineConfig, mergeConfig } from "vitest/config";
import app from "./vite.config.ts";

export default mergeConfig(
  app,
  defineConfig({
    test: {
      restoreMocks: true,
      // For machines several times slower than the one at hand
      testTimeout: 120_000,
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
  }),
);
