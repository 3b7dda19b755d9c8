/** Inbox and Sent: lines that open in place. */
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useEffect, useState, type ReactNode } from "react";
import { Pagination } from "@/components/pagination";
import { QueryView } from "@/components/query-view";
import { EmptyState } from "@/components/states";
import { Tag } from "@/components/ui/badge";
import { Button } from "@/components/ui/button";
import { agoWords } from "@/lib/ago";
import { formatDate, formatNumber } from "@/lib/format";
import { t } from "@/messages";
import "@/messages/en/donorMessages";
import {
  inboxQuery,
  MESSAGES_PAGE_SIZE,
  sentQuery,
  useContinueMessage,
  useMarkAnswerRead,
  type MessagePage,
  type SentItem,
} from "../api";

interface LineProps {
  subject: string;
  meta: ReactNode;
  preview: string;
  message: string;
  unread?: boolean;
  onOpen?: () => void;
}

function Line({ subject, meta, preview, message, unread, onOpen }: LineProps) {
  const [open, setOpen] = useState(false);
  return (
    <li className="item">
      <h3 className="wrap-anywhere">
        <button
          type="button"
          className="cursor-pointer text-start font-[inherit]"
          aria-expanded={open}
          onClick={() => {
            setOpen(!open);
            if (!open) onOpen?.();
          }}
        >
          {subject}
        </button>
      </h3>
      {unread ? <Tag className="hot">{t("donorMessages.unread")}</Tag> : <span />}
      <p className="meta">{meta}</p>
      <p
        className={
          open ? "col-span-full max-w-prose whitespace-pre-line wrap-anywhere" : "col-span-full truncate text-soft"
        }
      >
        {open ? message : preview}
      </p>
    </li>
  );
}

interface PagedLinesProps<T> {
  query: UseQueryResult<MessagePage<T>>;
  page: number;
  onPage: (page: number) => void;
  failedTitle: string;
  emptyTitle: string;
  emptyBody: string;
  /** The action of an empty list: writing a message. */
  onCompose: () => void;
  children: (item: T) => ReactNode;
}

function PagedLines<T>({
  query,
  page,
  onPage,
  failedTitle,
  emptyTitle,
  emptyBody,
  onCompose,
  children,
}: PagedLinesProps<T>) {
  return (
    <QueryView
      query={query}
      failedTitle={failedTitle}
      isEmpty={({ rows }) => rows.length === 0}
      empty={
        <EmptyState title={emptyTitle} actions={<Button onClick={onCompose}>{t("donorMessages.writeFirst")}</Button>}>
          {emptyBody}
        </EmptyState>
      }
    >
      {({ rows, total }) => (
        <div className="grid gap-4">
          <ul className="list ruled -mt-6 border-t-0!">{rows.map(children)}</ul>
          {total > MESSAGES_PAGE_SIZE ? (
            <Pagination page={page} pageSize={MESSAGES_PAGE_SIZE} total={total} onPage={onPage} />
          ) : null}
        </div>
      )}
    </QueryView>
  );
}

interface ListProps {
  nonprofitId: string;
  onCompose: () => void;
}

export function Inbox({ nonprofitId, onCompose }: ListProps) {
  const [page, setPage] = useState(1);
  const query = useQuery(inboxQuery(nonprofitId, page));
  const mark = useMarkAnswerRead(nonprofitId);
  return (
    <PagedLines
      query={query}
      page={page}
      onPage={setPage}
      failedTitle={t("donorMessages.inboxFailed")}
      emptyTitle={t("donorMessages.inboxEmptyTitle")}
      emptyBody={t("donorMessages.inboxEmpty")}
      onCompose={onCompose}
    >
      {(item) => (
        <Line
          key={item.id}
          subject={item.subject}
          meta={
            <>
              <span>{item.from ? t("donorMessages.from", { name: item.from }) : t("donorMessages.fromADonor")}</span>
              <span>{agoWords(item.date)}</span>
            </>
          }
          preview={item.preview}
          message={item.message}
          unread={item.unread}
          onOpen={() => {
            if (item.unread) mark.mutate(item.id);
          }}
        />
      )}
    </PagedLines>
  );
}

/** Shows the delivery state of a message, and continues it while the page is open. */
function Mailing({ nonprofitId, item }: { nonprofitId: string; item: SentItem }) {
  const { mutate } = useContinueMessage(nonprofitId);
  const { id, mailed_count: mailed, recipient_count: all } = item;
  useEffect(() => {
    // each batch changes the count and so triggers the next; at the daily limit the count stays the same
    if (mailed < all) mutate(id);
  }, [mailed, all, id, mutate]);
  return mailed < all ? (
    <span role="status">{t("donorMessages.mailed", { mailed: formatNumber(mailed), all: formatNumber(all) })}</span>
  ) : null;
}

export function Sent({ nonprofitId, onCompose }: ListProps) {
  const [page, setPage] = useState(1);
  const query = useQuery(sentQuery(nonprofitId, page));
  return (
    <PagedLines
      query={query}
      page={page}
      onPage={setPage}
      failedTitle={t("donorMessages.sentFailed")}
      emptyTitle={t("donorMessages.sentEmptyTitle")}
      emptyBody={t("donorMessages.sentEmpty")}
      onCompose={onCompose}
    >
      {(item) => (
        <Line
          key={item.id}
          subject={item.subject}
          meta={
            <>
              <span>{t("donorMessages.recipients", { count: item.recipient_count })}</span>
              <Mailing nonprofitId={nonprofitId} item={item} />
              <span className="num">{formatDate(item.created_at)}</span>
            </>
          }
          preview={item.message}
          message={item.message}
        />
      )}
    </PagedLines>
  );
}
