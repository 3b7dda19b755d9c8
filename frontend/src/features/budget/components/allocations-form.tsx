/** The allocation for each kind of help. In the page, because there are as many fields as kinds. */
import { zodResolver } from "@hookform/resolvers/zod";
import { Plus } from "lucide-react";
import { useEffect, useRef } from "react";
import { useFieldArray, useForm } from "react-hook-form";
import { Field, Form } from "@/components/form";
import { SectionHead } from "@/components/pages";
import { Button } from "@/components/ui/button";
import { Input } from "@/components/ui/input";
import { formatMoney } from "@/lib/format";
import { readKept, useKeptForm } from "@/lib/kept-form";
import { toast } from "@/lib/toast";
import { localName } from "@/lib/local-name";
import { t } from "@/messages";
import "@/messages/en/budget";
import { useSaveAllocations, type CategorySpending } from "../api";
import { allocationAmount, allocationsSchema, isChanged, type AllocationsForm as Values } from "../schema";
import { MoneyField } from "./money-field";

export interface AllocationsFormProps {
  nonprofitId: string;
  userId: string;
  spending: readonly CategorySpending[];
  /** Names to offer besides those that have figures: the organization's categories. */
  categories: readonly string[];
  onClose: () => void;
}

/**
 * What was typed stays in this tab until it is saved or cancelled, with the amounts that it changes: the page reads the
 * budget again while the form is open.
 */
export function AllocationsForm({ nonprofitId, userId, spending, categories, onClose }: AllocationsFormProps) {
  const known = spending.map(({ category, allocated }) => {
    const amount = allocated > 0 ? String(allocated) : "";
    return { category, amount, before: amount };
  });
  const more = categories
    .filter((name) => !spending.some((line) => line.category.toLocaleLowerCase() === name.toLocaleLowerCase()))
    .map((category) => ({ category, amount: "", before: "" }));
  const keptAs = `allocations-${nonprofitId}-${userId}`;
  const form = useForm<Values>({
    resolver: zodResolver(allocationsSchema),
    // a field array is validated whenever its length changes, so a new line would begin with an error
    mode: "onSubmit",
    shouldFocusError: false,
    defaultValues: readKept<Values>(keptAs, { lines: [...known, ...more] }),
  });
  const forget = useKeptForm(form, keptAs);
  const { fields, append } = useFieldArray({ control: form.control, name: "lines" });
  const save = useSaveAllocations(nonprofitId);
  /** Categories that a failed attempt may have written, so that they are written again even if set back. */
  const tried = useRef(new Set<string>());
  const title = useRef<HTMLElement>(null);
  useEffect(() => title.current?.focus(), []);
  const leave = () => {
    forget();
    onClose();
  };
  const submit = async (values: Values) => {
    try {
      const changed = values.lines.filter((line) => isChanged(line) || tried.current.has(line.category));
      for (const { category } of changed) tried.current.add(category);
      await save.mutateAsync(changed);
      const now = new Map(spending.map((line) => [line.category.toLocaleLowerCase(), line.allocated]));
      for (const line of changed) now.set(line.category.toLocaleLowerCase(), allocationAmount(line.amount));
      const total = [...now.values()].reduce((sum, amount) => sum + amount, 0);
      toast({
        title: t("budget.allocationsToast"),
        description: t("budget.allocationsToastBody", { amount: formatMoney(total) }),
      });
      leave();
    } catch {
      // the form shows why
    }
  };
  return (
    <section ref={title} tabIndex={-1} aria-labelledby="allocations" className="outline-none">
      <SectionHead id="allocations" title={t("budget.allocationsTitle")} />
      <p className="mb-5 text-soft">{t("budget.allocationsBody")}</p>
      <Form
        form={form}
        onSubmit={submit}
        error={save.error}
        errorTitle={t("budget.failedTitle")}
        className="max-w-(--width-form)"
      >
        {fields.map((line, index) =>
          line.before !== null ? (
            <MoneyField<Values> key={line.id} name={`lines.${index}.amount`} label={localName(line.category)} />
          ) : (
            <div key={line.id} className="grid-2">
              <Field<Values> name={`lines.${index}.category`} label={t("budget.otherCategory")}>
                {(control) => <Input autoComplete="off" {...control} />}
              </Field>
              <MoneyField<Values> name={`lines.${index}.amount`} label={t("budget.amount")} />
            </div>
          ),
        )}
        <Button
          variant="quiet"
          className="justify-self-start"
          onClick={() => append({ category: "", amount: "", before: null })}
        >
          <Plus aria-hidden="true" />
          {t("budget.addCategory")}
        </Button>
        <div className="actions mt-0!">
          <Button type="submit" variant="primary" busy={save.isPending} busyLabel={t("budget.saving")}>
            {t("budget.allocationsSave")}
          </Button>
          <Button onClick={leave}>{t("common.cancel")}</Button>
        </div>
      </Form>
    </section>
  );
}
