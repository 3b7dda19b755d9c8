/** Below an email field: 'Did you mean marie@gmail.com?' */
import { useFormContext, useWatch } from "react-hook-form";
import { likelierAddress } from "@/lib/address-typo";
import { t } from "@/messages";
import "@/messages/en/validation";

/** `name` is the field's path in the form around it. Says nothing while the address is first typed. */
export function AddressTypo({ name }: { name: string }) {
  const { control, formState, getFieldState, setValue } = useFormContext();
  const typed: unknown = useWatch({ control, name });
  const meant = getFieldState(name, formState).isTouched && typeof typed === "string" ? likelierAddress(typed) : null;
  return (
    <div role="status" className="col-span-full -mt-2 empty:hidden">
      {meant === null ? null : (
        <p className="hint break-words">
          {t("validation.didYouMean", { address: meant })}{" "}
          <button
            type="button"
            className="link"
            onClick={() => setValue(name, meant, { shouldDirty: true, shouldTouch: true, shouldValidate: true })}
          >
            {t("validation.useIt")}
          </button>
        </p>
      )}
    </div>
  );
}
