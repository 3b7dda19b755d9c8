/** Which step the answers allow, by the rules of `schema.ts`. */
import { MAX_NONPROFITS, steps, type Answers, type Step } from "./answers";
import { amountSchema, descriptionSchema, identitySchema } from "./schema";

/** Whether one view's answers allow to continue. */
export function isAnswered(answers: Answers, step: Step): boolean {
  switch (step) {
    case "category":
      return answers.category !== null;
    case "nonprofits":
      return answers.nonprofits.length > 0 && answers.nonprofits.length <= MAX_NONPROFITS;
    case "info":
      return identitySchema.safeParse(answers.identity).success;
    case "details":
      return descriptionSchema.safeParse(answers.description).success && amountSchema.safeParse(answers.amount).success;
    case "review":
      return answers.consent;
    case "sent":
      return false;
  }
}

/** The furthest view these answers reach: the first one that still needs an answer. */
export function furthestStep(answers: Answers): Step {
  return steps.find((step) => !isAnswered(answers, step)) ?? "review";
}

/** The view an address asks for, no further than the answers carry. */
export function allowedStep(wanted: string | null, answers: Answers): Step {
  const furthest = furthestStep(answers);
  const index = steps.indexOf(wanted as Step);
  if (index < 0) return "category";
  return index <= steps.indexOf(furthest) ? (wanted as Step) : furthest;
}
