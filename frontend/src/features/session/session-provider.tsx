/** Provides `useSession()`: follows supabase-js's auth events and loads who the person is. */
import { useCallback, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { isSessionExpired } from "@/lib/errors";
import { announcePersonChange } from "@/lib/person-change";
import { SessionContext, type SelectedNonprofit, type Session } from "@/lib/session";
import { toast } from "@/lib/toast";
import { getSupabase, mayHaveSession, whenClient } from "@/lib/supabase";
import { t } from "@/messages";
import "@/messages/en/errors";
import { claimGuestRequests, loadPerson, photoUrl, saveSelectedNonprofit, type AuthUser } from "./api";
import { noteClaimed, wasClaimed } from "./claimed";
import { forgetSelection, readSelection, storeSelection } from "./selection";

type State = Omit<Session, "refresh" | "signOut" | "selectNonprofit" | "forgetEnd">;

const signedOut: State = {
  status: "signed-out",
  error: null,
  ended: null,
  user: null,
  organization: null,
  selectedNonprofit: null,
};

function initial(): State {
  return { ...signedOut, status: mayHaveSession() ? "loading" : "signed-out", selectedNonprofit: readSelection() };
}

export function SessionProvider({ children }: { children: ReactNode }) {
  const [initialState] = useState<State>(initial);
  const [state, setState] = useState(initialState);
  /** The person being shown or loaded; answers for anyone else are dropped. */
  const auth = useRef<AuthUser | null>(null);
  const leaving = useRef(false);
  /** A session was kept here from an earlier visit: without it, this visit begins with an expired one. */
  const kept = useRef(initialState.status === "loading");

  const load = useCallback(async (who: AuthUser) => {
    try {
      const person = await loadPerson(who);
      if (auth.current?.id !== who.id) return;
      const selectedNonprofit = person.selectedNonprofit ?? readSelection();
      if (person.selectedNonprofit) storeSelection(person.selectedNonprofit);
      setState((before) => ({
        ...signedOut,
        status: "signed-in",
        // the photo that is shown stays until its new address is known
        user: {
          ...person.user,
          photoUrl: (person.photoPath && before.user?.id === who.id && before.user.photoUrl) || null,
        },
        organization: person.organization,
        selectedNonprofit,
      }));
      const address = person.photoPath ? await photoUrl(person.photoPath).catch(() => null) : null;
      if (address) {
        setState((now) =>
          now.user && auth.current?.id === who.id ? { ...now, user: { ...now.user, photoUrl: address } } : now,
        );
      }
    } catch (error) {
      if (auth.current?.id !== who.id) return;
      if (isSessionExpired(error)) {
        const supabase = await getSupabase();
        await supabase.auth.signOut({ scope: "local" });
        return;
      }
      // Someone already at work keeps working; only a first load can fail the page.
      setState((before) => (before.user?.id === who.id ? before : { ...signedOut, status: "failed", error }));
      toast({ variant: "destructive", title: t("errors.title"), description: t("errors.roleFetch") });
    }
  }, []);

  useEffect(() => {
    let unsubscribe = () => {};
    const stop = whenClient((client) => {
      const { data } = client.auth.onAuthStateChange((event, session) => {
        const next = session?.user ?? null;
        const before = auth.current;
        auth.current = next;
        if (!next) {
          if (before) {
            // after the pages of this person have left the screen
            setTimeout(announcePersonChange);
            if (leaving.current) forgetSelection();
          }
          const ended = leaving.current ? "choice" : before || kept.current ? "expired" : null;
          kept.current = false;
          leaving.current = false;
          // A second event about the same absence must not hide why it began.
          setState((now) => ({ ...signedOut, ended: ended ?? now.ended, selectedNonprofit: readSelection() }));
          return;
        }
        if (before?.id === next.id && event !== "USER_UPDATED") return;
        if (before?.id !== next.id) {
          // At the first load there is nothing of anybody else to forget.
          if (before || event !== "INITIAL_SESSION") setTimeout(announcePersonChange);
          setState((now) => ({ ...now, status: "loading" }));
        }
        // supabase-js holds its lock during this callback: read after it
        setTimeout(() => {
          void load(next);
          // supabase-js says 'SIGNED_IN' at every load of the page, too
          if (event !== "SIGNED_IN" || wasClaimed(next)) return;
          claimGuestRequests().then(
            (claimed) => {
              noteClaimed(next);
              // requests came along: what was read before is out of date
              if (claimed > 0) announcePersonChange();
            },
            () => undefined,
          );
        });
      });
      unsubscribe = () => data.subscription.unsubscribe();
    });
    if (mayHaveSession()) {
      getSupabase().catch((error: unknown) => setState({ ...signedOut, status: "failed", error }));
    }
    return () => {
      stop();
      unsubscribe();
    };
  }, [load]);

  const refresh = useCallback(async () => {
    const supabase = await getSupabase();
    const { data, error } = await supabase.auth.getSession();
    if (error) throw error;
    auth.current = data.session?.user ?? null;
    if (auth.current) await load(auth.current);
    else setState({ ...signedOut, selectedNonprofit: readSelection() });
  }, [load]);

  const signOut = useCallback(async () => {
    leaving.current = true;
    const supabase = await getSupabase();
    const { error } = await supabase.auth.signOut({ scope: "local" });
    if (error) {
      leaving.current = false;
      throw error;
    }
  }, []);

  const forgetEnd = useCallback(() => setState((now) => (now.ended ? { ...now, ended: null } : now)), []);

  const userId = state.user?.id;
  const selectNonprofit = useCallback(
    async (nonprofit: SelectedNonprofit) => {
      if (userId) await saveSelectedNonprofit(nonprofit.id);
      storeSelection(nonprofit);
      setState((before) => ({ ...before, selectedNonprofit: nonprofit }));
    },
    [userId],
  );

  const session = useMemo<Session>(
    () => ({ ...state, refresh, signOut, selectNonprofit, forgetEnd }),
    [state, refresh, signOut, selectNonprofit, forgetEnd],
  );
  return <SessionContext value={session}>{children}</SessionContext>;
}
