import { define } from "../catalogue";

/** Section 5's messages that more than one form uses. */
export const validation = define("validation", {
  didYouMean: "Did you mean {address}?",
  useIt: "Yes, change it",
  email: "Please enter a valid email address",
  password: "Password must be at least 8 characters",
  passwordTooLong: "Use a shorter password: at most 72 letters or numbers. A letter with an accent counts as two.",
  passwordsDiffer: "Passwords do not match",
  confirmPassword: "Please confirm your password",
  fullName: "Full name is required",
  phone: "Phone number is required",
  amount: "Amount must be a number",
  tooLong: "This is too long. Use at most {max} characters.",
});
