import { useFormContext, useWatch } from "react-hook-form";
import { NO_ADDRESS, NO_POSTAL_CODE } from "@/lib/address";
import { t } from "@/messages";
import { TickLine } from "./ui/checkbox";

/** Whether the form's person has no fixed address. */
export function useWithoutAddress(address: string): boolean {
  const { control } = useFormContext();
  return useWatch({ control, name: address }) === NO_ADDRESS;
}

/** 'I have no fixed address': hides street and postal code, given by their field names. */
export function NoAddress({ address, postalCode }: { address: string; postalCode: string }) {
  const { setValue } = useFormContext();
  const without = useWithoutAddress(address);
  const set = (on: boolean) => {
    for (const [name, value] of [
      [address, NO_ADDRESS],
      [postalCode, NO_POSTAL_CODE],
    ] as const)
      setValue(name, on ? value : "", { shouldDirty: true, shouldValidate: on });
  };
  return (
    <div className="col-span-full">
      <TickLine checked={without} onCheckedChange={(on) => set(on === true)}>
        {t("common.noAddress")}
      </TickLine>
      {without ? <p className="hint mt-1">{t("common.noAddressHint")}</p> : null}
    </div>
  );
}
