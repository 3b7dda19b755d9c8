/**
 * Announces a change of the person (sign-in, sign-out, another account), so that data of the previous one is dropped.
 */

const listeners = new Set<() => void>();

export function onPersonChange(listener: () => void): void {
  listeners.add(listener);
}

export function announcePersonChange(): void {
  for (const listener of listeners) listener();
}
