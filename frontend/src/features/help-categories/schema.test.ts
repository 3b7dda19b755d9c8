import { expect, it } from "vitest";
import { categorySchema } from "./schema";

const messages = (value: unknown) =>
  (categorySchema.safeParse(value).error?.issues ?? []).map((issue) => issue.message);

it("requires a name after trimming", () => {
  expect(messages({ name: "   ", description: "" })).toEqual(["Category name required"]);
});

it("accepts a trimmed name without a description", () => {
  expect(categorySchema.parse({ name: " Rent Support ", description: "" })).toEqual({
    name: "Rent Support",
    description: "",
  });
});

it("rejects a name of more than 100 characters", () => {
  expect(messages({ name: "x".repeat(101), description: "" })).toEqual([
    "This is too long. Use at most 100 characters.",
  ]);
});
