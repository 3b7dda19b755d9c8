import { useEffect, type ComponentProps } from "react";
import { cn } from "@/lib/cn";
import { t } from "@/messages";

export interface SelectOption {
  /** Not empty: "" stands for 'nothing chosen'. */
  value: string;
  label: string;
  disabled?: boolean;
}

export interface SelectProps extends Omit<ComponentProps<"select">, "children" | "multiple" | "onChange" | "value"> {
  options: readonly SelectOption[];
  /** What stands there while nothing is chosen; it cannot be chosen back. */
  placeholder?: string;
  value?: string;
  /** Called with the chosen value, also as form fields hand it over. */
  onChange?: (value: string) => void;
}

/**
 * Escape closes the open list and nothing else: a dialog around it listens at the document and would close as well.
 * Not prevented, because closing the list is what the browser itself does with the key.
 */
function useEscape() {
  useEffect(() => {
    const keep = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || !(event.target instanceof Element) || !CSS.supports("selector(:open)")) return;
      if (event.target.closest("select")?.matches(":open")) event.stopPropagation();
    };
    window.addEventListener("keydown", keep, { capture: true });
    return () => window.removeEventListener("keydown", keep, { capture: true });
  }, []);
}

/**
 * A list to choose one from: the browser's own, so that a phone shows its wheel and nothing of the page is hidden from
 * screen readers while it is open. Where the browser lets a page dress the list, styles/motion.css does.
 */
export function Select({ options, placeholder, value = "", onChange, className, ...props }: SelectProps) {
  useEscape();
  const chosen = options.some((option) => option.value === value);
  return (
    <select
      value={value}
      onChange={(event) => onChange?.(event.target.value)}
      className={cn("input", className)}
      data-placeholder={chosen ? undefined : ""}
      {...props}
    >
      {chosen ? null : (
        <option value={value} disabled hidden>
          {placeholder ?? t("common.chooseOne")}
        </option>
      )}
      {options.map((option) => (
        <option key={option.value} value={option.value} disabled={option.disabled}>
          {option.label}
        </option>
      ))}
    </select>
  );
}
