/** Build and dev server of the web app. Nothing of an installation is baked in: see src/lib/env.ts. */
import { compileMessage } from "@lingui/message-utils/compileMessage";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import PO from "pofile";
import { defineConfig, type Plugin } from "vite";
import { inMailsAlone, partOf } from "./src/messages/parts.ts";

/** `Features.Colors` of Lightning CSS, a package of Vite's and not ours. */
const LIGHTNINGCSS_COLORS = 1113088;

const backend = process.env.FERROBASE_URL ?? "http://127.0.0.1:54321";
const proxied = ["/auth", "/rest", "/storage", "/realtime", "/functions", "/app-config.json"];

/** A part of a language's catalogue (`es.po?ask`, `?first`, `?rest`) as a module: what is translated, compiled by Lingui. */
const catalogues = (): Plugin => ({
  name: "catalogues",
  transform(text, id) {
    const [, part] = /\.po\?(ask|first|rest)$/.exec(id) ?? [];
    if (!part) return null;
    const messages = Object.fromEntries(
      PO.parse(text)
        .items.filter(({ msgid, msgstr }) => msgstr[0] && !inMailsAlone(msgid) && partOf(msgid) === part)
        .map(({ msgid, msgstr }) => [msgid, compileMessage(msgstr[0] ?? "")]),
    );
    return { code: `export const messages = JSON.parse(${JSON.stringify(JSON.stringify(messages))});`, map: null };
  },
});

export default defineConfig({
  plugins: [react(), tailwindcss(), catalogues()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  // colours have their own older form (styles/tokens-fallback.css): a second one at each place would double the sheet
  css: { lightningcss: { exclude: LIGHTNINGCSS_COLORS } },
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
    // the oldest that the pages are for; scripts/targets.mjs looks at what was built
    cssTarget: ["chrome100", "safari15.4", "firefox100"],
    target: ["chrome100", "safari15.4", "firefox100"],
    manifest: true,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rolldownOptions: {
      output: {
        // A slow line pays for every request: what pages share comes in a few files, not in fifty of a kilobyte.
        // `app` is what the landing page needs (scripts/size.mjs keeps its limit), and it waits for none of the others.
        codeSplitting: {
          groups: [
            { name: "app", tags: ["$initial"], priority: 9 },
            // what the home page and the request form's first question share
            {
              name: "pictures",
              test: /components\/(?:art\/(?:basket|care|house|school|shop|picture)|pages)\./,
              priority: 8.5,
            },
            // what the request form's first question needs besides, and nothing more (scripts/size.mjs)
            { name: "question", test: /request-form\/components\/first-question\./, priority: 8 },
            // the home page's share of what others use, too
            { name: "home", test: /components\/(?:words|art\/horizon)\.|icons\/arrow-right\./, priority: 7.9 },
            { name: "data", test: /node_modules\/@tanstack\/|lib\/query-client/, priority: 7.6 },
            {
              name: "forms",
              test: /node_modules\/(?:react-hook-form|zod|@hookform)\/|components\/form\.|src\/schemas\//,
              priority: 7.3,
            },
            {
              name: "shared",
              test: /src\/(?:components\/(?!form\.|address-code|tick-card|confirm-dialog|date-range-picker|ui\/(?:accordion|calendar|checkbox|dialog|dropdown-menu|popover|radio-group|sheet|tabs|toaster|tooltip)\.)|lib\/(?!query-client))|node_modules\/lucide-react\//,
              minShareCount: 2,
              priority: 7,
            },
            {
              name: "radix",
              test: /node_modules\/(?:@radix-ui|@floating-ui|aria-hidden|react-remove-scroll|react-style-singleton|use-callback-ref|use-sidecar|tslib)|components\/(?:tick-card|confirm-dialog|ui\/(?:accordion|checkbox|dialog|dropdown-menu|popover|radio-group|sheet|tabs|tooltip))\./,
              priority: 4,
            },
          ],
        },
      },
    },
  },
});
