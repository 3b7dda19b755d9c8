/** Atoms of the forms: each rule of section 5 that more than one form shares, written once. */
import { z } from "zod";
import { t } from "@/messages";
import "@/messages/en/validation";

export const email = () =>
  z
    .string()
    .trim()
    .pipe(z.email(t("validation.email")));

/** A password's length limit on the server, in bytes of UTF-8: bcrypt would ignore what follows. */
const PASSWORD_BYTES = 72;

/** The password of a new account. */
export const newPassword = () =>
  z
    .string()
    .min(8, t("validation.password"))
    .refine((typed) => new TextEncoder().encode(typed).length <= PASSWORD_BYTES, t("validation.passwordTooLong"));

/** The database's length limit, checked at the field before sending. */
export const tooLong = (max: number) => t("validation.tooLong", { max });

/** At most `max` characters after trimming; may be empty. */
export const upTo = (max: number) => z.string().trim().max(max, tooLong(max));

export const fullName = () => z.string().trim().min(2, t("validation.fullName")).max(200, tooLong(200));

/** At least `min` characters after trimming, else `message`. */
export const text = (min: number, message: string) => z.string().trim().min(min, message);

export const phone = () => text(5, t("validation.phone"));
