/**
 * Keeps the input of a long form in this tab until it is sent, across reloads, the back button and an expired session.
 */
import { useCallback, useLayoutEffect } from "react";
import type { FieldValues, UseFormReturn } from "react-hook-form";
import { readStoredJson, removeStored, store } from "./stored";

/** Where the values of `key` are stored. */
export const keptName = (key: string) => `kept-form:${key}`;

/** Where the key is stored under which they are sent (`use-send-key`). */
export const sendKeyName = (key: string) => `send-key:${key}`;

/**
 * The values kept under `key`, or `fallback`. Pass them to `useForm` as `defaultValues`. An account's key contains the
 * user's id: another account in this tab never sees them, and 'Logout' deletes them (`forgetTypedBy`).
 */
export function readKept<T extends object>(key: string, fallback: T): T {
  const kept = readStoredJson("tab", keptName(key));
  return typeof kept === "object" && kept !== null ? { ...fallback, ...kept } : fallback;
}

/**
 * Saves the form's values as they change, from the first paint on: a later effect would miss early typing. Call the
 * returned function once they were sent.
 */
export function useKeptForm<T extends FieldValues, O>(form: UseFormReturn<T, unknown, O>, key: string): () => void {
  useLayoutEffect(
    () =>
      form.subscribe({
        formState: { values: true },
        callback: ({ values }) => void store("tab", keptName(key), JSON.stringify(values)),
      }),
    [form, key],
  );
  return useCallback(() => forgetKept(key), [key]);
}

/** Deletes the values kept under `key`, and the key they were sent with, after sending or cancelling. */
export function forgetKept(key: string): void {
  removeStored("tab", keptName(key));
  removeStored("tab", sendKeyName(key));
}
