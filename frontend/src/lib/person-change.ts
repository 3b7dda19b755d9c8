/** Told when somebody else is here (signed in, out, or another account): what was kept of the last person must go. */

const listeners = new Set<() => void>();

export function onPersonChange(listener: () => void): void {
  listeners.add(listener);
}

export function announcePersonChange(): void {
  for (const listener of listeners) listener();
}
