import { define } from "../catalogue";

/** Signing in and up, passwords. */
export const auth = define("auth", {
  loginTitle: "Login",
});
