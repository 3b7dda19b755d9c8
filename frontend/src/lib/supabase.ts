/**
 * The only supabase-js client, created on first use. supabase-js is a separate chunk that visitors
 * of public pages do not download.
 */
import type { SupabaseClient } from "@supabase/supabase-js";
import { currentLocale } from "@/messages/locale";
import type { Database } from "@/types/database";
import { loadAppConfig } from "./env";
import { readStored, SESSION_STORAGE_KEY } from "./stored";

export type Client = SupabaseClient<Database>;

let client: Promise<Client> | null = null;
const watchers = new Set<(client: Client) => void>();

/** Calls `watcher` with the client once one is made, or at once if there is one. */
export function whenClient(watcher: (client: Client) => void): () => void {
  watchers.add(watcher);
  void client?.then((made) => {
    if (watchers.has(watcher)) watcher(made);
  });
  return () => watchers.delete(watcher);
}

/** The client; `api.ts` files call this at the start of each read and write. */
export function getSupabase(): Promise<Client> {
  client ??= Promise.all([import("@supabase/supabase-js"), loadAppConfig()])
    .then(([{ createClient }, config]) => {
      const made = createClient<Database>(config.apiUrl, config.publishableKey, {
        auth: {
          storageKey: SESSION_STORAGE_KEY,
          // The reset page reads its own link: tokens in the query or fragment, or a code.
          detectSessionInUrl: window.location.pathname !== "/reset-password",
        },
        // the page's language for mails, which may differ from the browser's
        global: { headers: { "Accept-Language": currentLocale() } },
        realtime: { heartbeatIntervalMs: 30_000, timeout: 10_000 },
      });
      for (const watcher of watchers) watcher(made);
      return made;
    })
    .catch((error: unknown) => {
      client = null;
      throw error;
    });
  return client;
}

/** Whether this browser may have a session: only then does a public page load supabase-js. */
export function mayHaveSession(): boolean {
  const { search, hash } = window.location;
  if (/[#&]access_token=/.test(hash) || /[?&]code=/.test(search)) return true;
  return readStored("browser", SESSION_STORAGE_KEY) !== null;
}
