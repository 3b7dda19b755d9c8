import { z } from "zod";
import { t } from "@/messages";
import "@/messages/en/donations";
import { amountText } from "@/schemas/amount";

/** A pledge: no card data, ever. */
export const pledgeSchema = z.object({
  nonprofit_id: z.string().min(1, t("donations.nonprofitRequired")),
  amount: amountText({ required: t("donations.amountRequired"), invalid: t("donations.amountInvalid") }),
});
export type PledgeForm = z.infer<typeof pledgeSchema>;

export const replySchema = z.object({
  message: z.string().trim().min(1, t("donations.replyShort")).max(10_000),
});
export type ReplyForm = z.infer<typeof replySchema>;
