import { describe, expect, it } from "vitest";
import { t } from "@/messages";
import {
  errorDetails,
  errorHint,
  errorMessage,
  fieldErrors,
  isNetworkError,
  isNotFound,
  isRefused,
  isSessionExpired,
  nothingWritten,
} from "./errors";

describe("errorMessage", () => {
  it.each([
    [{ code: "invalid_credentials", message: "Invalid login credentials" }, "Invalid email or password"],
    [
      { code: "email_not_confirmed", message: "Email not confirmed" },
      "Please confirm your email address before logging in",
    ],
    [{ code: "weak_password", message: "Password should be longer" }, "Password should be longer"],
    [{ code: "42501", message: "permission denied for table requests" }, "You don't have permission to do this."],
    [{ code: "23505", message: "duplicate key value violates" }, "This already exists."],
    [
      { code: "PT409", message: "This request has already been approved.", hint: "request_already_decided" },
      "This request has already been approved.",
    ],
    // a guest's access, and no session
    [{ code: "PT401", message: "This page closed itself.", hint: "access_ended" }, "This page closed itself."],
    [{ code: "PT401", message: "Please log in.", hint: "sign_in_required" }, t("errors.expired")],
    [{ status: 429, message: "x" }, "Too many tries. Wait a moment and try again."],
    // storage answers 400 with the real status in the body
    [{ status: 400, statusCode: "413", message: "x" }, "This is too large to send."],
    [{ status: 400, statusCode: "415", message: "x" }, "This file is not an accepted file type."],
    [
      new TypeError("Failed to fetch"),
      "We cannot reach the server. Nothing is lost. Check your connection and try again.",
    ],
  ])("%o", (error, expected) => expect(errorMessage(error)).toBe(expected));

  // the server was reached: these are not the line's fault
  it.each([
    { status: 500, message: "Internal Server Error" },
    { code: "XX000", message: "internal error", status: 500 },
    { name: "AuthRetryableFetchError", status: 502, message: "{}" },
    { name: "FunctionsHttpError", message: "Edge Function returned a non-2xx status code" },
    { statusCode: "500", message: "Internal" },
    { code: "57014", message: "canceling statement due to statement timeout" },
  ])("a fault of the server has words of its own: %o", (error) => {
    expect(isNetworkError(error)).toBe(false);
    expect(errorMessage(error)).toBe(t("errors.server"));
    expect(errorMessage(error)).not.toContain("cannot reach");
  });

  it("never shows a raw error", () => {
    expect(errorMessage({ code: "XX000", message: "tuple concurrently updated" })).not.toContain("tuple");
    expect(errorMessage(new Error("undefined is not a function"))).not.toContain("undefined");
    expect(errorMessage("boom")).not.toContain("boom");
  });

  it("uses the caller's message for an unknown error", () => {
    expect(errorMessage({ message: "?" }, "errors.notFound")).toBe("We could not find this. It may have been removed.");
  });
});

it("reads hint, details and fields of a database function's error", () => {
  const error = {
    code: "PT422",
    message: "Please check the marked fields.",
    hint: "validation_failed",
    details: '{"fields": {"description": "Description must be at least 10 characters", "odd": 1}}',
  };
  expect(errorHint(error)).toBe("validation_failed");
  expect(fieldErrors(error)).toEqual({ description: "Description must be at least 10 characters" });
  expect(errorDetails({ details: "not json" })).toEqual({});
  expect(fieldErrors(null)).toEqual({});
});

it("distinguishes refusals, missing rows, lost sessions and lost connections", () => {
  expect(isRefused({ code: "PT403" })).toBe(true);
  expect(isRefused({ code: "PT404" })).toBe(false);
  expect(isNotFound({ code: "PGRST116" })).toBe(true);
  expect(isSessionExpired({ code: "PGRST301" })).toBe(true);
  expect(isSessionExpired({ name: "AuthSessionMissingError" })).toBe(true);
  expect(isSessionExpired({ code: "invalid_credentials" })).toBe(false);
  expect(isNetworkError({ name: "AuthRetryableFetchError", message: "" })).toBe(true);
  expect(isNetworkError({ name: "FunctionsFetchError", message: "Failed to send a request" })).toBe(true);
  expect(isNetworkError({ code: "42501", message: "permission denied" })).toBe(false);
});

it("knows which errors say that nothing was written", () => {
  const refusals = ["42501", "23505", "22001", "PT409", "PGRST116"];
  expect(refusals.filter((code) => !nothingWritten({ code, message: "no" }))).toEqual([]);
  // the answer was lost, or the server failed while it worked
  for (const error of [
    new TypeError("Failed to fetch"),
    { code: "", message: "TypeError: Failed to fetch" },
    { message: "<html>502 Bad Gateway</html>" },
    { code: "57P01", message: "terminating connection" },
    { code: "PT500", message: "x" },
    { code: "PGRST001", message: "x" },
  ])
    expect(nothingWritten(error)).toBe(false);
});
