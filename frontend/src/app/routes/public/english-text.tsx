import { Notice } from "@/components/ui/notice";
import { t } from "@/messages";
import "@/messages/en/shell";
import { currentLocale } from "@/messages/locale";

/** For pages whose text is only in English: says so in the reader's language. */
export function EnglishText() {
  if (currentLocale() === "en") return null;
  return (
    <Notice tone="info" className="my-6">
      {t("shell.englishText")}
    </Notice>
  );
}
