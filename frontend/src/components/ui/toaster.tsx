import { CircleAlert, CircleCheck, Info, X } from "lucide-react";
import { Toast as Radix } from "radix-ui";
import { cn } from "@/lib/cn";
import { dismissToast, TOAST_DURATION_MS, useToasts } from "@/lib/toast";
import { t } from "@/messages";
import { Button } from "./button";

const looks = {
  default: { className: "good", Icon: CircleCheck },
  info: { className: "info", Icon: Info },
  destructive: { className: "bad", Icon: CircleAlert },
} as const;

/** The notifications region: one toast, 5000 ms, swipe right past 50 px to dismiss, F8 to focus it. */
export default function Toaster() {
  const entries = useToasts();
  return (
    <Radix.Provider
      duration={TOAST_DURATION_MS}
      swipeDirection="right"
      swipeThreshold={50}
      label={t("common.notification")}
    >
      {entries.map((entry) => {
        const { className, Icon } = looks[entry.variant ?? "default"];
        return (
          <Radix.Root
            key={entry.id}
            open={entry.open}
            type={entry.variant === "destructive" ? "foreground" : "background"}
            onOpenChange={(open) => {
              if (!open) dismissToast(entry.id);
            }}
            className={cn("toast", className)}
          >
            <Icon aria-hidden="true" />
            <div>
              <Radix.Title asChild>
                <strong>{entry.title}</strong>
              </Radix.Title>
              {entry.description ? <Radix.Description>{entry.description}</Radix.Description> : null}
            </div>
            <Radix.Close asChild>
              <Button size="icon" aria-label={t("common.close")}>
                <X aria-hidden="true" />
              </Button>
            </Radix.Close>
          </Radix.Root>
        );
      })}
      <Radix.Viewport hotkey={["F8"]} label={t("common.notificationsRegion")} className="toasts" />
    </Radix.Provider>
  );
}
