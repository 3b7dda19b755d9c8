/** The three posts. */
export interface Post {
  id: string;
  title: string;
  excerpt: string;
  /** 'yyyy-mm-dd' */
  date: string;
  category: string;
  image: "sent" | "folder" | "globe";
  body: readonly (string | { heading: string } | { quote: string })[];
}

export const posts: readonly Post[] = [
  {
    id: "1",
    title: "How to write a request that gets a quick answer",
    excerpt:
      "Three sentences are enough: what happened, what you need, and until when. Here are real examples, with names changed.",
    date: "2026-11-12",
    category: "Guides",
    image: "sent",
    body: [
      "Nobody is at their best on the day they need help. So here is the good news first: you do not have to write well. The people who read requests look for three things. If all three are there, they can answer the same day.",
      { heading: "What happened" },
      "One sentence about the reason. Not your whole life, only what changed.",
      { quote: "The restaurant where I work closed on the 3rd, and my last pay did not come." },
      { heading: "What you need" },
      "Name the thing and, if it is money, the amount. A number that you can explain is better than a round one. If you do not know the amount, leave it empty. The nonprofit asks.",
      { quote: "I need 640 dollars for the November rent. I can pay the other half myself." },
      { heading: "Until when" },
      "A date tells the reader which request to open first. If there is a letter with the date on it, take a photo and add it.",
      { quote: "The landlord gave me until the 25th. His letter is attached." },
      { heading: "What you can leave out" },
      "You do not have to say sorry. You do not have to prove that you are a good person. You do not have to write in English: write in the language you think in, and the nonprofit finds somebody who reads it.",
      "And if you are stuck, stop. Your answers are kept. Come back tomorrow, and send it then.",
    ],
  },
  {
    id: "2",
    title: "One missing paper is not a no",
    excerpt: "Ask for what is missing before you decide, and you turn fewer people away.",
    date: "2026-10-30",
    category: "For nonprofits",
    image: "folder",
    body: [
      "Every team that reads requests knows the pile: the story is clear, the amount is fine, one paper is not there. It is tempting to decline and move on. The person can ask again, after all. Most do not.",
      { heading: "Ask first, decide second" },
      "When you use 'Request more information', the request stays where it is. It keeps its number and its place, and the person gets one clear question by email. They answer in the same place, often with a photo taken the same evening.",
      { heading: "Ask for one thing" },
      "A list of six papers reads like a no. Ask for the one that decides. Say why you need it, and say that a photo is enough.",
      { quote: "Please send the school's fee letter for this term. A photo is fine." },
      { heading: "Say when you look again" },
      "People can wait when they know for what. A sentence with a day in it saves you three phone calls.",
      "And when you do have to decline, choose the reason with care. It is the part that the person reads twice.",
    ],
  },
  {
    id: "3",
    title: "From Cap-Haïtien to Portland, in four days",
    excerpt: "A school fee, two time zones and a nonprofit that answers in Creole.",
    date: "2026-10-08",
    category: "Stories",
    image: "globe",
    body: [
      "On a Sunday evening, a mother in Cap-Haïtien opened AidBridge on her sister's phone. School had started two weeks before. Her son was not in it: the fee was not paid, and the bakery she worked for had closed in August.",
      { heading: "Sunday" },
      "She chose School Tuition, wrote four sentences in Creole, and picked three nonprofits. One of them was in Portland, Maine. She had never heard of it. It said 'usually answers in 3 days', and that was enough.",
      { heading: "Tuesday" },
      "In Portland, a volunteer who grew up in Gonaïves read the request on her lunch break. One thing was missing: the school's letter with the amount. She asked for it, in Creole.",
      { quote: "Voye yon foto lèt lekòl la, tanpri. Yon foto sifi." },
      { heading: "Wednesday" },
      "The photo arrived at six in the morning. It was a little blurred. It was good enough.",
      { heading: "Thursday" },
      "The manager approved the fee for the whole term. The other two nonprofits saw that the request was taken, and opened the next one in their list. On Friday the boy was in school.",
      "The family asked us to change a few details so that nobody can tell who they are. The four days are as they were.",
    ],
  },
];
