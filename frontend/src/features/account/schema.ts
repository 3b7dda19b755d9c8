/** Profile and password forms (section 5). */
import { z } from "zod";
import { t } from "@/messages";
import "@/messages/en/account";
import { fullName, newPassword, text, tooLong, upTo } from "@/schemas/atoms";

/** A day in the past, 'yyyy-mm-dd'. */
const birthday = z
  .string()
  .min(1, t("account.birthdayRequired"))
  .refine((value) => {
    if (value === "") return true;
    const day = new Date(`${value}T00:00:00`);
    return day <= new Date() && day.getFullYear() > 1900;
  }, t("account.birthdayInvalid"));

export const profileSchema = z.object({
  first_name: text(2, t("account.firstNameRequired")).max(100, tooLong(100)),
  middle_name: upTo(100),
  last_name: text(2, t("account.lastNameRequired")).max(100, tooLong(100)),
  email: z.string(),
  phone: upTo(40),
  sms_consent: z.boolean(),
  birthday,
  country: text(1, t("account.countryRequired")),
  id_type: text(1, t("account.idTypeRequired")),
  id_number: text(1, t("account.idNumberRequired")).max(100, tooLong(100)),
  bio: upTo(2000),
});
export type ProfileForm = z.infer<typeof profileSchema>;

export const passwordSchema = z
  .object({
    currentPassword: z.string().min(6, t("account.currentPasswordRequired")),
    newPassword: newPassword()
      .regex(/\p{Lu}/u, t("account.passwordUppercase"))
      .regex(/\d/, t("account.passwordNumber")),
    confirmPassword: z.string().min(1, t("account.confirmRequired")),
  })
  .refine((form) => form.newPassword === form.confirmPassword, {
    path: ["confirmPassword"],
    error: () => t("account.passwordsDiffer"),
  });
export type PasswordForm = z.infer<typeof passwordSchema>;

export const myProfileSchema = z.object({ fullName: fullName(), email: z.string(), phoneNumber: upTo(40) });
export type MyProfileForm = z.infer<typeof myProfileSchema>;

/** The account's own address, typed again. */
export const closeSchema = (email: string) =>
  z.object({
    email: z
      .string()
      .refine((typed) => typed.trim().toLowerCase() === email.toLowerCase(), t("account.closeEmailWrong")),
  });
