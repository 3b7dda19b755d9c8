import { z } from "zod";
import { t } from "@/messages";
import "@/messages/en/donorMessages";

/** Section 5: subject at least 2, message at least 10 characters. */
export const donorMessageSchema = z.object({
  subject: z
    .string()
    .trim()
    .min(2, t("donorMessages.subjectRequired"))
    .max(200, t("donorMessages.tooLong", { max: 200 })),
  message: z
    .string()
    .trim()
    .min(10, t("donorMessages.messageShort"))
    .max(10_000, t("donorMessages.tooLong", { max: 10_000 })),
});
export type DonorMessageForm = z.infer<typeof donorMessageSchema>;
