/** Money entries: amounts above 0 with at most two decimals. */
import { z } from "zod";
import { t } from "@/messages";
import "@/messages/en/budget";
import { amountText, parseAmount } from "@/schemas/amount";
import { tooLong, upTo } from "@/schemas/atoms";

const amount = () => amountText({ required: t("budget.amountRequired"), invalid: t("budget.amountInvalid") });

export const donationSchema = z.object({
  donor_name: z.string().trim().min(1, t("budget.donorRequired")).max(200, tooLong(200)),
  donor_email: z
    .string()
    .trim()
    .pipe(z.union([z.literal(""), z.email(t("budget.emailInvalid"))])),
  amount: amount(),
});
export type DonationForm = z.infer<typeof donationSchema>;

/** A payout never exceeds what is left of its grant. */
export const payoutSchema = (outstanding: number) =>
  z.object({
    amount: amount().refine((text) => (parseAmount(text) ?? 0) <= outstanding, t("budget.payoutTooMuch")),
    note: upTo(1000),
  });
export type PayoutForm = z.infer<ReturnType<typeof payoutSchema>>;

/** One line per category; an empty amount sets nothing aside. */
export const allocationsSchema = z.object({
  lines: z
    .array(
      z.object({
        category: z.string().trim().min(1, t("budget.categoryRequired")).max(100, tooLong(100)),
        amount: z
          .string()
          .trim()
          .refine(
            (text) => text === "" || /^0+(\.0+)?$/.test(text) || parseAmount(text) !== null,
            t("budget.amountInvalid"),
          ),
        /** The amount when the form was opened; null for a line added in the form. */
        before: z.string().nullable(),
      }),
    )
    .superRefine((lines, context) => {
      const seen = new Set<string>();
      lines.forEach(({ category }, index) => {
        const name = category.toLocaleLowerCase();
        if (name !== "" && seen.has(name)) {
          context.addIssue({ code: "custom", message: t("budget.categoryDuplicate"), path: [index, "category"] });
        }
        seen.add(name);
      });
    }),
});
export type AllocationsForm = z.infer<typeof allocationsSchema>;

/** The dollars of a line; 0 removes the allocation. */
export const allocationAmount = (text: string): number => parseAmount(text) ?? 0;

export type AllocationLine = AllocationsForm["lines"][number];

/** Whether this person changed the line. The others are not written: a colleague may have changed them meanwhile. */
export const isChanged = ({ amount, before }: AllocationLine): boolean =>
  allocationAmount(amount) !== allocationAmount(before ?? "");
