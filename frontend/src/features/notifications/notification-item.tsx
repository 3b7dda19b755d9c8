import { CircleAlert, CircleCheck, Ellipsis, Info, RefreshCw, type LucideIcon } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router-dom";
import { Button } from "@/components/ui/button";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuTrigger,
} from "@/components/ui/dropdown-menu";
import { agoWords } from "@/lib/ago";
import { cn } from "@/lib/cn";
import { errorMessage } from "@/lib/errors";
import { formatDateTime } from "@/lib/format";
import { toast } from "@/lib/toast";
import { t } from "@/messages";
import "@/messages/en/account";
import { useDeleteNotification, useMarkRead, type Notification, type NotificationType } from "./api";
import { notificationWords } from "./words";

const looks: Record<NotificationType, { Icon: LucideIcon; className: string }> = {
  info: { Icon: Info, className: "text-info-text" },
  warning: { Icon: CircleAlert, className: "text-accent-text" },
  update: { Icon: RefreshCw, className: "text-info-text" },
  success: { Icon: CircleCheck, className: "text-success-text" },
};

export function NotificationItem({ item }: { item: Notification }) {
  const markRead = useMarkRead();
  const remove = useDeleteNotification();
  const [now] = useState(() => new Date());
  const { Icon, className } = looks[item.type];
  const { title, message } = notificationWords(item);
  const onError = (error: unknown) =>
    toast({ variant: "destructive", title: t("account.changeFailed"), description: errorMessage(error) });
  const read = () => {
    if (!item.read) markRead.mutate(item.id, { onError });
  };
  return (
    <li className="relative grid grid-cols-[auto_1fr_auto] gap-3 py-4 leading-snug">
      <Icon aria-hidden="true" className={cn("mt-1", item.read ? "text-faint" : className)} />
      <div className="min-w-0">
        <h2 className={cn("text-base", item.read && "font-normal")}>
          {item.link ? (
            <Link
              to={item.link}
              onClick={read}
              className="text-ink no-underline after:absolute after:inset-0 hover:underline"
            >
              {title}
            </Link>
          ) : (
            title
          )}
          {item.read ? null : <span className="tag ms-2 align-middle">{t("account.newMark")}</span>}
        </h2>
        <p className="mt-1 text-ui text-soft">
          {message.split(/(\bREQ-\d+)/).map((part, index) =>
            // a number is never broken at its hyphen
            index % 2 === 1 ? (
              <span key={index} className="whitespace-nowrap">
                {part}
              </span>
            ) : (
              part
            ),
          )}
        </p>
        <p className="small faint mt-1">
          <time dateTime={item.date} title={formatDateTime(item.date)}>
            {agoWords(item.date, now)}
          </time>
        </p>
      </div>
      <DropdownMenu modal={false}>
        <DropdownMenuTrigger asChild>
          <Button size="icon" className="relative z-[1]" aria-label={t("account.notificationMenu", { title })}>
            <Ellipsis aria-hidden="true" />
          </Button>
        </DropdownMenuTrigger>
        <DropdownMenuContent>
          {item.read ? null : <DropdownMenuItem onSelect={read}>{t("account.markRead")}</DropdownMenuItem>}
          <DropdownMenuItem onSelect={() => remove.mutate(item.id, { onError })}>
            {t("account.deleteNotification")}
          </DropdownMenuItem>
        </DropdownMenuContent>
      </DropdownMenu>
    </li>
  );
}
