/** The answers as the columns of a draft and of a request. */
import type { Answers } from "./answers";
import { amountText } from "./schema";

/** The columns both a draft and a submission carry. */
export function columns(answers: Omit<Answers, "key">) {
  return {
    category_id: answers.category?.id ?? null,
    nonprofits: answers.nonprofits.map(({ id }) => id),
    description: answers.description,
    amount: amountText(answers.amount),
    contact_consent: answers.consent,
    sms_consent: answers.texts ?? false,
    form: answers.form,
    first_name: answers.identity.firstName.trim(),
    last_name: answers.identity.lastName.trim(),
    email: answers.identity.email.trim(),
    phone: answers.identity.phone.trim(),
    address: answers.identity.address.trim(),
    city: answers.identity.city.trim(),
    state: answers.identity.state.trim(),
    postal_code: answers.identity.postalCode.trim(),
  };
}

/** The answers that the draft is saved with and that differ from another version's. Documents are stored by themselves. */
export function differences(a: Omit<Answers, "key">, b: Omit<Answers, "key">): string[] {
  const others: Record<string, unknown> = columns(b);
  return Object.entries(columns(a))
    .filter(([name, value]) => name !== "form" && JSON.stringify(value) !== JSON.stringify(others[name]))
    .map(([name]) => name);
}
