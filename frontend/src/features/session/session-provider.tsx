/** Provides `useSession()`: follows supabase-js's auth events; who the person is stands in the query cache (`./person`). */
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore, type ReactNode } from "react";
import { isSessionExpired } from "@/lib/errors";
import { announcePersonChange } from "@/lib/person-change";
import { SessionContext, type SelectedNonprofit, type Session } from "@/lib/session";
import { forgetTypedBy } from "@/lib/stored";
import { toast } from "@/lib/toast";
import { getSupabase, mayHaveSession, whenClient } from "@/lib/supabase";
import { t } from "@/messages";
import "@/messages/en/errors";
import { claimGuestRequests, saveSelectedNonprofit, type AuthUser } from "./api";
import { forgetMe, keptUser } from "./kept-me";
import { noteClaimed, wasClaimed } from "./claimed";
import type { PersonNow } from "./person";
import { forgetSelection, readSelection, storeSelection } from "./selection";

type PersonModule = typeof import("./person");

/** Whether somebody is signed in here, as far as this browser knows. */
type Presence =
  | { kind: "asking" }
  /** supabase-js or the server's settings could not be loaded. */
  | { kind: "failed"; error: unknown }
  | { kind: "nobody"; ended: Session["ended"] }
  | { kind: "here"; auth: AuthUser };

const nobodyYet: PersonNow = { me: undefined, photoUrl: null, error: null };
const nothing = { subscribe: () => () => {}, look: () => nobodyYet };

/** What the cache holds of the person, once its code is there. */
function usePersonNow(person: PersonModule | null, userId: string | null): PersonNow {
  const watch = useMemo(
    () => (person === null || userId === null ? nothing : person.watchPerson(userId)),
    [person, userId],
  );
  return useSyncExternalStore(watch.subscribe, watch.look, () => nobodyYet);
}

