import { describe, expect, it } from "vitest";
import { myProfileSchema, passwordSchema, profileSchema } from "./schema";

const first = (result: { success: boolean; error?: { issues: { path: PropertyKey[]; message: string }[] } }) =>
  (result.error?.issues ?? []).map((issue) => `${String(issue.path[0])}: ${issue.message}`);

describe("change password", () => {
  const good = { currentPassword: "secret", newPassword: "Longer12", confirmPassword: "Longer12" };
  it("accepts a valid password", () => expect(first(passwordSchema.safeParse(good))).toEqual([]));
  it.each([
    [{ currentPassword: "short" }, "currentPassword: Please enter your current password"],
    [{ newPassword: "Short1", confirmPassword: "Short1" }, "newPassword: Password must be at least 8 characters"],
    [
      { newPassword: "longer12", confirmPassword: "longer12" },
      "newPassword: Password must contain at least 1 uppercase letter",
    ],
    [{ newPassword: "Longerrr", confirmPassword: "Longerrr" }, "newPassword: Password must contain at least 1 number"],
    [{ confirmPassword: "" }, "confirmPassword: Please confirm your new password"],
    [{ confirmPassword: "Longer13" }, "confirmPassword: Passwords don't match"],
  ])("%o", (change, expected) => {
    expect(first(passwordSchema.safeParse({ ...good, ...change }))).toContain(expected);
  });
});

describe("profile", () => {
  const good = {
    first_name: "Al",
    middle_name: "",
    last_name: "Bo",
    email: "a@b.example",
    phone: "",
    sms_consent: false,
    birthday: "1971-03-14",
    country: "Haiti",
    id_type: "Passport",
    id_number: "1",
    bio: "",
  };
  it("accepts only the required values", () => expect(first(profileSchema.safeParse(good))).toEqual([]));
  it.each([
    [{ first_name: "A" }, "first_name: First name is required"],
    [{ first_name: "A".repeat(101) }, "first_name: This is too long. Use at most 100 characters."],
    [{ phone: "1".repeat(41) }, "phone: This is too long. Use at most 40 characters."],
    [{ bio: "b".repeat(2001) }, "bio: This is too long. Use at most 2000 characters."],
    [{ last_name: " B " }, "last_name: Last name is required"],
    [{ birthday: "" }, "birthday: Birthday is required"],
    [{ birthday: "2999-01-01" }, "birthday: Please enter a valid birthday"],
    [{ country: "" }, "country: Country is required"],
    [{ id_type: "" }, "id_type: ID type is required"],
    [{ id_number: " " }, "id_number: ID number is required"],
  ])("%o", (change, expected) => {
    expect(first(profileSchema.safeParse({ ...good, ...change }))).toEqual([expected]);
  });
});

it("my profile requires a name of two characters", () => {
  expect(first(myProfileSchema.safeParse({ fullName: "A", email: "", phoneNumber: "" }))).toEqual([
    "fullName: Full name is required",
  ]);
});
