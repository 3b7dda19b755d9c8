/** For each file of tests: what its API needs is asked first, and what it has made is removed at the end. */
import { afterAll, beforeEach, inject } from "vitest";
import { apiOf } from "../report/apis";
import { need, type Need } from "./needs";
import { tidy } from "./traces";

const OF_API: Record<string, Need[]> = {
  Auth: ["auth"],
  REST: ["rest", "schema"],
  Storage: ["storage", "schema"],
  Realtime: ["realtime", "schema"],
  Functions: ["functions"],
  AidBridge: ["aidbridge", "serviceKey"],
};

beforeEach(({ task }) => need(...(OF_API[apiOf(task.file.name)] ?? [])));
afterAll(() => tidy(inject("run")));
