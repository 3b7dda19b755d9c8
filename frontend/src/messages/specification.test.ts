/**
 * Every message of the specification's sections 5, 6 (its guards) and 8, with the test that sees it.
 * Each row is checked twice: its text is in the catalogue, and the named test waits for it. What
 * cannot occur is in docs/decisions/messages-that-cannot-occur.md, with the reason.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Messages } from "./catalogue";

const frontend = join(import.meta.dirname, "../..");

/** Section, test file, messages in the specification's words and order. */
const SEEN: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  "5, validation": {
    "e2e/accounts.spec.ts": [
      "Please enter a valid email address",
      "Password is required",
      "Passwords do not match",
      "First name is required",
      "Country is required",
      "ID type is required",
      "ID number is required",
    ],
    "e2e/messages.spec.ts": [
      "Full name is required",
      "Password must be at least 8 characters",
      "Please confirm your password",
      "Please select a role before signing up.",
      "If your request requires financial support, please specify the amount.",
      "Street address is required",
      "State/Province is required",
      "Postal/ZIP code is required",
      "Please select a category",
      "Please enter your current password",
      "Password must contain at least 1 uppercase letter",
      "Password must contain at least 1 number",
      "Please confirm your new password",
      "Passwords don't match",
      "Please select a role",
    ],
    "e2e/request-form.spec.ts": [
      "Please provide details about your request",
      "Amount must be a number",
      "Last name is required",
      "Phone number is required",
      "City is required",
      "Please complete all fields",
      "All personal information fields are required.",
      "Please select at least one nonprofit",
      "Maximum nonprofits reached",
      "Maximum selection reached",
      "You can select up to 3 nonprofit organizations.",
      "Description must be at least 10 characters",
      "You must agree to be contacted",
    ],
    "e2e/requester.spec.ts": ["Request ID is required"],
    "e2e/nonprofit-donors.spec.ts": ["Subject is required", "Message must be at least 10 characters"],
    "e2e/nonprofit-onboarding.spec.ts": [
      "Please complete all required fields",
      "Organization required",
      "You need to create an organization first",
    ],
    "e2e/nonprofit-settings.spec.ts": ["Category name required"],
    "e2e/nonprofit-team.spec.ts": ["Missing Information", "Please fill in all required fields."],
  },
  "6, guards": {
    "e2e/accounts.spec.ts": ["Authentication required"],
    "e2e/guards.spec.ts": [
      "Please log in to access the dashboard.",
      "Account setup incomplete",
      "Your account setup is incomplete. Please contact support.",
      "Access Denied",
    ],
    "e2e/nonprofit-decisions.spec.ts": ["Limited Permissions: Only managers and admins can approve or deny requests."],
    "e2e/nonprofit-settings.spec.ts": ["Only administrators can manage help categories."],
  },
  "8, errors and notices": {
    "e2e/nonprofit-decisions.spec.ts": [
      "Request Approved",
      "Request Declined",
      "Additional Information Requested",
      "Request not found",
      "The requested aid request could not be found.",
    ],
    "e2e/nonprofit-donors.spec.ts": ["Message sent successfully"],
    "e2e/nonprofit-faults.spec.ts": [
      "Error",
      "Error creating organization",
      "Failed to create organization. Please try again.",
      "Error retrieving team",
      "Failed to load team members.",
      "Error adding team member",
      "Failed to add team member.",
      "Error retrieving categories",
      "Failed to load categories",
      "Error adding category",
      "Failed to add category",
      "Failed to delete category",
    ],
    "e2e/nonprofit-onboarding.spec.ts": ["Organization created"],
    "e2e/nonprofit-settings.spec.ts": ["Category added", "Category deleted", "Invalid file type", "File too large"],
    "e2e/nonprofit-team.spec.ts": ["Team Member Added", "Member Activated", "Member Deactivated", "Update failed"],
    "e2e/accounts.spec.ts": [
      "Authentication Error",
      "Invalid email or password",
      "Login failed",
      "Error creating account",
      "Account created successfully",
      "You can now complete your nonprofit registration.",
      "You can now submit requests for assistance.",
      "You can now complete your nonprofit onboarding.",
      "Feature coming soon",
      "Reset email sent",
      "If an account exists with this email, you'll receive password reset instructions.",
      "Invalid or expired link",
      "Password reset successful",
      "Logged out",
      "You have been successfully logged out.",
      "Request Not Found",
      "Profile updated",
      "Your profile has been updated successfully.",
      "Password changed",
      "Your password has been updated successfully.",
      "Password change failed",
    ],
    "e2e/messages.spec.ts": [
      "Please confirm your email address before logging in",
      "Authentication error. Please try logging in again.",
      "Please check your credentials and try again.",
      "Logged in successfully",
      "Please try again later.",
      "Signed up with Google successfully",
      "Signed up with Microsoft successfully",
      "Instructions sent",
      "This password reset link is invalid or has expired. Please request a new one.",
      "Password reset failed",
      "There was a problem resetting your password. Please try again.",
      "Logout Failed",
      "An error occurred during logout",
      "Error fetching user role from database",
      "Invalid user role",
      "Your account has an invalid role. Please contact support.",
      "Role selection required",
      "Error submitting request",
      "Failed to load drafts",
      "Please try again later",
      "Failed to delete draft",
      "Could not update profile. Please try again.",
      "Photo updated",
      "Upload failed",
      "Could not upload photo. Please try again.",
      "Too many files",
      "You can only upload a maximum of N files.",
      "No notifications",
      "No categories defined yet.",
      "No nonprofits selected",
      "No assistance categories found.",
    ],
    "src/app/routes/account/role-selection.test.tsx": ["User not found", "Please try logging in again."],
    "src/features/request-form/components/account-match.test.tsx": ["Error checking for existing users"],
    "e2e/guards.spec.ts": [
      "Organization not found",
      "Please complete your organization setup first",
      "Nonprofit selection required",
      "Only administrators can manage team members.",
      "You don't have permission to view this page.",
      "You don't have permission to view the budget page.",
    ],
    "e2e/request-form.spec.ts": [
      "Request submitted successfully",
      "Your request ID is {id}",
      "You can select up to 3 nonprofits for your request.",
      "{file} is not an accepted file type.",
      "{file} exceeds the maximum file size of 10MB.",
    ],
    "e2e/requester.spec.ts": [
      "Nonprofit selected",
      "No nonprofit selected",
      "We couldn't find a request with the ID you provided. Please check the ID and try again.",
      "Draft deleted",
      "The draft has been successfully removed",
      "No files selected",
      "Please select at least one document to upload.",
      "Documents uploaded successfully",
      "N document(s) have been uploaded.",
      "No requests found",
      "You haven't submitted any requests yet",
      "No Saved Drafts",
    ],
  },
};

