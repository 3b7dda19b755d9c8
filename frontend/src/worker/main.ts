/** What `scripts/worker.mjs` builds into /sw.js. */
import { shellWorker, type Build, type Scope } from "./shell";

declare const BUILD_OF_WORKER: Build;

shellWorker(globalThis as unknown as Scope, BUILD_OF_WORKER);
