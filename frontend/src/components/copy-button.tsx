import { Check, Copy } from "lucide-react";
import { useState } from "react";
import { copyText } from "@/lib/copy-text";
import { t } from "@/messages";
import { Button } from "./ui/button";

/** Copies a value (a request's number) and says so. */
export function CopyButton({ value, label }: { value: string; label?: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <Button
      variant="quiet"
      onClick={() => {
        copyText(value).then(
          () => setCopied(true),
          () => undefined, // the number stands beside the button
        );
      }}
    >
      {copied ? <Check aria-hidden="true" /> : <Copy aria-hidden="true" />}
      <span role="status">{copied ? t("common.copied") : (label ?? t("common.copy"))}</span>
    </Button>
  );
}
