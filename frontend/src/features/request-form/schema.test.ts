import { describe, expect, it } from "vitest";
import { amountText, detailsSchema, identitySchema, reviewSchema, singlePageSchema } from "./schema";
import { codeSchema } from "@/schemas/code";

const messages = (result: { success: boolean; error?: { issues: { path: PropertyKey[]; message: string }[] } }) =>
  Object.fromEntries((result.error?.issues ?? []).map(({ path, message }) => [path.join("."), message]));

describe("requester info (section 5)", () => {
  it("reports each missing field with the specified message", () => {
    const empty = {
      firstName: " A ",
      lastName: "",
      email: "no",
      phone: "1234",
      address: "1 St",
      city: "P",
      state: "M",
      postalCode: "0",
    };
    expect(messages(identitySchema.safeParse(empty))).toEqual({
      firstName: "First name is required",
      lastName: "Last name is required",
      email: "Please enter a valid email address",
      phone: "Phone number is required",
      address: "Street address is required",
      city: "City is required",
      state: "State/Province is required",
      postalCode: "Postal/ZIP code is required",
    });
  });
});

describe("request details (section 5)", () => {
  it("requires ten characters other than spaces", () => {
    expect(messages(detailsSchema.safeParse({ description: "help me   ", amount: "" }))).toEqual({
      description: "Please provide details about your request",
    });
    expect(detailsSchema.safeParse({ description: "help me ok", amount: "" }).success).toBe(true);
  });

  it.each(["abc", "12 dollars", "1.234", "1,2,3", "-5"])("refuses the amount '%s'", (amount) => {
    expect(messages(detailsSchema.safeParse({ description: "0123456789", amount })).amount).toBe(
      "Amount must be a number",
    );
  });

  it.each(["", "250", "$250", "1,200.50"])("takes the amount '%s'", (amount) => {
    expect(detailsSchema.safeParse({ description: "0123456789", amount }).success).toBe(true);
  });

  it("rejects more than the database can store", () => {
    expect(detailsSchema.safeParse({ description: "0123456789", amount: "10000000" }).success).toBe(false);
  });
});

describe("the amount as stored in the database", () => {
  it.each([
    ["", "Not specified"],
    ["abc", "Not specified"],
    ["250", "$250"],
    ["$1,200", "$1200"],
    ["99.5", "$99.50"],
  ])("'%s' is '%s'", (typed, kept) => expect(amountText(typed)).toBe(kept));
});

describe("consent and code", () => {
  it("must be given", () => {
    expect(messages(reviewSchema.safeParse({ consent: false }))).toEqual({ consent: "You must agree to be contacted" });
  });
  it("has six digits", () => {
    expect(codeSchema.safeParse({ code: "12345" }).success).toBe(false);
    expect(codeSchema.safeParse({ code: " 123456 " }).success).toBe(true);
  });
});

describe("the single page (section 5, 'Submit request')", () => {
  it("reports everything that is missing at once", () => {
    const found = messages(
      singlePageSchema.safeParse({
        categoryId: "",
        nonprofits: [],
        description: "",
        amount: "",
        identity: {},
        consent: false,
      }),
    );
    expect(found).toMatchObject({
      categoryId: "Please select a category",
      nonprofits: "Please select at least one nonprofit",
      description: "Description must be at least 10 characters",
      consent: "You must agree to be contacted",
    });
  });

  it("accepts at most three nonprofits", () => {
    const nonprofits = [1, 2, 3, 4].map((n) => ({ id: String(n), name: String(n) }));
    expect(messages(singlePageSchema.safeParse({ nonprofits })).nonprofits).toBe(
      "You can select up to 3 nonprofit organizations.",
    );
  });
});
