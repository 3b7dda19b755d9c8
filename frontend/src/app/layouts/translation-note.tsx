import { useAppConfig } from "@/lib/env";
import { t } from "@/messages";
import { currentLocale } from "@/messages/locale";

/** In languages other than English: says that no native speaker has reviewed the texts yet. */
export function TranslationNote({ className }: { className?: string }) {
  const supportEmail = useAppConfig()?.supportEmail;
  if (currentLocale() === "en") return null;
  return <p className={className}>{t("shell.translationNote", { email: supportEmail ?? "" })}</p>;
}
