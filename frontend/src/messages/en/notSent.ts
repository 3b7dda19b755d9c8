import { define } from "../catalogue";

/** A request that was to be sent without a connection, told on every public page. */
export const notSent = define("notSent", {
  waits: "Your request is not sent yet",
  waitsBody: "There was no connection when you pressed 'Submit Request'. Open it again with a connection, and it goes.",
  open: "Open it and send it",
  deleted: "Your request was not sent",
  deletedBody:
    "There was no connection for a day. We delete answers on a phone after 24 hours, so they are gone. We are sorry. Please write them once more.",
  again: "Write a new request",
});
