import { define } from "../catalogue";

/** Opening one's request without an account: its number and a mailed code. */
export const openRequest = define("openRequest", {
  title: "Open your request",
  lead: "You do not need an account. Type the number of your request. We send a code to the email address that you gave with it.",
  number: "Request ID",
  numberHint: "It looks like REQ-001. It is in the email we sent you.",
  required: "Request ID is required",
  send: "Send me a code",
  sending: "Sending…",
  sent: "If there is a request {number}, a code is on its way to its email address. It is good for 15 minutes.",
  nothingComes: "Nothing comes? Look among unwanted mail, and check the number.",
  open: "Open my request",
  otherNumber: "Another number",
  account: "You have an account? {link} to see all your requests.",
  signIn: "Sign in",
  failed: "We could not do this",
  endedTitle: "Your request is closed on this device",
  endedBody: "For your safety it closes after a day. Ask for a new code to open it again.",
  newCode: "Send me a new code",
  close: "Close my request on this device",
});