/** Messages with a part that changes, as their test writes it. */
const WRITTEN: Readonly<Record<string, string>> = {
  "{file} is not an accepted file type.": "film.mov is not an accepted file type.",
  "{file} exceeds the maximum file size of 10MB.": "big.pdf exceeds the maximum file size of 10MB.",
  "You can only upload a maximum of N files.": "You can only upload a maximum of 5 files.",
  "N document(s) have been uploaded.": "2 document(s) have been uploaded.",
  "Your request ID is {id}": "Your request ID is ${number}",
};

const NEVER = [
  "Logged out successfully",
  "You have been logged out.",
  "Logout failed",
  "Failed to log out. Please try again.",
  "Please log in to continue.",
  "Please log in to select a nonprofit.",
] as const;

const catalogue = Object.values(import.meta.glob<Record<string, Messages>>("./en/*.ts", { eager: true }))
  .flatMap((file) => Object.values(file))
  .flatMap((messages) => Object.values(messages))
  .flatMap((message) => (typeof message === "string" ? [message] : [message.one, message.other]));

const literal = (words: string) => words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Word for word; a `{parameter}` matches anything if the rest of the message is specific enough. */
const inCatalogue = (words: string) =>
  catalogue.some(
    (message) =>
      message === words ||
      (/\{\w+\}/.test(message) &&
        message.replace(/\{\w+\}/g, "").length > 12 &&
        new RegExp(
          `^${message
            .split(/\{\w+\}/)
            .map(literal)
            .join(".+")}$`,
        ).test(words)),
  );

for (const [section, files] of Object.entries(SEEN)) {
  describe(`section ${section}`, () => {
    for (const [file, messages] of Object.entries(files)) {
      const code = readFileSync(join(frontend, file), "utf8");
      it.each(messages)(`%s (${file})`, (message) => {
        const words = WRITTEN[message] ?? message;
        expect(inCatalogue(words), "in the catalogue").toBe(true);
        // as a whole string, so that a longer sentence does not match
        expect(code).toMatch(new RegExp(`(["'\`])${literal(words)}\\1`));
      });
    }
  });
}

describe("messages that cannot occur", () => {
  const decision = readFileSync(join(frontend, "../docs/decisions/messages-that-cannot-occur.md"), "utf8");
  it.each(NEVER)("%s", (message) => {
    expect(catalogue).not.toContain(message);
    expect(decision).toContain(message);
  });
});
