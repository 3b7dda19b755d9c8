/** The three decisions (section 5): an amount, a reason, notes. */
import { z } from "zod";
import { t } from "@/messages";
import "@/messages/en/incoming";
import { amountText } from "@/schemas/amount";
import { tooLong } from "@/schemas/atoms";

export const approveSchema = z.object({
  amount: amountText({ required: t("incoming.amountRequired"), invalid: t("incoming.amountInvalid") }),
});
export type ApproveForm = z.infer<typeof approveSchema>;

export const denySchema = z.object({
  reasonCode: z.string().min(1, t("incoming.denyReasonRequired")),
  reason: z.string().trim().min(1, t("incoming.denyMessageRequired")).max(5000, tooLong(5000)),
});
export type DenyForm = z.infer<typeof denySchema>;

/** What can be ticked as missing; the database writes it in the person's language (`mail.missing.…`). */
export const missingItems = ["identity", "bill", "rent", "income", "medical", "school", "offer", "contact"] as const;

export const infoSchema = z
  .object({
    items: z.array(z.enum(missingItems)),
    notes: z.string().trim().max(5000, tooLong(5000)),
  })
  .refine(({ items, notes }) => items.length > 0 || notes !== "", {
    path: ["notes"],
    message: t("incoming.infoNotesRequired"),
  });
export type InfoForm = z.infer<typeof infoSchema>;
