import { clsx, type ClassValue } from "clsx";

/** Joins class names. Component classes lie in a lower layer than utilities, so a utility passed last always wins. */
export function cn(...classes: ClassValue[]): string {
  return clsx(classes);
}
