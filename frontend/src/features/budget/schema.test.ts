import { describe, expect, it } from "vitest";
import { allocationAmount, allocationsSchema, donationSchema, payoutSchema } from "./schema";

const issues = (result: { error?: { issues: { path: PropertyKey[]; message: string }[] } }) =>
  (result.error?.issues ?? []).map((issue) => `${issue.path.join(".")}: ${issue.message}`);

describe("recording a donation", () => {
  it("requires donor and amount; the email is optional", () => {
    expect(issues(donationSchema.safeParse({ donor_name: " ", donor_email: "", amount: "" }))).toEqual([
      "donor_name: Write who gave it",
      "amount: Write the amount",
    ]);
    expect(donationSchema.safeParse({ donor_name: "Daniel", donor_email: "", amount: "12.50" }).success).toBe(true);
  });

  it("rejects an invalid email", () => {
    expect(issues(donationSchema.safeParse({ donor_name: "Daniel", donor_email: "daniel@", amount: "5" }))).toEqual([
      "donor_email: Please enter a valid email address",
    ]);
  });
});

describe("recording a payout", () => {
  it("accepts up to the rest of the grant, to the cent", () => {
    const schema = payoutSchema(99.5);
    expect(schema.safeParse({ amount: "99.50", note: "" }).success).toBe(true);
    expect(issues(schema.safeParse({ amount: "99.51", note: "" }))).toEqual([
      "amount: This is more than what is left of the grant",
    ]);
  });
});

describe("allocations", () => {
  it("treats an empty amount and zero as no allocation", () => {
    expect(
      allocationsSchema.safeParse({
        lines: [
          { category: "Food", amount: "", before: "" },
          { category: "Rent", amount: "0", before: "" },
        ],
      }).success,
    ).toBe(true);
    expect([allocationAmount(""), allocationAmount("0"), allocationAmount("1,200.5")]).toEqual([0, 0, 1200.5]);
  });

  it("reports a duplicate category, case-insensitively", () => {
    expect(
      issues(
        allocationsSchema.safeParse({
          lines: [
            { category: "Food", amount: "1", before: "" },
            { category: "food ", amount: "2", before: "" },
          ],
        }),
      ),
    ).toEqual(["lines.1.category: This category is already in the list"]);
  });
});
