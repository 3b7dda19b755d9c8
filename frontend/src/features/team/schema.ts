/** Adding and editing a member (section 5): name, email and role are required; the default role is employee. */
import { z } from "zod";
import { t } from "@/messages";
import "@/messages/en/team";
import { tooLong } from "@/schemas/atoms";

/** Roles offered in the Add Member dialog. Admin is given later, by editing. */
export const offeredRoles = ["manager", "employee", "volunteer"] as const;
export const allRoles = ["admin", "manager", "employee", "volunteer"] as const;

export const addMemberSchema = z.object({
  full_name: z.string().trim().min(1, t("team.nameMissing")).max(200, tooLong(200)),
  email: z
    .string()
    .trim()
    .min(1, t("team.emailMissing"))
    .pipe(z.union([z.literal(""), z.email(t("team.emailInvalid"))])),
  role: z.enum(offeredRoles, { error: t("team.missing") }),
});
export type AddMemberForm = z.infer<typeof addMemberSchema>;

export const editMemberSchema = z.object({
  full_name: z.string().trim().min(1, t("team.nameMissing")).max(200, tooLong(200)),
  role: z.enum(allRoles, { error: t("team.missing") }),
});
export type EditMemberForm = z.infer<typeof editMemberSchema>;
