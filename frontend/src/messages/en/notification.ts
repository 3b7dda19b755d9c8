import { define } from "../catalogue";

/**
 * What people are told inside the app, by code: `private.notify` writes the English, the app says it in the reader's language
 * (`features/notifications/words.ts`). No page loads this list.
 */
export const notification = define("notification", {
  "sent.title": "Request Submitted",
  "sent.body": "Your request {number} for {category} is on its way.",
  "withdrawn.title": "Request Withdrawn",
  "withdrawn.body": "You took back {number}. You can send it again as a new draft.",
  "documents.title": "Documents uploaded successfully",
  "documents.body": "{count} document(s) have been uploaded.",
  "answerSent.title": "Documents uploaded successfully",
  "answerSent.body": "Your answer was sent.",
  "couldNotHelp.title": "{nonprofit} could not help with {number}",
  "couldNotHelp.body": {
    one: "Your request stays open: {count} more nonprofit has it.",
    other: "Your request stays open: {count} more nonprofits have it.",
  },
  "declined.title": "Request Declined",
  "declined.body": "{nonprofit} declined {number}: {reason}",
  "finalReview.title": "Request under final review",
  "finalReview.body": "{nonprofit} finished its review of {number}. The decision is next.",
  "approved.title": "Request Approved",
  "approved.body": "{nonprofit} approved {number} for {amount}.",
  "asked.title": "Additional Information Requested",
  "asked.body": "{nonprofit} asks about {number}: {question}",
  "paid.title": "Payment recorded",
  "paid.body": "{amount} for {number} is on its way.",
  "donationReceived.title": "Donation received",
  "donationReceived.body": "{nonprofit} received your {amount}. Thank you.",

  // for the organization
  "newRequest.title": "New request {number}",
  "newRequest.body": "{category}, {amount}.",
  "newRequestOpen.title": "New request {number}",
  "newRequestOpen.body": "{category}, no amount given.",
  "corrected.title": "{number} was corrected",
  "corrected.body": "The person changed their contact data.",
  "takenBack.title": "{number} was withdrawn",
  "takenBack.body": "The person took this request back. There is nothing to do.",
  "answered.title": "{number} was answered",
  "answered.body": "You can decide now.",
  "answeredDocuments.title": "{number} was answered",
  "answeredDocuments.body": "{count} new document(s). You can decide now.",
  "taken.title": "{number} is taken",
  "taken.body": "Another nonprofit took this request. There is nothing to do.",
  "openAgain.title": "{number} is open again",
  "openAgain.body": "The nonprofit that had taken it gave it back.",
  "unanswered.title": "{number} still waits for an answer",
  "unanswered.body":
    "Nothing has happened to it for eleven months. It is deleted on {date}. Please decide before, or ask.",
  "secondApproval.title": "{number} needs a second approval",
  "secondApproval.body": "For {amount}, by another manager or admin.",
  "handedOver.title": "{name} handed {number} to you",
  "handedOver.body": "{category}. You look after it now.",
  "pledged.title": "New pledge: {amount}",
  "pledged.body": "{donor} wants to give. Mark it received when the money is here.",
  /** Who gave or wrote without a name. */
  aDonor: "A donor",
  "donorAnswered.title": "A donor answered",
  "donorAnswered.body": "{donor}: Re: {subject}",
  "joined.title": "Team Member Added",
  "joined.body": "{name} accepted the invitation.",
});
