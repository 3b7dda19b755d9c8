/**
 * Live updates: a realtime channel reports which tables changed, and the query cache reads again. The channel's data is
 * never shown; reads decide what a person may see. While the channel is down, the same reads poll (`whileDown`).
 */
import type { QueryClient, QueryKey } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { getSupabase, type Client } from "./supabase";

export interface LiveTable {
  table: string;
  /** As PostgREST writes it: `user_id=eq.…`. Policies decide what is sent; the filter saves the server work. */
  filter: string;
  /** The keys that a changed row invalidates. */
  keys: readonly QueryKey[];
}

/** `joining` until the first channel is joined: nothing was missed yet. */
export type LiveState = "joining" | "live" | "down";

/** The polling interval while the channel is down. */
export const POLL_SECONDS = 30;
/** Changes within this time are read once. */
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

/** The `refetchInterval` of a read that can change elsewhere. */
export const whileDown = () => (state === "live" ? false : POLL_SECONDS * 1000);

/** Invalidates `keys`, combining those in quick succession. */
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

/**
 * Follows the tables until the returned function is called. After each join everything is read again, because changes
 * may have been missed.
 */
export function follow(cache: QueryClient, tables: readonly LiveTable[]): () => void {
  const all = tables.flatMap(({ keys }) => keys);
  const { readAgain, stop } = gathering(cache);
  let leave = () => {};
  let left = false;

  const join = (client: Client) => {
    let over = false;
    // a new name, because a channel that is being left cannot be joined again
    let channel = client.channel(`changes-${++count}`);
    for (const { table, filter, keys } of tables) {
      channel = channel.on("postgres_changes", { event: "*", schema: "public", table, filter }, () => readAgain(keys));
    }
    const fell = () => {
      if (over || state === "down") return;
      tell("down");
      // start polling now, not at the next render
      readAgain(all);
    };
    channel
      // only this confirms that changes are sent; a server that cannot follow them says 'error'
      .on("system", {}, ({ extension, status }: { extension?: string; status?: string }) => {
        if (over || extension !== "postgres_changes") return;
        if (status !== "ok") return fell();
        tell("live");
        readAgain(all);
      })
      .subscribe((status) => {
        if (status !== "SUBSCRIBED") fell();
      });
    // A socket notices a lost connection only when heartbeats fail, so it is replaced when the browser is online again.
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
    // without a client the page shows its own error; without sockets it polls
    .catch(() => left || tell("down"));
  return () => {
    left = true;
    stop();
    leave();
    tell("joining");
  };
}
