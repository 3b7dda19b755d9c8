import { expect, it } from "vitest";
import { donorMessageSchema } from "./schema";

const messages = (subject: string, message: string) =>
  (donorMessageSchema.safeParse({ subject, message }).error?.issues ?? []).map((issue) => issue.message);

it.each([
  ["a", "long enough here", ["Subject is required"]],
  ["  a ", "long enough here", ["Subject is required"]],
  ["Hi", "too short", ["Message must be at least 10 characters"]],
  ["", "", ["Subject is required", "Message must be at least 10 characters"]],
  ["Hi", "ten chars!", []],
  ["x".repeat(201), "ten chars!", ["This is too long. Use at most 200 characters."]],
])("subject %j with message %j", (subject, message, expected) => {
  expect(messages(subject, message)).toEqual(expected);
});
