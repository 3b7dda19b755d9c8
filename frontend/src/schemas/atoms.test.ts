import { expect, it } from "vitest";
import { newPassword } from "./atoms";

it.each([
  ["7 characters", "harbor7", "Password must be at least 8 characters"],
  ["72 bytes", "h".repeat(72), undefined],
  ["73 bytes", "h".repeat(73), expect.stringMatching(/^Use a shorter password: at most 72/)],
  ["36 letters of two bytes", "é".repeat(36), undefined],
  ["37 letters of two bytes", "é".repeat(37), expect.stringMatching(/^Use a shorter password/)],
])("a new password of %s", (_, typed, message) => {
  expect(newPassword().safeParse(typed).error?.issues[0]?.message).toEqual(message);
});
