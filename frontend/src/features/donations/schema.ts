import { z } from "zod";
import { t } from "@/messages";
import "@/messages/en/donations";
import { tooLong } from "@/schemas/atoms";

export const replySchema = z.object({
  message: z.string().trim().min(1, t("donations.replyShort")).max(10_000, tooLong(10_000)),
});
export type ReplyForm = z.infer<typeof replySchema>;
