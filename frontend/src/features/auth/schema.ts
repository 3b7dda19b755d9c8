/** Forms of signing in and up (section 5). */
import { z } from "zod";
import { t } from "@/messages";
import "@/messages/en/auth";
import "@/messages/en/validation";
import { email, fullName, newPassword } from "@/schemas/atoms";

export const loginSchema = z.object({
  email: email(),
  password: z.string().min(1, t("auth.passwordRequired")),
});
export type Login = z.infer<typeof loginSchema>;

const samePasswords = (form: { password: string; confirmPassword: string }) => form.password === form.confirmPassword;
const differ = { path: ["confirmPassword"], error: () => t("validation.passwordsDiffer") };

export const signupSchema = z
  .object({
    fullName: fullName(),
    email: email(),
    password: newPassword(),
    confirmPassword: z.string().min(8, t("validation.confirmPassword")),
  })
  .refine(samePasswords, differ);
export type Signup = z.infer<typeof signupSchema>;

export const forgotSchema = z.object({ email: email() });
export type Forgot = z.infer<typeof forgotSchema>;

export const resetSchema = z
  .object({ password: newPassword(), confirmPassword: newPassword() })
  .refine(samePasswords, differ);
export type Reset = z.infer<typeof resetSchema>;
