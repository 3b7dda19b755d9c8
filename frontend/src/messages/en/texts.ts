import { define } from "../catalogue";

/** Text messages about a request: the box beside the phone number, where the server can send them. */
export const texts = define("texts", {
  consent: "Send me texts about my request, too.",
  hint: "We text you a code, and when there is an answer or something is missing. Your phone company may charge you. To end it, reply STOP.",
  unreachable: "We cannot text this number. Begin with + and the country code.",
  stopped:
    "You replied STOP on {date}. We send no texts. To get them again, first text START to the number that texted you.",
  row: "Texts: yes",
  codeByText: "Send it by text",
  codeByTextHint: "This works if you said yes to texts. If not, the code comes by email.",
  sent: "If there is a request {number}, a code is on its way to its phone, or to its email address. It is good for 15 minutes.",
});
