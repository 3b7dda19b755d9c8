import { z } from "zod";
import { t } from "@/messages";
import "@/messages/en/addressCode";

/** The six digits of a mailed code. */
export const codeSchema = z.object({
  code: z
    .string()
    .trim()
    .regex(/^\d{6}$/, t("addressCode.shape")),
});
