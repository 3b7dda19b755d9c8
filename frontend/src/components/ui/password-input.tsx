import { useState, type ComponentProps } from "react";
import { t } from "@/messages";
import { Input } from "./input";

/** A password field with a button that shows what was typed. */
export function PasswordInput(props: Omit<ComponentProps<"input">, "type">) {
  const [shown, setShown] = useState(false);
  return (
    <span className="affix end block">
      <Input type={shown ? "text" : "password"} autoCapitalize="none" spellCheck={false} {...props} />
      <button
        type="button"
        className="btn quiet"
        aria-pressed={shown}
        aria-label={t(shown ? "common.hidePassword" : "common.showPassword")}
        onClick={() => setShown(!shown)}
      >
        {t(shown ? "common.hide" : "common.show")}
      </button>
    </span>
  );
}
