import { Notice } from "@/components/ui/notice";
import { t } from "@/messages";
import "@/messages/en/shell";
import { currentLocale } from "@/messages/locale";

/** On pages whose text is there in English alone: says so in the reader's language. */
export function EnglishText() {
  if (currentLocale() === "en") return null;
  return (
    <Notice tone="info" className="my-6">
      {t("shell.englishText")}
    </Notice>
  );
}
