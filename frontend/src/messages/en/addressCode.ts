import { define } from "../catalogue";

/** Proving an address by a mailed code, and what it brings to an account. */
export const addressCode = define("addressCode", {
  sent: "We sent a code with six digits to {email}. It is good for 15 minutes.",
  code: "Code",
  hint: "Six digits from the email.",
  shape: "The code has six digits.",
  check: "Check code",
  resend: "Send a new code",
  resent: "A new code is on its way.",
  wrong: {
    one: "This code is not right. You have {count} more try.",
    other: "This code is not right. You have {count} more tries.",
  },
  expired: "This code is no longer good. Ask for a new one.",

  // requests sent without an account
  claimTitle: "Did you ask for help before you had this account?",
  claimBody: "Show us that {email} is yours, and the requests you sent with it come here. It takes one code by email.",
  claimStart: "Send me a code",
  claimLater: "Not now",
  claimFailed: "We could not check your address",
  claimedTitle: {
    one: "One request is now in your account",
    other: "{count} requests are now in your account",
  },
  claimedBody: "You sent it without an account. You find it under My Requests.",
  claimedNoneTitle: "Thank you. Your address is checked.",
  claimedNoneBody: "No other request was sent with it.",
});
