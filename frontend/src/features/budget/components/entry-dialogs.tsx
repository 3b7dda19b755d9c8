/** Records a donation or a payout. What was typed stays in this tab until it is recorded or cancelled. */
import { zodResolver } from "@hookform/resolvers/zod";
import { useMemo } from "react";
import { useForm, useWatch } from "react-hook-form";
import { Field, Form } from "@/components/form";
import { DialogAnswers, DialogContent } from "@/components/ui/dialog";
import { Input } from "@/components/ui/input";
import { fieldErrors } from "@/lib/errors";
import { formatMoney } from "@/lib/format";
import { readKept, useKeptForm } from "@/lib/kept-form";
import { localName } from "@/lib/local-name";
import { toast } from "@/lib/toast";
import { useSendKey } from "@/lib/use-send-key";
import { t } from "@/messages";
import "@/messages/en/budget";
import { parseAmount } from "@/schemas/amount";
import { useRecordDonation, useRecordPayout, type Grant } from "../api";
import { donationSchema, payoutSchema, type DonationForm, type PayoutForm } from "../schema";
import { MoneyField } from "./money-field";

const recordWords = (typed: string) => {
  const amount = parseAmount(typed);
  return amount === null ? t("budget.save") : t("budget.recordAmount", { amount: formatMoney(amount) });
};

export interface EntryProps {
  nonprofitId: string;
  userId: string;
  onClose: () => void;
}

export function DonationDialog({ nonprofitId, userId, onClose }: EntryProps) {
  const keptAs = `donation-${nonprofitId}-${userId}`;
  const form = useForm<DonationForm>({
    resolver: zodResolver(donationSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: readKept<DonationForm>(keptAs, { donor_name: "", donor_email: "", amount: "" }),
  });
  const forget = useKeptForm(form, keptAs);
  const record = useRecordDonation(nonprofitId);
  const { take, refused } = useSendKey(keptAs);
  const typed = useWatch({ control: form.control, name: "amount" });
  const submit = async (values: DonationForm) => {
    try {
      await record.mutateAsync({ form: values, key: take() });
      forget();
      toast({
        title: t("budget.donationToast"),
        description: t("budget.donationToastBody", {
          amount: formatMoney(parseAmount(values.amount) ?? 0),
          donor: values.donor_name,
        }),
      });
      onClose();
    } catch (error) {
      refused(error);
      for (const [name, message] of Object.entries(fieldErrors(error))) {
        if (name === "amount" || name === "donor_name" || name === "donor_email") form.setError(name, { message });
      }
    }
  };
  return (
    <DialogContent
      title={t("budget.donationTitle")}
      description={t("budget.donationBody")}
      dirty={form.formState.isDirty}
    >
      <Form form={form} onSubmit={submit} error={record.error} errorTitle={t("budget.failedTitle")}>
        <Field<DonationForm> name="donor_name" label={t("budget.donor")} hint={t("budget.donorHint")}>
          {(control) => <Input autoComplete="off" {...control} />}
        </Field>
        <Field<DonationForm>
          name="donor_email"
          label={t("budget.donorEmail")}
          hint={t("budget.donorEmailHint")}
          optional
        >
          {(control) => <Input type="email" autoComplete="off" autoCapitalize="none" spellCheck={false} {...control} />}
        </Field>
        <MoneyField<DonationForm> name="amount" label={t("budget.amount")} />
        <DialogAnswers
          submit={recordWords(typed)}
          busy={record.isPending}
          busyLabel={t("budget.saving")}
          onCancel={forget}
        />
      </Form>
    </DialogContent>
  );
}

export function PayoutDialog({ nonprofitId, userId, grant, onClose }: EntryProps & { grant: Grant }) {
  const keptAs = `payout-${nonprofitId}-${grant.request_id}-${userId}`;
  const schema = useMemo(() => payoutSchema(grant.outstanding), [grant.outstanding]);
  const form = useForm<PayoutForm>({
    resolver: zodResolver(schema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: readKept<PayoutForm>(keptAs, { amount: String(grant.outstanding), note: "" }),
  });
  const forget = useKeptForm(form, keptAs);
  const record = useRecordPayout(nonprofitId);
  const { take, refused } = useSendKey(keptAs);
  const typed = useWatch({ control: form.control, name: "amount" });
  const submit = async (values: PayoutForm) => {
    try {
      await record.mutateAsync({ requestId: grant.request_id, form: values, key: take() });
      forget();
      toast({
        title: t("budget.payoutToast"),
        description: t("budget.payoutToastBody", {
          amount: formatMoney(parseAmount(values.amount) ?? 0),
          number: grant.request_number,
        }),
      });
      onClose();
    } catch (error) {
      // the form shows why
      refused(error);
    }
  };
  return (
    <DialogContent
      title={t("budget.payoutTitle")}
      description={t("budget.payoutAbout", { number: grant.request_number, category: localName(grant.category) })}
      dirty={form.formState.isDirty}
    >
      <Form form={form} onSubmit={submit} error={record.error} errorTitle={t("budget.failedTitle")}>
        <p className="text-ui text-soft">{t("budget.payoutBody")}</p>
        <MoneyField<PayoutForm>
          name="amount"
          label={t("budget.amount")}
          hint={t("budget.payoutOpen", { amount: formatMoney(grant.outstanding) })}
        />
        <Field<PayoutForm> name="note" label={t("budget.note")} optional>
          {(control) => <Input autoComplete="off" {...control} />}
        </Field>
        <DialogAnswers
          submit={recordWords(typed)}
          busy={record.isPending}
          busyLabel={t("budget.saving")}
          onCancel={forget}
        />
      </Form>
    </DialogContent>
  );
}
