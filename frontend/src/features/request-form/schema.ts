/** The rules of section 5 for a request, each once. The wizard uses the parts, the single page all of them. */
import { z } from "zod";
import { email } from "@/schemas/email";
import { t } from "@/messages";
import "@/messages/en/requestForm";

const required = (min: number, key: "firstName" | "lastName" | "phone" | "address" | "city" | "state" | "postalCode", max: number) =>
  z
    .string()
    .trim()
    .min(min, t(`requestForm.${key}Required`))
    .max(max, t("requestForm.tooLong", { max }));

export const personalSchema = z.object({
  firstName: required(2, "firstName", 100),
  lastName: required(2, "lastName", 100),
  email,
  phone: required(5, "phone", 40),
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

/** '$1,200.50' or '1200.5' → '1200.5'; '' stays ''. */
export function normalizeAmount(text: string): string {
  return text.trim().replace(/^\$\s*/, "").replace(/,(?=\d{3}(\D|$))/g, "");
}

/** Optional; dollars up to 9,999,999.99. */
export const amountSchema = z.string().refine((text) => {
  const amount = normalizeAmount(text);
  return amount === "" || /^\d{1,7}(\.\d{1,2})?$/.test(amount);
}, t("requestForm.amountNumber"));

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
  consent: consentSchema,
});
export type SinglePage = z.input<typeof singlePageSchema>;

/** Section 8: six digits from the mail. */
export const codeSchema = z.object({ code: z.string().trim().regex(/^\d{6}$/, t("requestForm.codeShape")) });
