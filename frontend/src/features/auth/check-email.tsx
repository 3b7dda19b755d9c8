import { SentArt } from "@/components/art/sent";
import { State } from "@/components/states";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { errorMessage } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/auth";
import { useResendConfirmation } from "./api";

/** After a sign-up without a session: the address is confirmed by mail first. */
export function CheckEmail({ email, landing, onOther }: { email: string; landing: string; onOther: () => void }) {
  const resend = useResendConfirmation();
  return (
    <>
      <State
        art={SentArt}
        heading="h1"
        role="status"
        title={t("auth.checkEmailTitle")}
        actions={
          <>
            <Button
              variant="primary"
              busy={resend.isPending}
              busyLabel={t("common.sending")}
              onClick={() =>
                resend.mutate(
                  { email, landing },
                  { onSuccess: () => toast({ title: t("auth.resent"), description: t("auth.resentBody", { email }) }) },
                )
              }
            >
              {t("auth.resend")}
            </Button>
            <Button onClick={onOther}>{t("auth.otherAddress")}</Button>
          </>
        }
      >
        <p>{t("auth.checkEmailBody", { email })}</p>
        <p className="small">{t("auth.checkEmailHint")}</p>
      </State>
      {resend.error ? (
        <Notice tone="bad" role="alert">
          {errorMessage(resend.error)}
        </Notice>
      ) : null}
    </>
  );
}
