import { Check } from "lucide-react";
import { Select as Radix } from "radix-ui";
import type { ComponentProps, ReactNode, Ref } from "react";
import { cn } from "@/lib/cn";
import { t } from "@/messages";

export interface SelectOption {
  /** Not empty: Radix keeps "" for 'nothing chosen'. */
  value: string;
  label: ReactNode;
  disabled?: boolean;
}

export interface SelectProps extends Omit<ComponentProps<typeof Radix.Root>, "onValueChange" | "children"> {
  options: readonly SelectOption[];
  placeholder?: string;
  onValueChange?: (value: string) => void;
  /** As form fields hand it over: called with the chosen value. */
  onChange?: (value: string) => void;
  onBlur?: () => void;
  id?: string;
  className?: string;
  ref?: Ref<HTMLButtonElement>;
  "aria-label"?: string;
  "aria-labelledby"?: string;
  "aria-describedby"?: string;
  "aria-invalid"?: boolean;
}

/** A list to choose one from. Typing jumps to an entry; the typed letters are forgotten after 1 s. */
export function Select({
  options,
  placeholder,
  onValueChange,
  onChange,
  onBlur,
  id,
  className,
  ref,
  "aria-label": ariaLabel,
  "aria-labelledby": ariaLabelledby,
  "aria-describedby": ariaDescribedby,
  "aria-invalid": ariaInvalid,
  ...props
}: SelectProps) {
  return (
    <Radix.Root
      onValueChange={(value) => {
        onValueChange?.(value);
        onChange?.(value);
      }}
      {...props}
    >
      <Radix.Trigger
        ref={ref}
        id={id}
        onBlur={onBlur}
        aria-label={ariaLabel}
        aria-labelledby={ariaLabelledby}
        aria-describedby={ariaDescribedby}
        aria-invalid={ariaInvalid}
        className={cn("input select text-left data-placeholder:text-faint", className)}
      >
        <span className="block truncate">
          <Radix.Value placeholder={placeholder ?? t("common.chooseOne")} />
        </span>
      </Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          className="pop"
          position="popper"
          sideOffset={4}
          style={{ minWidth: "var(--radix-select-trigger-width)" }}
        >
          <Radix.Viewport>
            {options.map((option) => (
              <Radix.Item key={option.value} value={option.value} disabled={option.disabled} className="pop-item">
                <Radix.ItemText>{option.label}</Radix.ItemText>
                <Radix.ItemIndicator className="end">
                  <Check aria-hidden="true" />
                </Radix.ItemIndicator>
              </Radix.Item>
            ))}
          </Radix.Viewport>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
