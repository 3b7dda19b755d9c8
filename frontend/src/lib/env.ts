/**
 * The settings of this installation, read from the server at run time (`GET /app-config.json`).
 * Nothing is baked into the build, so rotating a key needs no rebuild.
 */
import { useSyncExternalStore } from "react";

export interface AppConfig {
  /** Origin of the API without a trailing slash; the app's own origin when the server says "". */
  apiUrl: string;
  /** Key for `apikey`: the publishable key or the anon JWT. */
  publishableKey: string;
  /** Address for help, shown in the footer and on error pages. */
  supportEmail: string;
  siteName: string;
  /** Third-party sign-in that the server has configured. */
  providers: { google: boolean; azure: boolean };
  /** True when sign-up signs in at once; false when the address is confirmed by mail first. */
  autoconfirm: boolean;
  /** Whether texts can be sent. */
  sms: boolean;
}

let current: AppConfig | null = null;
let loading: Promise<AppConfig> | null = null;
const listeners = new Set<() => void>();

/** Parses the server's settings; refuses them without a key. */
export function parseAppConfig(body: unknown, origin: string): AppConfig {
  const raw = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  const text = (name: string) => (typeof raw[name] === "string" ? raw[name] : "");
  const publishableKey = text("publishableKey");
  if (!publishableKey) throw new Error("app-config.json holds no publishableKey");
  const providers = (typeof raw.providers === "object" && raw.providers !== null ? raw.providers : {}) as Record<
    string,
    unknown
  >;
  return {
    apiUrl: (text("apiUrl") || origin).replace(/\/+$/, ""),
    publishableKey,
    supportEmail: text("supportEmail"),
    siteName: text("siteName") || "AidBridge",
    providers: { google: providers.google === true, azure: providers.azure === true },
    autoconfirm: raw.autoconfirm === true,
    sms: raw.sms === true,
  };
}

/** Loads the settings once; a failed load is tried again by the next caller. */
export function loadAppConfig(): Promise<AppConfig> {
  loading ??= fetch("/app-config.json")
    .then(async (response) => {
      if (!response.ok) throw new Error(`app-config.json answered ${response.status}`);
      current = parseAppConfig(await response.json(), window.location.origin);
      for (const notify of listeners) notify();
      return current;
    })
    .catch((error: unknown) => {
      loading = null;
      throw error;
    });
  return loading;
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The settings, or null until they have arrived. */
export function useAppConfig(): AppConfig | null {
  return useSyncExternalStore(
    subscribe,
    () => current,
    () => null,
  );
}
