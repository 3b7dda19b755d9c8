/** Privacy, terms, accessibility: sections of plain words. `{email}` is the support address. */
export interface LegalSection {
  title: string;
  body: readonly (string | readonly string[])[];
}

export interface LegalText {
  title: string;
  lead: string;
  /** 'yyyy-mm-dd' of the last change. */
  updated: string;
  sections: readonly LegalSection[];
}

export const privacy: LegalText = {
  title: "Privacy Policy",
  lead: "What we keep, who can see it, and how you get it back or have it removed.",
  updated: "2026-11-21",
  sections: [
    {
      title: "What we keep",
      body: [
        "We keep what you tell us, and nothing that we find out behind your back:",
        [
          "Your account: name, email address, a password that we store only as a hash, and your role.",
          "Your profile, if you fill it in: phone, birthday, country, a photo, and an ID number.",
          "Your requests: the kind of help, your words, the amount, your address, and the documents you add.",
          "What happens to a request: who opened it, what was asked, what was decided, and when.",
          "For nonprofits: the organization, its team, its budget, and its messages to donors.",
        ],
        "We do not use advertising, we do not buy data, and no tracker of another company runs on these pages.",
      ],
    },
    {
      title: "Who can see it",
      body: [
        [
          "You see everything that is yours.",
          "The staff of the nonprofits you choose see your request and its documents. When one of them takes it, the others no longer see who you are.",
          "Donors see totals. They never see a person, a name or a document.",
          "The public status page shows the state of a request and its dates to anyone who knows its number. It shows no name, no text and no address.",
          "Your ID number can be read by you alone.",
        ],
        "These rules are part of the database itself. A page that has a mistake in it still cannot show what its reader may not see.",
      ],
    },
    {
      title: "Email",
      body: [
        "We write to you when something happens to your request, your team or your account. The newsletter comes only after you confirmed it, and every letter has a link that ends it.",
        "Text messages come only if you said yes to them, and your answer STOP ends them. A company that sends texts for us then gets your number and the text. It says that there is something to read, and not what.",
      ],
    },
    {
      title: "Cookies and storage in your browser",
      body: [
        "We keep your sign-in, your theme, the nonprofit you selected and answers you have not sent yet in your browser's storage. One cookie remembers whether the sidebar is folded; it lasts 7 days. None of this is used to follow you.",
      ],
    },
    {
      title: "How long",
      body: [
        "Files that were added to a request which was never sent are removed after 24 hours. Drafts go when nobody has touched them for a year. Requests that were sent stay as long as the nonprofit must be able to show how it used its money; without an account, one that was declined or taken back goes after a year, and your name goes from a granted one after two. One that nobody answers goes after a year, too: we write to you a month before, and it stays if you open it. Messages that you have read go after a year. Everything else goes when you close your account, under My Profile.",
      ],
    },
    {
      title: "Your rights",
      body: [
        "You can see, correct and download what we keep about you, and close your account, under My Profile. For anything else write to {email}. A person answers within 30 days, and usually within three.",
      ],
    },
  ],
};

export const terms: LegalText = {
  title: "Terms of Service",
  lead: "What you can expect from us, and what we ask of you.",
  updated: "2026-11-21",
  sections: [
    {
      title: "What AidBridge does",
      body: [
        "AidBridge carries requests from people who need help to nonprofits that may give it. We are the bridge, not the one who decides. Each nonprofit decides for itself, by its own rules, and it is responsible for what it promises.",
      ],
    },
    {
      title: "If you ask for help",
      body: [
        [
          "Tell the truth, as well as you know it. You do not have to tell everything.",
          "Send a request for yourself, or for somebody who asked you to.",
          "After you send a request, you can correct your name, phone and address. To change the rest, withdraw it and send a new one.",
          "A request is a question. It gives no right to an answer with money in it.",
        ],
        "It costs you nothing. Anyone who asks you for money in our name is not from us. Please tell us at {email}.",
      ],
    },
    {
      title: "If you work for a nonprofit",
      body: [
        [
          "Use what people send you for deciding about their request, and for nothing else.",
          "Give access only to people of your team, and take it away when they leave.",
          "Say why when you decline. The reason is read by a person on a bad day.",
          "Pay what you approved, and write it down.",
        ],
      ],
    },
    {
      title: "If you give",
      body: [
        "'Make a Donation' records a promise to the nonprofit you choose. We take no card data. The nonprofit tells you how to pay, and marks your gift as received when it has arrived.",
      ],
    },
    {
      title: "What is not allowed",
      body: [
        "No request that is made up, no account in somebody else's name, no reading of what is not yours, and nothing that keeps the service from others. We may close an account that does this. We say why, and you can answer.",
      ],
    },
    {
      title: "What we cannot promise",
      body: [
        "We do our best to be there at any hour, and we keep copies so that nothing is lost. Still, a bridge can be closed for a while. In an emergency, do not wait for us: call your local emergency number.",
      ],
    },
    {
      title: "Changes and questions",
      body: [
        "If these terms change, we tell you by email two weeks before. If something here is not clear, write to {email}. If it is not clear to you, it is our mistake, and we write it better.",
      ],
    },
  ],
};

export const accessibility: LegalText = {
  title: "Accessibility",
  lead: "AidBridge must work for everyone who needs it, on the phone that they have.",
  updated: "2026-11-21",
  sections: [
    {
      title: "What we aim for",
      body: [
        "We follow the Web Content Accessibility Guidelines (WCAG) 2.2, level AA. Body text has a contrast of at least 7 to 1, in the light and in the dark theme. Both are checked by a program each time a color changes.",
      ],
    },
    {
      title: "What you can use",
      body: [
        [
          "Keyboard alone: every page and every dialog can be used without a mouse. The first stop on each page is 'Skip to main content'.",
          "Screen readers: each control has a name, each page has one main heading, and messages are announced.",
          "Zoom: pages work at 400 percent, and on a screen of 320 pixels.",
          "Motion: if your device asks for less motion, nothing moves.",
          "Color: nothing is said by color alone. Every state has a word and a shape.",
          "Touch: what you tap is at least 44 pixels high.",
        ],
      ],
    },
    {
      title: "Shortcuts",
      body: [
        [
          "F8 moves to the notifications region.",
          "Ctrl+B (Cmd+B on a Mac) folds the sidebar.",
          "Shift pressed three times leaves a request page at once, and opens a weather page.",
        ],
      ],
    },
    {
      title: "What does not work well yet",
      body: [
        "Documents that people upload are as accessible as they were made. Photos of papers cannot be read aloud. If you work with a screen reader and need such a paper in words, ask the person in the request, or ask us.",
        "The pages are in English, Spanish, French and Haitian Creole. No native speaker has reviewed the last three yet. The legal texts and the blog are in English alone. You can write your request in the language you like.",
      ],
    },
    {
      title: "Tell us",
      body: [
        "If something keeps you from asking for help or from giving it, write to {email}. Tell us the page and what you use. We answer within two working days.",
      ],
    },
  ],
};
