import { define } from "../catalogue";

/** A request that was to be sent without a connection or was changed after that, told on every public page. */
export const notSent = define("notSent", {
  waits: "Your request is not sent yet",
  waitsBody: "There was no connection when you pressed 'Submit Request'. Open it again with a connection, and it goes.",
  stoppedBody:
    "Something changed after you pressed 'Submit Request', so it does not go by itself anymore. Open it and press the button again.",
  open: "Open it and send it",
  deleted: "Your request was not sent",
  deletedBody:
    "There was no connection for a day. We delete answers on a phone after 24 hours, so they are gone. We are sorry. Please write them once more.",
  again: "Write a new request",
});
