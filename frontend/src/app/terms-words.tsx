import { Link } from "react-router-dom";
import { Words } from "@/components/words";
import { t } from "@/messages";
import "@/messages/en/auth";
import { paths } from "./paths";

/** 'By signing up you agree …' with its two links. */
export function TermsWords() {
  return (
    <Words
      k="auth.terms"
      parts={{
        terms: <Link to={paths.terms}>{t("auth.termsLink")}</Link>,
        privacy: <Link to={paths.privacy}>{t("auth.privacyLink")}</Link>,
      }}
    />
  );
}
