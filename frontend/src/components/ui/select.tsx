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
  /** Shown while nothing is chosen; it cannot be selected again. */
  placeholder?: string;
  value?: string;
  /** Called with the chosen value, also by form fields. */
  onChange?: (value: string) => void;
}

/**
 * Escape must close only the open list: a dialog around it listens on the document and would close too. The default
 * is not prevented, because the browser closes the list with it.
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
 * The browser's native select, so that phones show their picker and screen readers can still read the page while it is
 * open. styles/motion.css styles the list where browsers allow it.
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
