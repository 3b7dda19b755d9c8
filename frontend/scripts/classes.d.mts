export interface OwnClass {
  name: string;
  /** Below `src`, the one it is written in first. */
  sheets: string[];
  users: string[];
}
export function classes(): OwnClass[];
export function list(): string;
export function kept(): string;
