import { define } from "../catalogue";

/**
 * Mails, by code: subject, heading, paragraphs (p1, p2, …), button, the small line after it, and why the reader gets it. The database
 * writes them from its own copy of these words (`sql/app/words`). No page loads this list.
 */
export const mail = define("mail", {
  // around every mail
  yourRequest: "Your request",
  open: "Open",
  buttonFails: "The button does not work? Copy this address into your browser:",
  never: "We never ask for your password or for money.",
  unsubscribe: "Unsubscribe",
  hello: "Hello {name},",
  helloThere: "Hello there,",
  aNonprofit: "A nonprofit",
  whyRequest: "You get this mail because you sent request {number} on {date}.",

  "sent.subject": "{number}: we have your request",
  "sent.heading": "We have your request",
  "sent.p1": "Your request for {category} went to {nonprofits}.",
  "sent.p2":
    "Most people hear back in 5 to 7 days. The first nonprofit that acts takes your request, and we write to you at each step.",
  "sent.button": "See your request",
  "sent.after": "Keep the number. With it you can look up the status without signing in.",
  "sent.why": "You get this mail because request {number} was sent with this address.",

  "requestCode.subject": "{code} opens {number}",
  "requestCode.kicker": "Your code",
  "requestCode.heading": "Type this code on the page you came from",
  "requestCode.p1":
    "It opens your request {number} and is good for 15 minutes. If you did not ask for it, you need not do anything.",
  "requestCode.why": "You get this mail because someone typed the number of your request on AidBridge.",

  "couldNotHelp.subject": "{number}: one nonprofit could not help",
  "couldNotHelp.heading": "One nonprofit could not help",
  "couldNotHelp.p1": "{nonprofit} cannot help with your request for {category}. They write:",
  "couldNotHelp.button": "See your request",
  "couldNotHelp.after": {
    one: "Your request stays open. {count} more nonprofit has it. You need not do anything.",
    other: "Your request stays open. {count} more nonprofits have it. You need not do anything.",
  },

  "declined.subject": "{number}: your request was declined",
  "declined.heading": "Your request was declined",
  "declined.p1": "{nonprofit} cannot help with your request for {category}. They write:",
  "declined.button": "See what you can do next",
  "declined.after": "You can send it again to other nonprofits as a new request.",

  // to people without an account, before and after the end of a request that nobody answered
  "unanswered.subject": "{number}: is your request still needed?",
  "unanswered.heading": "There was no news for a long time",
  "unanswered.p1":
    "We are sorry. For eleven months nothing has happened to your request for {category}. We do not want to keep what you told us for ever.",
  "unanswered.p2":
    "On {ends} we delete it with its papers. Do you still need it? Open it before that day, and it stays. If not, you need not do anything.",
  "unanswered.button": "Keep my request",
  "unanswered.after":
    "You need no account: we mail you a code that opens it. You can also ask other nonprofits at any time.",
  "unansweredEnded.subject": "{number}: your request is deleted",
  "unansweredEnded.heading": "Your request is deleted",
  "unansweredEnded.p1":
    "We are sorry that your request for {category} got no decision. After a year without news we deleted it with its papers, as we wrote to you.",
  "unansweredEnded.p2": "If you still need help, you can ask again. You can choose other nonprofits.",
  "unansweredEnded.button": "Ask for help",

  "approved.subject": "{number}: your request is approved",
  "approved.heading": "Your request is approved",
  "approved.p1": "{nonprofit} approved your request for {category} with {amount}.",
  "approved.p2": "They write to you about how the help reaches you.",
  "approved.button": "See your request",

  "asked.subject": "{number}: please send one more thing",
  "asked.heading": "Please send one more thing",
  "asked.p1": "{nonprofit} read your request for {category}. They write:",
  "asked.button": "Add documents",
  // what staff tick when something is missing
  "missing.identity": "A photo of your identity card or passport.",
  "missing.bill": "The bill that is to be paid. A photo is fine.",
  "missing.rent": "Your rent contract, or a letter from your landlord.",
  "missing.income": "Your last pay slip, or a letter that says what you get each month.",
  "missing.medical": "The letter of your doctor, or the prescription.",
  "missing.school": "The letter of the school on its fees.",
  "missing.offer": "A price or an offer for what you want to buy.",
  "missing.contact": "A phone number on which we can reach you.",

  "asked.after": "You do not have it? Write that as your answer. You will not lose your place.",
  "asked.afterGuest":
    "You need no account: we mail you a code that opens your request. You do not have it? Write that as your answer. You will not lose your place.",

  // texts: 160 characters at most, without what others should not read over a shoulder
  "sms.code": "AidBridge: {code} opens your request {number} for 15 minutes. Tell nobody this code.",
  "sms.decided": "AidBridge: your request {number} has an answer: {link} No more texts? Reply STOP.",
  "sms.asked": "AidBridge: your request {number} needs one more thing: {link} No more texts? Reply STOP.",

  "ownCode.subject": "{code} is your AidBridge code",
  "ownCode.kicker": "Your code",
  "ownCode.heading": "Type this code on the page you came from",
  "ownCode.p1": "It is good for 15 minutes. If you did not ask for it, you need not do anything.",
  "ownCode.why": "You get this mail because someone typed this address on AidBridge.",

  "closed.subject": "Your AidBridge account is closed",
  "closed.kicker": "Your account",
  "closed.heading": "Your account is closed",
  "closed.p1": "Your profile, your drafts, your requests, your papers and your messages are erased.",
  "closed.nothing": "Nothing of your requests stays.",
  "closed.kept": {
    one: "Of {count} request the number, the kind of help, the amount and the dates stay in the books of the nonprofits. Your name and your papers do not.",
    other:
      "Of {count} requests the number, the kind of help, the amount and the dates stay in the books of the nonprofits. Your name and your papers do not.",
  },
  "closed.why": "You get this mail because the account of this address was just closed.",

  "pledged.subject": "Thank you for your pledge to {nonprofit}",
  "pledged.heading": "Thank you for your pledge",
  "pledged.p1": "You want to give {amount} to {nonprofit}.",
  "pledged.p2": "{nonprofit} writes to you about how to send it. We take no card details.",
  "pledged.why": "You get this mail because someone pledged a donation with this address on AidBridge.",

  "donorMessage.p1": "A message from {nonprofit}:",
  "donorMessage.button": "Read and answer",
  "donorMessage.why": "You get this mail because you gave to {nonprofit}.",

  "newsletter.subject": "Please confirm your subscription",
  "newsletter.heading": "Please confirm your subscription",
  "newsletter.p1":
    "Someone asked us to send the AidBridge newsletter to this address. If it was you, confirm with the button. If not, you need not do anything.",
  "newsletter.button": "Confirm",
  "newsletter.why": "You get this mail once, because this address was typed on our blog.",

  "newsletterAgain.subject": "You already get our newsletter",
  "newsletterAgain.heading": "You already get our newsletter",
  "newsletterAgain.p1": "This address is on the list already. There is nothing to do.",
  "newsletterAgain.why": "You get this mail because this address was typed on our blog.",

  "invitation.subject": "Join {nonprofit} on AidBridge",
  "invitation.heading": "Join {nonprofit}",
  "invitation.p1":
    "{nonprofit} invites you to join its team as {role}. Sign in or sign up with this email address, then accept.",
  "role.admin": "admin",
  "role.manager": "manager",
  "role.employee": "employee",
  "role.volunteer": "volunteer",
  "invitation.button": "Accept the invitation",
  "invitation.after": "The invitation is good for 14 days and works once.",
  "invitation.why": "You get this mail because {nonprofit} added this address to its team.",

  // the mails of signing in, which the hook of sign-in mails writes (private.sign_in_mail)
  "confirm.subject": "Confirm your email address",
  "confirm.kicker": "Your account",
  "confirm.heading": "Is this your address?",
  "confirm.p1": "An account was opened with this address. Confirm the address to start using it.",
  "confirm.button": "Confirm this address",
  "confirm.after": "If it was not you, do nothing. Nobody can use the account until the address is confirmed.",
  "confirm.why": "You get this mail because someone opened an AidBridge account with this address.",

  "invited.subject": "You've been invited",
  "invited.kicker": "Your account",
  "invited.heading": "You have an invitation",
  "invited.p1": "Someone asked us to open an account for you. Accept and you can sign in at once.",
  "invited.button": "Accept the invitation",
  "invited.after": "If you do not want an account, do nothing.",
  "invited.why": "You get this mail because someone at AidBridge invited this address.",

  "recovery.subject": "Reset your password",
  "recovery.kicker": "Your account",
  "recovery.heading": "Choose a new password",
  "recovery.p1": "Someone asked for a new password for your account. The button signs you in, so that you can set one.",
  "recovery.button": "Choose a new password",
  "recovery.after": "If it was not you, do nothing. Your password stays as it is.",
  "recovery.why": "You get this mail because someone typed this address on AidBridge.",

  "signInLink.subject": "Your sign-in link",
  "signInLink.kicker": "Your account",
  "signInLink.heading": "Sign in",
  "signInLink.p1": "The button signs you in. It works once, and not for long.",
  "signInLink.button": "Sign in",
  "signInLink.after": "If you did not ask for it, do nothing.",
  "signInLink.why": "You get this mail because someone typed this address on AidBridge.",

  "addressChange.subject": "Confirm your new email address",
  "addressChange.kicker": "Your account",
  "addressChange.heading": "A new address for your account",
  "addressChange.p1": "The address of your account is to change from {old} to {new}. Please confirm it.",
  "addressChange.button": "Confirm the change",
  "addressChange.after": "If it was not you, do nothing. The address stays as it is.",
  "addressChange.why": "You get this mail because someone typed this address in the settings of an account.",

  "itIsYou.subject": "{code} is your verification code",
  "itIsYou.kicker": "Your code",
  "itIsYou.heading": "Type this code where the page asks for it",
  "itIsYou.p1": "It shows us that it is you.",
  "itIsYou.after": "If no page asked you for a code, someone may be using your account. Change your password.",
  "itIsYou.why": "You get this mail because someone is changing your account.",

  "passwordChanged.subject": "Your password was changed",
  "passwordChanged.p1": "The password of your account was changed just now.",
  "addressChanged.subject": "Your email address was changed",
  "addressChanged.p1": "The address of your account was changed just now.",
  "phoneChanged.subject": "Your phone number was changed",
  "phoneChanged.p1": "The phone number of your account was changed just now.",
  "waysChanged.subject": "The ways to sign in were changed",
  "waysChanged.p1": "A way to sign in to your account was added or removed just now.",
  "accountChanged.kicker": "Your account",
  "accountChanged.after": "If it was not you, reset your password now and write to us.",
  "accountChanged.why": "You get this mail because this is the address of an AidBridge account.",
});
