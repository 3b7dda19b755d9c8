/** What is typed into a long form survives a reload, the back button and an expired session: kept in this tab until sent. */
import { useCallback, useLayoutEffect } from "react";
import type { FieldValues, UseFormReturn } from "react-hook-form";
import { readStoredJson, removeStored, store } from "./stored";

const nameOf = (key: string) => `kept-form:${key}`;

/** What was kept under `key`, or `fallback`. Hand it to `useForm` as `defaultValues`. */
export function readKept<T extends object>(key: string, fallback: T): T {
  const kept = readStoredJson("tab", nameOf(key));
  return typeof kept === "object" && kept !== null ? { ...fallback, ...kept } : fallback;
}

/**
 * Keeps the form's values as they change, from the moment it is seen: an effect after the paint would miss what is typed
 * into it at once. Call the returned function once they were sent.
 */
export function useKeptForm<T extends FieldValues, O>(form: UseFormReturn<T, unknown, O>, key: string): () => void {
  useLayoutEffect(
    () =>
      form.subscribe({
        formState: { values: true },
        callback: ({ values }) => void store("tab", nameOf(key), JSON.stringify(values)),
      }),
    [form, key],
  );
  return useCallback(() => forgetKept(key), [key]);
}

/** Lets go of what was kept under `key`: it was sent, or given up on purpose. */
export const forgetKept = (key: string): void => removeStored("tab", nameOf(key));
