/**
 * The toasts' store: at most one at a time, shown 5000 ms, forgotten 1000000 ms after it closed (section 9).
 * Call `toast({ title, description })` from anywhere; the region that shows it is loaded on the first call.
 */
import { useSyncExternalStore } from "react";

export const TOAST_LIMIT = 1;
export const TOAST_DURATION_MS = 5_000;
export const TOAST_REMOVE_DELAY_MS = 1_000_000;

export interface ToastMessage {
  title: string;
  description?: string;
  /** `default`: it is done. `info`: something to know. `destructive`: error styling, announced at once. */
  variant?: "default" | "info" | "destructive";
}

export interface ToastEntry extends ToastMessage {
  id: number;
  open: boolean;
}

let entries: readonly ToastEntry[] = [];
let nextId = 1;
const listeners = new Set<() => void>();

function set(next: readonly ToastEntry[]) {
  entries = next;
  for (const notify of listeners) notify();
}

/** Returns its id, for what is settled before its time is over. */
export function toast(message: ToastMessage): number {
  const id = nextId++;
  set([{ ...message, id, open: true }, ...entries].slice(0, TOAST_LIMIT));
  return id;
}

export function dismissToast(id: number): void {
  set(entries.map((entry) => (entry.id === id ? { ...entry, open: false } : entry)));
  setTimeout(() => set(entries.filter((entry) => entry.id !== id)), TOAST_REMOVE_DELAY_MS);
}

export function subscribeToasts(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const currentToasts = (): readonly ToastEntry[] => entries;

export function useToasts(): readonly ToastEntry[] {
  return useSyncExternalStore(subscribeToasts, currentToasts);
}
