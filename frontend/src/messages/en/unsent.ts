import { define } from "../catalogue";

/** A request that waits to be sent, or changes while it is unsent: by its writer, by a sign-in, or because its draft or a proof is gone. */
export const unsent = define("unsent", {
  stoppedBody:
    "Something changed, so it does not go by itself anymore. When you are ready, press 'Submit Request' again.",
  sentBeforeChange: "Your request ID is {id}. What you changed just now is not in it.",
  guestTitle: "Someone began a request on this device. Is it yours?",
  guestBody: "It has a different email address than your account. If it is yours, it becomes part of your account.",
  guestYes: "Yes, it is mine",
  guestNo: "No, start a new one",
  documentsGoneTitle: "Please add your documents again",
  documentsGone: "This draft was deleted, and its documents with it. Your other answers are kept.",
  meanwhileTitle: "You changed this draft on another device too",
  meanwhileBody:
    "It was saved there: {time}. What you typed here is in this tab alone. Choose which one you want to continue with before you close it. It replaces the other.",
  meanwhileDiffers: "These answers are different: {what}.",
  meanwhileMine: "Keep what I typed here",
  meanwhileTheirs: "Take the other one",
  readAgainTitle: "Your draft was updated",
  readAgainBody: "It now shows what you saved on another device.",
  proofOverTitle: "Please confirm your email address again",
  proofOverBody:
    "To keep this request in your account, we need a new code. The last one was good for an hour. You can also send it without the account.",
  alreadySentTitle: "Your request was sent already, as {number}",
  alreadySentBody:
    "The answer to your first try got lost on the way, but the request arrived. What you changed since was not sent.",
  alreadySentSee: "See {number}",
  alreadySentNew: "Make a new request of these answers",
  waitsTitle: "Not sent yet",
  waitsBody:
    "Your request waits on this device. It goes by itself when the connection is back. Leave this page open, or open it again within a day.",
  waitsSend: "Try now",
  waitsStop: "Do not send it",
  waitsTried: "Last try: {time}.",
});
