import { describe, expect, it } from "vitest";
import { databaseError, fieldErrors } from "./database-error";

describe("databaseError", () => {
  it("reads the code and the JSON of a raised error", () => {
    const error = { code: "PT409", hint: "over_budget", message: "…", details: '{"remaining": 12.5}' };
    expect(databaseError(error)).toEqual({ hint: "over_budget", details: { remaining: 12.5 } });
  });

  it("keeps the code when the details are a sentence or missing", () => {
    expect(databaseError({ hint: "last_admin", details: "Key (id) already exists." })).toEqual({ hint: "last_admin", details: {} });
    expect(databaseError({ hint: "last_admin", details: null })).toEqual({ hint: "last_admin", details: {} });
  });

  it.each([null, undefined, "failed", new Error("failed"), { hint: null }])("finds nothing in %j", (error) => {
    expect(databaseError(error)).toBeNull();
  });
});

describe("fieldErrors", () => {
  it("gives each field's message", () => {
    expect(fieldErrors({ hint: "validation_failed", details: '{"fields": {"subject": "Subject is required", "n": 1}}' })).toEqual({
      subject: "Subject is required",
    });
  });

  it("is empty for other errors", () => {
    expect(fieldErrors({ hint: "over_budget", details: "{}" })).toEqual({});
    expect(fieldErrors(new TypeError("Failed to fetch"))).toEqual({});
  });
});
