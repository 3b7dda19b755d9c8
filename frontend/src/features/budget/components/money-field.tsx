import type { FieldValues } from "react-hook-form";
import { Field, type FieldProps } from "@/components/form";
import { Input } from "@/components/ui/input";

/** A field for dollars. */
export function MoneyField<T extends FieldValues>(props: Omit<FieldProps<T>, "children">) {
  return (
    <Field<T> {...props}>
      {(control) => (
        <span className="affix money block">
          <span aria-hidden="true">$</span>
          <Input inputMode="decimal" autoComplete="off" className="num" {...control} />
        </span>
      )}
    </Field>
  );
}
