import { lazy, Suspense, useState } from "react";
import { Button } from "@/components/ui/button";
import { Notice } from "@/components/ui/notice";
import { announcePersonChange } from "@/lib/person-change";
import { useSession } from "@/lib/session";
import { readStored, store } from "@/lib/stored";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/addressCode";

const AddressCodeForm = lazy(() =>
  import("@/components/address-code-form").then((module) => ({ default: module.AddressCodeForm })),
);

const name = (userId: string) => `aidbridge-claim-later:${userId}`;

/**
 * For an account with an unproved address (`claim_guest_requests()` answers `proved: false`): offers to find
 * requests sent with it before the account existed. Shows nothing to others.
 */
export function ClaimNotice() {
  const { user, refresh } = useSession();
  const [later, setLater] = useState(() => (user ? readStored("browser", name(user.id)) !== null : true));
  const [asking, setAsking] = useState(false);
  if (!user || user.emailProved || later) return null;
  const leave = () => {
    store("browser", name(user.id), "yes");
    setLater(true);
  };
  return (
    <Notice tone="info" title={t("addressCode.claimTitle")} className="no-print">
      {asking ? (
        <Suspense>
          <AddressCodeForm
            email={user.email}
            failedTitle={t("addressCode.claimFailed")}
            leaveLabel={t("addressCode.claimLater")}
            onLeave={leave}
            onProved={({ claimed_requests: count = 0 }) => {
              toast(
                count > 0
                  ? { title: t("addressCode.claimedTitle", { count }), description: t("addressCode.claimedBody") }
                  : {
                      variant: "info",
                      title: t("addressCode.claimedNoneTitle"),
                      description: t("addressCode.claimedNoneBody"),
                    },
              );
              announcePersonChange();
              void refresh();
            }}
          />
        </Suspense>
      ) : (
        <>
          <p className="break-words">{t("addressCode.claimBody", { email: user.email })}</p>
          <div className="actions mt-3">
            <Button onClick={() => setAsking(true)}>{t("addressCode.claimStart")}</Button>
            <Button variant="quiet" onClick={leave}>
              {t("addressCode.claimLater")}
            </Button>
          </div>
        </>
      )}
    </Notice>
  );
}
