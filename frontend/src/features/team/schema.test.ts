import { describe, expect, it } from "vitest";
import { addMemberSchema } from "./schema";

const issues = (value: unknown) =>
  (addMemberSchema.safeParse(value).error?.issues ?? []).map((issue) => [issue.path.join("."), issue.message]);

describe("adding a member", () => {
  it("asks for name, email and role; each field says what it lacks", () => {
    expect(issues({ full_name: " ", email: "", role: "" })).toEqual([
      ["full_name", "Write the full name"],
      ["email", "Write the email address"],
      ["role", "Please fill in all required fields."],
    ]);
  });

  it("tells a wrong address from a missing one", () => {
    expect(issues({ full_name: "Ruth", email: "ruth@", role: "manager" })).toEqual([
      ["email", "Please enter a valid email address"],
    ]);
  });

  it("does not offer the role admin", () => {
    expect(issues({ full_name: "Ruth", email: "ruth@mail.example", role: "admin" })).toHaveLength(1);
  });

  it("trims what was typed", () => {
    expect(addMemberSchema.parse({ full_name: " Ruth ", email: " ruth@mail.example ", role: "employee" })).toEqual({
      full_name: "Ruth",
      email: "ruth@mail.example",
      role: "employee",
    });
  });
});
