import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { readRecoveryLink } from "./recovery-link";
import { forgotSchema, loginSchema, resetSchema, signupSchema } from "./schema";

/** field → first message */
function messages(schema: z.ZodType, value: unknown): Record<string, string> {
  const result = schema.safeParse(value);
  if (result.success) return {};
  const found: Record<string, string> = {};
  for (const issue of result.error.issues) found[issue.path.join(".")] ??= issue.message;
  return found;
}

describe("login", () => {
  it("accepts an email and any password", () => {
    expect(messages(loginSchema, { email: " a@b.example ", password: "x" })).toEqual({});
  });
  it("reports missing values", () => {
    expect(messages(loginSchema, { email: "a@", password: "" })).toEqual({
      email: "Please enter a valid email address",
      password: "Password is required",
    });
  });
});

describe("signup", () => {
  const good = { fullName: "Al", email: "a@b.example", password: "12345678", confirmPassword: "12345678" };
  it("accepts the shortest allowed values", () => expect(messages(signupSchema, good)).toEqual({}));
  it.each([
    [{ fullName: "A" }, { fullName: "Full name is required" }],
    [{ fullName: "  A " }, { fullName: "Full name is required" }],
    [{ email: "x" }, { email: "Please enter a valid email address" }],
    [{ password: "1234567" }, { password: "Password must be at least 8 characters" }],
    [{ confirmPassword: "1234567" }, { confirmPassword: "Please confirm your password" }],
    [{ confirmPassword: "12345679" }, { confirmPassword: "Passwords do not match" }],
  ])("%o", (change, expected) => {
    expect(messages(signupSchema, { ...good, ...change })).toMatchObject(expected);
  });
});

describe("forgot and reset", () => {
  it("requires an email", () => expect(messages(forgotSchema, { email: "nobody" })).toHaveProperty("email"));
  it("requires two equal passwords of 8 characters", () => {
    expect(messages(resetSchema, { password: "12345678", confirmPassword: "12345678" })).toEqual({});
    expect(messages(resetSchema, { password: "12345678", confirmPassword: "87654321" })).toEqual({
      confirmPassword: "Passwords do not match",
    });
    expect(messages(resetSchema, { password: "short", confirmPassword: "short" })).toHaveProperty("password");
  });
});

describe("readRecoveryLink", () => {
  it.each([
    [
      "?access_token=a&refresh_token=r&expires_at=1&type=recovery",
      "",
      { kind: "tokens", accessToken: "a", refreshToken: "r" },
    ],
    ["?access_token=a&type=recovery", "", { kind: "tokens", accessToken: "a", refreshToken: "" }],
    ["", "#access_token=a&refresh_token=r&type=recovery", { kind: "tokens", accessToken: "a", refreshToken: "r" }],
    ["?code=c", "", { kind: "code", code: "c" }],
    ["?token_hash=h&type=recovery", "", { kind: "token_hash", tokenHash: "h" }],
    ["?access_token=a&type=signup", "", { kind: "invalid" }],
    ["?access_token=a", "", { kind: "invalid" }],
    ["?type=recovery", "", { kind: "invalid" }],
    ["", "#error=access_denied&error_code=otp_expired", { kind: "invalid" }],
    ["", "", { kind: "invalid" }],
  ])("%s%s", (search, hash, expected) => {
    expect(readRecoveryLink({ search, hash })).toEqual(expected);
  });
});