export function SessionProvider({ children }: { children: ReactNode }) {
  const [keptSession] = useState(mayHaveSession);
  const [offline] = useState(() => (keptSession ? keptUser() : null));
  const [presence, setPresence] = useState<Presence>(
    offline ? { kind: "here", auth: offline } : keptSession ? { kind: "asking" } : { kind: "nobody", ended: null },
  );
  const [selection, setSelection] = useState(readSelection);
  const [person, setPerson] = useState<PersonModule | null>(null);
  /** The current user, for events between two renders. */
  const auth = useRef<AuthUser | null>(offline);
  const loaded = useRef<PersonModule | null>(null);
  const leaving = useRef(false);
  /** Whether a session was stored by an earlier visit: if it is gone, this visit begins with an expired one. */
  const kept = useRef(keptSession);

  const loadPerson = useCallback(
    () =>
      import("./person").then((module) => {
        loaded.current = module;
        setPerson(module);
        return module;
      }),
    [],
  );

  const userId = presence.kind === "here" ? presence.auth.id : null;
  const { me, photoUrl, error } = usePersonNow(person, userId);

  useEffect(() => {
    let unsubscribe = () => {};
    const fail = (error: unknown) => setPresence((now) => (now.kind === "nobody" ? now : { kind: "failed", error }));
    const stop = whenClient((client) => {
      const { data } = client.auth.onAuthStateChange((event, session) => {
        const next = session?.user ?? null;
        const before = auth.current;
        // it could not be renewed offline; its validity is checked when online
        if (!next && event === "INITIAL_SESSION" && before && mayHaveSession()) return;
        auth.current = next;
        if (!next) {
          if (before) {
            forgetMe(before.id);
            // after the pages of this person have left the screen
            setTimeout(announcePersonChange);
            // an expired session keeps what was typed for the next sign-in
            if (leaving.current) {
              forgetSelection();
              forgetTypedBy(before.id);
            }
          }
          const ended = leaving.current ? "choice" : before || kept.current ? "expired" : null;
          kept.current = false;
          leaving.current = false;
          setSelection(readSelection());
          // A second event about the same sign-out must not hide its reason.
          setPresence((now) => ({ kind: "nobody", ended: ended ?? (now.kind === "nobody" ? now.ended : null) }));
          return;
        }
        if (before?.id === next.id && event !== "USER_UPDATED") return;
        if (before?.id !== next.id) {
          // At the first load there is no other person's data to forget.
          if (before || event !== "INITIAL_SESSION") setTimeout(announcePersonChange);
          loaded.current?.forgetPerson(next.id);
          setSelection(readSelection());
        }
        setPresence({ kind: "here", auth: next });
        // supabase-js holds its lock during this callback: read after it
        setTimeout(() => {
          const reading = loadPerson();
          (before?.id === next.id ? reading.then(({ readAgain }) => readAgain(next.id)) : reading).catch(fail);
          // once per sign-in, whatever supabase-js calls it: after the link of a confirmation mail 'INITIAL_SESSION' comes first
          if (wasClaimed(next)) return;
          claimGuestRequests().then(
            (claimed) => {
              noteClaimed(next);
              // requests were claimed, so earlier reads are outdated
              if (claimed > 0) announcePersonChange();
            },
            () => undefined,
          );
        });
      });
      unsubscribe = () => data.subscription.unsubscribe();
    });
    if (keptSession) Promise.all([getSupabase(), loadPerson()]).catch(fail);
    return () => {
      stop();
      unsubscribe();
    };
  }, [keptSession, loadPerson]);

  // The error of reading the person. It fails the page only at the first load; later, people can continue.
  useEffect(() => {
    if (!error) return;
    if (!isSessionExpired(error)) {
      toast({ variant: "destructive", title: t("errors.title"), description: t("errors.roleFetch") });
      return;
    }
    void getSupabase().then((supabase) => supabase.auth.signOut({ scope: "local" }));
  }, [error]);

  useEffect(() => {
    if (me && person) void person.settleLanguage(me);
  }, [me, person]);

  // The profile's choice is the account's. Without one, it gets the choice made here while nobody was signed in, once.
  useEffect(() => {
    if (!me || userId === null || person === null) return;
    if (me.selected_nonprofit) return storeSelection({ nonprofit: me.selected_nonprofit, of: userId });
    const kept = readSelection();
    forgetSelection();
    if (kept?.of !== null || me.role !== "requester") return;
    saveSelectedNonprofit(kept.nonprofit.id).then(
      () => person.noteSelection(userId, kept.nonprofit),
      // closed meanwhile: they choose another one
      () => undefined,
    );
  }, [me, userId, person]);

  const refresh = useCallback(async () => {
    const supabase = await getSupabase();
    const { data, error } = await supabase.auth.getSession();
    if (error) throw error;
    const who = data.session?.user ?? null;
    auth.current = who;
    if (who) {
      const { readAgain } = await loadPerson();
      await readAgain(who.id);
      if (auth.current?.id !== who.id) return;
    }
    setPresence((now) =>
      who ? { kind: "here", auth: { ...who } } : { kind: "nobody", ended: now.kind === "nobody" ? now.ended : null },
    );
  }, [loadPerson]);

  const signOut = useCallback(async () => {
    leaving.current = true;
    const supabase = await getSupabase();
    // supabase-js forgets the session before it calls the server. The server is called first, so that people are still
    // signed in if the logout fails and can try again. A session that the server no longer knows has already ended.
    const { data } = await supabase.auth.getSession();
    if (data.session) {
      const { error } = await supabase.auth.admin.signOut(data.session.access_token, "local");
      if (error && ![401, 403, 404].includes(error.status ?? 0)) {
        leaving.current = false;
        throw error;
      }
    }
    await supabase.auth.signOut({ scope: "local" });
  }, []);

  const forgetEnd = useCallback(
    () => setPresence((now) => (now.kind === "nobody" && now.ended ? { ...now, ended: null } : now)),
    [],
  );

  const selectNonprofit = useCallback(
    async (nonprofit: SelectedNonprofit) => {
      if (userId) {
        await saveSelectedNonprofit(nonprofit.id);
        person?.noteSelection(userId, nonprofit);
      }
      storeSelection({ nonprofit, of: userId });
      setSelection({ nonprofit, of: userId });
    },
    [userId, person],
  );

  const session = useMemo<Session>(() => {
    const doings = { refresh, signOut, selectNonprofit, forgetEnd };
    const guests = selection?.of === null ? selection.nonprofit : null;
    const empty = { error: null, ended: null, user: null, organization: null, selectedNonprofit: guests, ...doings };
    switch (presence.kind) {
      case "asking":
        return { ...empty, status: "loading" };
      case "failed":
        return { ...empty, status: "failed", error: presence.error };
      case "nobody":
        return { ...empty, status: "signed-out", ended: presence.ended };
      case "here": {
        if (person === null || me === undefined) {
          return error && !isSessionExpired(error)
            ? { ...empty, status: "failed", error }
            : { ...empty, status: "loading" };
        }
        const { user, organization, selectedNonprofit } = person.personOf(presence.auth, me, photoUrl);
        return { ...empty, status: "signed-in", user, organization, selectedNonprofit };
      }
    }
  }, [presence, person, me, photoUrl, error, selection, refresh, signOut, selectNonprofit, forgetEnd]);
  return <SessionContext value={session}>{children}</SessionContext>;
}
