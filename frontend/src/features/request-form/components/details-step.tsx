import { zodResolver } from "@hookform/resolvers/zod";
import { useLayoutEffect } from "react";
import { useForm } from "react-hook-form";
import { Field, Form } from "@/components/form";
import { Button } from "@/components/ui/button";
import { Input, Textarea } from "@/components/ui/input";
import { t } from "@/messages";
import "@/messages/en/requestForm";
import type { Answers } from "../answers";
import { detailsSchema, type Details } from "../schema";
import type { DocumentsState } from "../use-documents";
import { documentsArrived } from "../use-submit";
import { DocumentsField } from "./documents-field";

/** Description and amount, wired; shared with the single page. */
export function DetailsFields() {
  return (
    <>
      <Field name="description" label={t("requestForm.description")} hint={t("requestForm.descriptionHint")}>
        {(control) => (
          <>
            <Textarea {...control} rows={6} maxLength={5000} />
            <span className="hint mt-1 mb-0">
              {t("requestForm.descriptionCount", { count: String(control.value).trim().length })}
            </span>
          </>
        )}
      </Field>
      <Field name="amount" label={t("requestForm.amount")} optional hint={t("requestForm.amountHint")}>
        {(control) => (
          <span className="affix money block max-w-60">
            <span aria-hidden="true">$</span>
            <Input
              {...control}
              // the field already shows the dollar sign
              onChange={(event) => control.onChange(event.target.value.replace(/^\s*\$\s*/, ""))}
              className="num"
              inputMode="decimal"
              autoComplete="off"
            />
          </span>
        )}
      </Field>
    </>
  );
}

export interface DetailsStepProps {
  answers: Answers;
  documents: DocumentsState;
  onDetails: (details: Partial<Details>) => void;
  onContinue: () => void;
}

/** Step 4: what is needed, in the person's own words. */
export function DetailsStep({ answers, documents, onDetails, onContinue }: DetailsStepProps) {
  const form = useForm({
    resolver: zodResolver(detailsSchema),
    mode: "onTouched",
    shouldFocusError: false,
    defaultValues: { description: answers.description, amount: answers.amount },
  });
  // a layout effect, because an effect after the paint would miss early typing
  useLayoutEffect(
    () => form.subscribe({ formState: { values: true }, callback: ({ values }) => onDetails(values) }),
    [form, onDetails],
  );
  return (
    <Form
      form={form}
      onSubmit={() => {
        if (documentsArrived(documents)) onContinue();
      }}
    >
      <DetailsFields />
      <DocumentsField stored={answers.documents} documents={documents} />
      <div className="actions">
        <Button type="submit" variant="primary">
          {t("common.continue")}
        </Button>
      </div>
    </Form>
  );
}
