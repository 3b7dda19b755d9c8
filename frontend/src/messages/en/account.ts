import { define } from "../catalogue";

/** Role redirector, role selection, profile, notifications. */
export const account = define("account", {
  redirectTitle: "Dashboard",
  redirecting: "Redirecting to your dashboard...",
  invalidRole: "Invalid user role",
  invalidRoleBody: "Your account has an invalid role. Please contact support.",
});
