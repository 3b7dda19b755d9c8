import { t } from "@/messages";
import "@/messages/en/faq";

const IDS = ["who", "cost", "how-long", "several", "edit", "papers", "declined", "who-reads", "lost-number"] as const;

/** The nine questions with their answers. */
export const questions = () =>
  IDS.map((id) => ({ id, question: t(`faq.${id}.question`), answer: t(`faq.${id}.answer`) }));
