/**
 * The person in the query cache: role, profile and membership in one call, and the photo's URL separately, so that no
 * page waits for it. Downloaded only if somebody may be signed in; visitors of public pages do not need the cache.
 */
import { QueryObserver, queryOptions } from "@tanstack/react-query";
import { isNetworkError } from "@/lib/errors";
import { queryClient } from "@/lib/query-client";
import { reads } from "@/lib/query-keys";
import type { AppUser, Organization, SelectedNonprofit } from "@/lib/session";
import { z } from "zod";
import { rpc } from "@/lib/rpc";
import { getSupabase } from "@/lib/supabase";
import { settleWithPerson } from "@/messages/locale";
import { readMe, type Me } from "./answers";
import type { AuthUser } from "./api";
import { keepMe, keptMe } from "./kept-me";

/** The server's data about the person; offline, the tab's copy. */
async function readOrKept(userId: string): Promise<Me> {
  const kept = keptMe(userId);
  const later = () => {
    window.addEventListener("online", () => void readAgain(userId), { once: true });
    return kept;
  };
  if (kept && !navigator.onLine) return later();
  try {
    const me = await readMe();
    keepMe(userId, me);
    return me;
  } catch (error) {
    if (kept && isNetworkError(error)) return later();
    throw error;
  }
}

const meQuery = (userId: string) =>
  queryOptions({
    queryKey: [...reads.me, userId],
    queryFn: () => readOrKept(userId),
    // not refetched automatically; `refresh` does it after changes
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    retry: false,
  });

/** How long a photo's URL is valid, in seconds. */
const PHOTO_SECONDS = 3600;

const photoQuery = (userId: string, path: string | null) =>
  queryOptions({
    queryKey: [...reads.me, userId, "photo", path],
    enabled: path !== null,
    staleTime: (PHOTO_SECONDS - 60) * 1000,
    queryFn: async () => {
      const supabase = await getSupabase();
      const { data } = await supabase.storage.from("profile-photos").createSignedUrl(path ?? "", PHOTO_SECONDS);
      return data?.signedUrl ?? null;
    },
  });

export interface Person {
  user: AppUser;
  organization: Organization | null;
  selectedNonprofit: SelectedNonprofit | null;
}

/** What the cache holds of a person at a moment. */
export interface PersonNow {
  /** Undefined until `me()` has answered. */
  me: Me | undefined;
  photoUrl: string | null;
  /** Why the last reading failed. */
  error: unknown;
}

/** One person's cache entries for `useSyncExternalStore`. */
export function watchPerson(userId: string) {
  const me = new QueryObserver(queryClient, meQuery(userId));
  const photo = new QueryObserver(queryClient, photoQuery(userId, null));
  let now: PersonNow = { me: undefined, photoUrl: null, error: null };
  const look = () => {
    const [{ data, error }, { data: address }] = [me.getCurrentResult(), photo.getCurrentResult()];
    const photoUrl = address ?? null;
    if (data !== now.me || error !== now.error || photoUrl !== now.photoUrl) now = { me: data, photoUrl, error };
    return now;
  };
  return {
    subscribe(listener: () => void) {
      const stopPhoto = photo.subscribe(listener);
      const stopMe = me.subscribe(({ data }) => {
        photo.setOptions(photoQuery(userId, data?.profile?.photo_path ?? null));
        listener();
      });
      photo.setOptions(photoQuery(userId, me.getCurrentResult().data?.profile?.photo_path ?? null));
      return () => {
        stopPhoto();
        stopMe();
      };
    },
    look,
  };
}

/** Reads the person again, even during a read; the cache keeps the answer or the error. */
export const readAgain = (userId: string): Promise<void> =>
  queryClient.invalidateQueries({ queryKey: meQuery(userId).queryKey, exact: true, refetchType: "all" });

/** A new sign-in reads the person again and forgets earlier errors. */
export const forgetPerson = (userId: string): void => queryClient.removeQueries({ queryKey: [...reads.me, userId] });

/** Synchronises the browser's language with the profile's; a failed save is repeated at the next visit. */
export const settleLanguage = (me: Me): Promise<void> =>
  settleWithPerson(me?.profile?.language ?? null, async (language) => {
    await rpc("keep_language", { language }, z.string());
  }).catch(() => undefined);

/** Updates the cache, and the tab's copy, with what the server has just stored. */
export function noteSelection(userId: string, selected: SelectedNonprofit): void {
  const me = queryClient.setQueryData(
    meQuery(userId).queryKey,
    (before) => before && { ...before, selected_nonprofit: selected },
  );
  if (me) keepMe(userId, me);
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Combines the data of the auth service and the database into the session's person. */
export function personOf(auth: AuthUser, me: Me, photoUrl: string | null): Person {
  const organization = me?.role === "nonprofit" ? me.organization : null;
  return {
    user: {
      id: auth.id,
      email: auth.email ?? me?.email ?? "",
      role: me?.role ?? null,
      nonprofitRole: me?.nonprofit_role ?? null,
      fullName: me?.profile?.full_name || text(auth.user_metadata?.full_name),
      // the session's copy of the metadata may be older than the profile
      phoneNumber: me?.profile ? (me.profile.phone ?? "") : auth.phone || text(auth.user_metadata?.phone),
      textConsent: me?.profile?.sms_consent ?? false,
      photoUrl,
      emailProved: me?.email_proved ?? false,
    },
    organization: organization && {
      id: organization.nonprofit_id,
      name: organization.name,
      role: organization.role,
      logoPath: organization.logo_path,
    },
    selectedNonprofit: me?.selected_nonprofit ?? null,
  };
}
