// Sockets for the component tests: jsdom's own do not work under vitest with Node.js 20.
import { createRequire } from "node:module";

globalThis.WebSocket = createRequire(process.env.APP_PACKAGES)("ws");
