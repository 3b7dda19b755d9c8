/** Invitations are sent only after the inviter has proved their own address with a mailed code, here. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { AddressCodeForm } from "@/components/address-code-form";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/team";
import { teamQuery } from "../api";

export interface ProveAddressProps {
  nonprofitId: string;
  email: string;
  /** Invitations that wait for the proof. */
  waiting: number;
  /** The address is proved now. */
  onProved: () => void;
}

export function ProveAddress({ nonprofitId, email, waiting, onProved }: ProveAddressProps) {
  const [asked, setAsked] = useState(false);
  const cache = useQueryClient();
  return (
    <Notice tone="warn" title={t("team.proveTitle")}>
      <p>
        {t("team.proveBody", { email })}
        {waiting > 0 ? ` ${t("team.waiting", { count: waiting })}` : null}
      </p>
      {asked ? (
        <AddressCodeForm
          email={email}
          failedTitle={t("team.proveErrorTitle")}
          leaveLabel={t("team.proveLater")}
          onLeave={() => setAsked(false)}
          onProved={({ sent_invitations: count = 0 }) => {
            toast({
              title: t("team.provedTitle"),
              description: count > 0 ? t("team.provedSent", { count }) : t("team.provedBody"),
            });
            void cache.invalidateQueries({ queryKey: teamQuery(nonprofitId).queryKey });
            onProved();
          }}
        />
      ) : (
        <p className="mt-3">
          <Button onClick={() => setAsked(true)}>{t("team.sendCode")}</Button>
        </p>
      )}
    </Notice>
  );
}
