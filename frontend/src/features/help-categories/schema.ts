import { z } from "zod";
import { t } from "@/messages";
import "@/messages/en/helpCategories";

export const categorySchema = z.object({
  name: z
    .string()
    .trim()
    .min(1, t("helpCategories.nameRequired"))
    .max(100, t("helpCategories.tooLong", { max: 100 })),
  description: z
    .string()
    .trim()
    .max(1000, t("helpCategories.tooLong", { max: 1000 })),
});
export type CategoryForm = z.infer<typeof categorySchema>;

/** The settings page ignores a blank name instead of complaining (section 5). */
export const lenientCategorySchema = categorySchema.extend({
  name: z
    .string()
    .trim()
    .max(100, t("helpCategories.tooLong", { max: 100 })),
});
