import { zodResolver } from "@hookform/resolvers/zod";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useForm, useWatch } from "react-hook-form";
import { Field, Form } from "@/components/form";
import { Button } from "@/components/ui/button";
import { DialogClose, DialogContent } from "@/components/ui/dialog";
import { Input } from "@/components/ui/input";
import { Select } from "@/components/ui/select";
import { fieldErrors } from "@/lib/errors";
import { formatMoney } from "@/lib/format";
import { newKey } from "@/lib/new-key";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/donations";
import { parseAmount } from "@/schemas/amount";
import { nonprofitChoicesQuery, usePledge } from "../api";
import { pledgeSchema, type PledgeForm } from "../schema";

export interface PledgeDialogProps {
  user: { id: string; email: string; fullName: string };
  onClose: () => void;
}

/** 'Make a Donation': a pledge that the nonprofit later marks as received. */
export function PledgeDialog({ user, onClose }: PledgeDialogProps) {
  const form = useForm<PledgeForm>({
    resolver: zodResolver(pledgeSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: { nonprofit_id: "", amount: "" },
  });
  const choices = useQuery(nonprofitChoicesQuery);
  const [key] = useState(newKey);
  const pledge = usePledge(user.id);
  const amount = parseAmount(useWatch({ control: form.control, name: "amount" }));
  const submit = async (values: PledgeForm) => {
    try {
      const { nonprofit } = await pledge.mutateAsync({ form: values, key, email: user.email, name: user.fullName });
      toast({ title: t("donations.pledgedTitle"), description: t("donations.pledgedBody", { name: nonprofit }) });
      onClose();
    } catch (error) {
      for (const [name, message] of Object.entries(fieldErrors(error))) {
        if (name === "nonprofit_id" || name === "amount") form.setError(name, { message });
      }
    }
  };
  return (
    <DialogContent
      title={t("donations.pledgeTitle")}
      description={t("donations.pledgeBody")}
      dirty={form.formState.isDirty}
    >
      <Form
        form={form}
        onSubmit={submit}
        error={pledge.error ?? choices.error}
        errorTitle={t("donations.pledgeFailed")}
      >
        <Field<PledgeForm> name="nonprofit_id" label={t("donations.nonprofit")}>
          {(control) => (
            <Select
              options={(choices.data ?? []).map((choice) => ({ value: choice.id, label: choice.name }))}
              {...control}
            />
          )}
        </Field>
        <Field<PledgeForm> name="amount" label={t("donations.amount")}>
          {(control) => (
            <span className="affix money block">
              <span aria-hidden="true">$</span>
              <Input inputMode="decimal" autoComplete="off" className="num" {...control} />
            </span>
          )}
        </Field>
        <div className="actions mt-0!">
          <Button type="submit" variant="primary" busy={pledge.isPending} busyLabel={t("donations.pledging")}>
            {amount === null ? t("donations.pledge") : t("donations.pledgeAmount", { amount: formatMoney(amount) })}
          </Button>
          <DialogClose asChild>
            <Button>{t("common.cancel")}</Button>
          </DialogClose>
        </div>
      </Form>
    </DialogContent>
  );
}
