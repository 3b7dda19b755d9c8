import { Button } from "@/components/ui/button";
import { useAppConfig } from "@/lib/env";
import { errorMessage } from "@/lib/errors";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/auth";
import { useProviderLogin, type Provider } from "./api";

export interface ProviderButtonsProps {
  labels: Record<Provider, string>;
  /** Path to come back to with a session. */
  landing: (provider: Provider) => string;
}

const NOTICE_ID = "third-party-notice";

/** Google and Microsoft. If the server has no such provider, the buttons look disabled and show the spec's toast. */
export function ProviderButtons({ labels, landing }: ProviderButtonsProps) {
  const configured = useAppConfig()?.providers;
  const login = useProviderLogin();
  const anyMissing = !configured?.google || !configured.azure;
  const button = (provider: Provider) => {
    const on = configured?.[provider] === true;
    return (
      <Button
        full
        aria-disabled={!on || undefined}
        aria-describedby={on ? undefined : NOTICE_ID}
        busy={login.isPending && login.variables.provider === provider}
        onClick={() => {
          if (!on) {
            toast({ variant: "info", title: t("auth.comingSoonToast") });
            return;
          }
          login.mutate(
            { provider, landing: landing(provider) },
            {
              onError: (error) =>
                toast({ variant: "destructive", title: t("auth.loginFailed"), description: errorMessage(error) }),
            },
          );
        }}
      >
        {labels[provider]}
      </Button>
    );
  };
  return (
    <div className="grid gap-3">
      {button("google")}
      {button("azure")}
      {anyMissing ? (
        <p className="small soft" id={NOTICE_ID}>
          <strong className="text-ink">{t("auth.comingSoonTitle")}</strong>
          <br />
          {t("auth.comingSoonBody")}
        </p>
      ) : null}
    </div>
  );
}
