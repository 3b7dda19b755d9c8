import { define } from "../catalogue";

/** The nine questions. */
export const faq = define("faq", {
  "who.question": "Who can ask for help?",
  "who.answer":
    "Anyone. You do not need an account, a bank card or a special paper to start. Choose what kind of help you need and who should read your request. Each nonprofit decides by its own rules, and says so on its profile.",
  "cost.question": "Does it cost anything?",
  "cost.answer":
    "No. AidBridge is free for aid seekers, and free for nonprofits for now. We live on donations. If that ever changes for nonprofits, we tell you before anything costs money.",
  "how-long.question": "How long until I hear something?",
  "how-long.answer":
    "The first answer usually comes within 3-5 business days. The whole review takes 5-7 days. You get an email at each step, and you can look it up with your number at any time.",
  "several.question": "Can I send one request to several nonprofits?",
  "several.answer":
    "Yes, to up to 3 nonprofits in one form. All of them can read it. The first that acts on it takes it, and only that one answers you. So you never have to tell your story twice.",
  "edit.question": "Can I edit my request after I send it?",
  "edit.answer":
    "No. Once it is sent, everybody must be able to rely on the same words. You can still correct your name, phone and address. For the rest you can withdraw it and send it again as a new request. Your old answers come with you, so you change only what is different.",
  "papers.question": "Which papers do I need?",
  "papers.answer":
    "None to start with. Papers help when they show what you tell: a rent letter, a school's fee notice, a doctor's bill. A photo is fine. You can send PDF, JPEG, PNG or Word files of up to 10 MB each. If something is missing, the nonprofit tells you which paper it is.",
  "declined.question": "What happens if I am declined?",
  "declined.answer":
    "You read the reason. If you sent your request to more than one nonprofit, the others can still answer. A no is about one request, not about you: you can ask again, there or somewhere else, as often as you need.",
  "who-reads.question": "Who can read what I write?",
  "who-reads.answer":
    "Only the staff of the nonprofits you choose. Donors see totals, never a person. The public status page shows the state of a request and its dates, and nothing that names you.",
  "lost-number.question": "I lost my request number. What now?",
  "lost-number.answer":
    "Look in your email: the number is in the subject of the first message. If you have an account, log in and open My Requests. If you sent it without an account, sign up with the same email address, and your request is waiting for you.",
});
