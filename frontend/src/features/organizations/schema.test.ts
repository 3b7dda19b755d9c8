import { expect, it } from "vitest";
import { settingsSchema } from "./schema";

it.each([
  ["", true],
  ["0", true],
  ["1000", true],
  ["99,50", true],
  ["1 200,50", true],
  ["1,200.50", true],
  ["10000000", false],
  ["1.234", false],
  ["lots", false],
])("takes %j as the amount above which two people approve: %j", (text, taken) => {
  expect(settingsSchema.shape.secondApprovalAbove.safeParse(text).success).toBe(taken);
});
