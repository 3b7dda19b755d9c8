/** What is typed into a long form survives a reload, the back button and an expired session: kept in this tab until sent. */
import { useCallback, useLayoutEffect } from "react";
import type { FieldValues, UseFormReturn } from "react-hook-form";

const PREFIX = "kept-form:";

/** What was kept under `key`, or `fallback`. Hand it to `useForm` as `defaultValues`. */
export function readKept<T extends object>(key: string, fallback: T): T {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(PREFIX + key) ?? "null");
    return typeof kept === "object" && kept !== null ? { ...fallback, ...kept } : fallback;
  } catch {
    return fallback;
  }
}

/**
 * Keeps the form's values as they change, from the moment it is seen: an effect after the paint would miss what is typed
 * into it at once. Call the returned function once they were sent.
 */
export function useKeptForm<T extends FieldValues, O>(form: UseFormReturn<T, unknown, O>, key: string): () => void {
  useLayoutEffect(() => {
    const subscription = form.subscribe({
      formState: { values: true },
      callback: ({ values }) => {
        try {
          sessionStorage.setItem(PREFIX + key, JSON.stringify(values));
        } catch {
          // Storage is closed or full: the form still holds what was typed.
        }
      },
    });
    return subscription;
  }, [form, key]);
  return useCallback(() => forgetKept(key), [key]);
}

/** Lets go of what was kept under `key`: it was sent, or given up on purpose. */
export function forgetKept(key: string): void {
  try {
    sessionStorage.removeItem(PREFIX + key);
  } catch {
    // nothing was kept
  }
}
