/** The forms of an organization: founding it (section 5) and its settings. */
import { z } from "zod";
import { t } from "@/messages";
import "@/messages/en/organization";
import { MOST_DOLLARS, parseDollars } from "@/schemas/amount";

const required = (message: string, max: number) =>
  z.string().trim().min(1, message).max(max, t("organization.tooLong", { max }));

/** Digits only: '12'. Kept as text so that an empty field stays empty. */
const employeeCount = z
  .string()
  .trim()
  .min(1, t("organization.employeeCountRequired"))
  .regex(/^\d{1,6}$/, t("organization.employeeCountWhole"));

const serviceCategory = z.object({
  name: z
    .string()
    .trim()
    .max(100, t("organization.tooLong", { max: 100 })),
  description: z
    .string()
    .trim()
    .max(1000, t("organization.tooLong", { max: 1000 })),
});

export const onboardingSchema = z.object({
  name: required(t("organization.nameRequired"), 200),
  legalStatus: required(t("organization.legalStatusRequired"), 100),
  registrationNumber: required(t("organization.registrationNumberRequired"), 100),
  employeeCount,
  mission: required(t("organization.missionRequired"), 5000),
  categories: z.array(serviceCategory).length(2),
});
export type OnboardingForm = z.infer<typeof onboardingSchema>;

export const emptyOnboarding: OnboardingForm = {
  name: "",
  legalStatus: "",
  registrationNumber: "",
  employeeCount: "",
  mission: "",
  categories: [
    { name: "", description: "" },
    { name: "", description: "" },
  ],
};

/** A service category is saved only when both its name and its description are given. */
export const completeCategories = (categories: OnboardingForm["categories"]) =>
  categories.filter(({ name, description }) => name !== "" && description !== "");

const optional = (max: number) => z.string().trim().max(max, t("organization.tooLong", { max }));

/** Non-empty lines, trimmed. */
export const linesOf = (typed: string): string[] =>
  typed
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

export const settingsSchema = z.object({
  name: required(t("organization.nameRequired"), 200),
  legalStatus: required(t("organization.legalStatusRequired"), 100),
  registrationNumber: required(t("organization.registrationNumberRequired"), 100),
  employeeCount,
  mission: required(t("organization.missionRequired"), 5000),
  description: optional(5000),
  email: z.union([z.literal(""), z.email(t("organization.emailInvalid"))]),
  phone: z.union([z.literal(""), optional(40).min(5, t("organization.phoneShort"))]),
  website: z.union([
    z.literal(""),
    z
      .string()
      .trim()
      .regex(/^https?:\/\/\S+\.\S+$/i, t("organization.websiteInvalid"))
      .max(300, t("organization.tooLong", { max: 300 })),
  ]),
  location: optional(200),
  /** Ids of global categories, joined by commas: the form compares texts. */
  helpsWith: z.string(),
  /** A place on each line. */
  serviceArea: optional(5000).refine((typed) => linesOf(typed).length <= 100, t("organization.placesTooMany")),
  responseDays: z
    .string()
    .trim()
    .refine(
      (text) => text === "" || (/^\d{1,2}$/.test(text) && Number(text) >= 1 && Number(text) <= 90),
      t("organization.responseDaysRange"),
    ),
  secondApprovalAbove: z
    .string()
    .trim()
    .refine((text) => text === "" || (parseDollars(text) ?? Infinity) <= MOST_DOLLARS, t("organization.amountInvalid")),
});
export type SettingsForm = z.infer<typeof settingsSchema>;

export const nonprofitRoles = ["admin", "manager", "employee"] as const;
export const roleChoiceSchema = z.object({
  role: z.enum(nonprofitRoles, { error: t("organization.roleRequired") }),
});
export type RoleChoice = z.infer<typeof roleChoiceSchema>;
