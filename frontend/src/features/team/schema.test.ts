import { describe, expect, it } from "vitest";
import { addMemberSchema } from "./schema";

const issues = (value: unknown) =>
  (addMemberSchema.safeParse(value).error?.issues ?? []).map((issue) => [issue.path.join("."), issue.message]);

describe("adding a member", () => {
  it("requires name, email and role with an error at each field", () => {
    expect(issues({ full_name: " ", email: "", role: "" })).toEqual([
      ["full_name", "Write the full name"],
      ["email", "Write the email address"],
      ["role", "Please fill in all required fields."],
    ]);
  });

  it("distinguishes an invalid email from a missing one", () => {
    expect(issues({ full_name: "Ruth", email: "ruth@", role: "manager" })).toEqual([
      ["email", "Please enter a valid email address"],
    ]);
  });

  it("does not offer the role admin", () => {
    expect(issues({ full_name: "Ruth", email: "ruth@mail.example", role: "admin" })).toHaveLength(1);
  });

  it("trims the values", () => {
    expect(addMemberSchema.parse({ full_name: " Ruth ", email: " ruth@mail.example ", role: "employee" })).toEqual({
      full_name: "Ruth",
      email: "ruth@mail.example",
      role: "employee",
    });
  });
});
