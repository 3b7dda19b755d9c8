/**
 * Requests of supabase-js that take no signal, made stoppable: its client's fetch looks here for the object's path. Uploads alone
 * are registered, each under a path of its own.
 */
const signals = new Map<string, AbortSignal>();

/** Runs `send` so that `signal` ends the request to the object at `path`. */
export async function stoppable<T>(path: string, signal: AbortSignal | undefined, send: () => Promise<T>): Promise<T> {
  if (!signal) return send();
  signal.throwIfAborted();
  signals.set(path, signal);
  try {
    return await send();
  } finally {
    signals.delete(path);
  }
}

/** The fetch that supabase-js is given. */
export const abortableFetch: typeof fetch = (input, init) => {
  if (signals.size > 0 && typeof input === "string") {
    for (const [path, signal] of signals) if (input.includes(path)) return fetch(input, { ...init, signal });
  }
  return fetch(input, init);
};
