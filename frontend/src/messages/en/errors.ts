import { define } from "../catalogue";

/** What the server's error codes mean to a person. Looked up by `lib/errors.ts`. */
export const errors = define("errors", {
  title: "Error",
  network: "We cannot reach the server. Nothing is lost. Check your connection and try again.",
  server: "The server could not do this. Nothing is lost. Try again in a moment.",
  refused: "You don't have permission to do this.",
  notFound: "We could not find this. It may have been removed.",
  conflict: "This already exists.",
  stillUsed: "This is still in use, so it cannot be removed.",
  invalid: "One of the answers was not accepted. Please check them and try again.",
  tooMany: "Too many tries. Wait a moment and try again.",
  expired: "You were signed out for your safety. Sign in again. What you typed is kept here.",
  tooLarge: "This is too large to send.",
  wrongFileType: "This file is not an accepted file type.",
  invalidCredentials: "Invalid email or password",
  emailNotConfirmed: "Please confirm your email address before logging in",
  authFallback: "Authentication error. Please try logging in again.",
  emailTaken: "An account with this email already exists. Log in, or reset your password.",
  weakPassword: "Please choose a stronger password.",
  samePassword: "The new password must be different from the old one.",
  signupsOff: "New accounts cannot be made here right now.",
  badCode: "This link or code has expired or was already used. Ask for a new one.",
  roleFetch: "Error fetching user role from database",
  banned: "This account is closed. Please contact support.",
});
