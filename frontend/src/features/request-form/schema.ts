/** The rules of section 5 for a request, each once. The wizard uses the parts, the single page all of them. */
import { z } from "zod";
import { MOST_DOLLARS, optionalAmount, parseDollars } from "@/schemas/amount";
import { email, phone } from "@/schemas/atoms";
import { t } from "@/messages";
import "@/messages/en/requestForm";

const required = (
  min: number,
  key: "firstName" | "lastName" | "address" | "city" | "state" | "postalCode",
  max: number,
) =>
  z
    .string()
    .trim()
    .min(min, t(`requestForm.${key}Required`))
    .max(max, t("requestForm.tooLong", { max }));

export const personalSchema = z.object({
  firstName: required(2, "firstName", 100),
  lastName: required(2, "lastName", 100),
  email: email(),
  phone: phone().max(40, t("requestForm.tooLong", { max: 40 })),
});

export const contactSchema = z.object({
  address: required(5, "address", 300),
  city: required(2, "city", 100),
  state: required(2, "state", 100),
  postalCode: required(2, "postalCode", 20),
});

export const identitySchema = personalSchema.extend(contactSchema.shape);
export type Identity = z.input<typeof identitySchema>;

export const personalFields = ["firstName", "lastName", "email", "phone"] as const;
export const contactFields = ["address", "city", "state", "postalCode"] as const;

const MAX_DESCRIPTION = 5000;

/** Section 5, 'Request details'. */
export const descriptionSchema = z
  .string()
  .trim()
  .min(10, t("requestForm.descriptionDetails"))
  .max(MAX_DESCRIPTION, t("requestForm.tooLong", { max: MAX_DESCRIPTION }));

/** Optional, numeric; below ten million dollars. */
export const amountSchema = optionalAmount().refine(
  (typed) => (parseDollars(typed) ?? 0) <= MOST_DOLLARS,
  t("requestForm.amountMost"),
);

/** The database's text: 'Not specified' or '$N'. An amount that is not a number yet is not stored. */
export function amountText(typed: string): string {
  const amount = amountSchema.safeParse(typed).success ? parseDollars(typed) : null;
  if (amount === null) return "Not specified";
  return Number.isInteger(amount) ? `$${amount}` : `$${amount.toFixed(2)}`;
}

export const detailsSchema = z.object({ description: descriptionSchema, amount: amountSchema });
export type Details = z.input<typeof detailsSchema>;

export const consentSchema = z.boolean().refine((on) => on, t("requestForm.consentRequired"));
export const reviewSchema = z.object({ consent: consentSchema });

/** Section 5, 'Submit request': the single page asks for everything at once. */
export const singlePageSchema = z.object({
  categoryId: z.string().min(1, t("requestForm.categoryRequired")),
  nonprofits: z
    .array(z.object({ id: z.string(), name: z.string() }))
    .min(1, t("requestForm.nonprofitRequired"))
    .max(3, t("requestForm.maximumBody")),
  description: z
    .string()
    .trim()
    .min(10, t("requestForm.descriptionMin"))
    .max(MAX_DESCRIPTION, t("requestForm.tooLong", { max: MAX_DESCRIPTION })),
  amount: amountSchema,
  identity: identitySchema,
  texts: z.boolean(),
  consent: consentSchema,
});
export type SinglePage = z.input<typeof singlePageSchema>;
