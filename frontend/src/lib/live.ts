/**
 * Changes made elsewhere, read as they happen: a channel of the server tells which tables changed, the query cache reads again.
 * Nothing of what the channel says is shown: what a person may see is asked for as ever. While the channel is down the same reads
 * ask by themselves (`whileDown`).
 */
import type { QueryClient, QueryKey } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { getSupabase, type Client } from "./supabase";

export interface LiveTable {
  table: string;
  /** As PostgREST writes it: `user_id=eq.…`. Policies decide what is told; the filter spares the server the question. */
  filter: string;
  /** What a changed row makes old. */
  keys: readonly QueryKey[];
}

/** `joining` until the first channel stands: nothing was lost yet. */
export type LiveState = "joining" | "live" | "down";

/** How often pages ask by themselves while nothing is told. */
export const POLL_SECONDS = 30;
/** What changes together is read once. */
const GATHER_MS = 150;

let state: LiveState = "joining";
const listeners = new Set<() => void>();

function tell(next: LiveState) {
  if (next === state) return;
  state = next;
  for (const notify of listeners) notify();
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const useLiveState = (): LiveState =>
  useSyncExternalStore(
    subscribe,
    () => state,
    () => "joining",
  );

/** `refetchInterval` of a read that changes elsewhere. */
export const whileDown = () => (state === "live" ? false : POLL_SECONDS * 1000);

/** Reads `keys` again, those that come in quick succession together. */
function gathering(cache: QueryClient) {
  const old = new Map<string, QueryKey>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  return {
    readAgain(keys: readonly QueryKey[]) {
      for (const key of keys) old.set(JSON.stringify(key), key);
      timer ??= setTimeout(() => {
        timer = undefined;
        const keys = [...old.values()];
        old.clear();
        for (const queryKey of keys) void cache.invalidateQueries({ queryKey });
      }, GATHER_MS);
    },
    stop: () => clearTimeout(timer),
  };
}

let count = 0;

/** Follows the tables until the returned function is called. Each time the channel stands, all is read again: nobody knows what was missed. */
export function follow(cache: QueryClient, tables: readonly LiveTable[]): () => void {
  const all = tables.flatMap(({ keys }) => keys);
  const { readAgain, stop } = gathering(cache);
  let leave = () => {};
  let left = false;

  const join = (client: Client) => {
    let over = false;
    // a name of its own: a channel that is just being left is not joined again
    let channel = client.channel(`changes-${++count}`);
    for (const { table, filter, keys } of tables) {
      channel = channel.on("postgres_changes", { event: "*", schema: "public", table, filter }, () => readAgain(keys));
    }
    const fell = () => {
      if (over || state === "down") return;
      tell("down");
      // what polls begins now, not with the next render
      readAgain(all);
    };
    channel
      // only this says that changes are told from now on; a server that cannot follow them says 'error'
      .on("system", {}, ({ extension, status }: { extension?: string; status?: string }) => {
        if (over || extension !== "postgres_changes") return;
        if (status !== "ok") return fell();
        tell("live");
        readAgain(all);
      })
      .subscribe((status) => {
        if (status !== "SUBSCRIBED") fell();
      });
    // A socket does not notice that its line was gone before its next heartbeats fail: another one takes its place.
    const onOnline = () => {
      leave();
      void client.realtime.disconnect().then(() => {
        if (!left) leave = join(client);
      });
    };
    window.addEventListener("offline", fell);
    window.addEventListener("online", onOnline);
    return () => {
      over = true;
      window.removeEventListener("offline", fell);
      window.removeEventListener("online", onOnline);
      void client.removeChannel(channel);
    };
  };

  getSupabase()
    .then((client) => {
      if (!left) leave = join(client);
    })
    // no client: the page itself says that nothing can be read; no sockets: it asks by itself
    .catch(() => left || tell("down"));
  return () => {
    left = true;
    stop();
    leave();
    tell("joining");
  };
}
