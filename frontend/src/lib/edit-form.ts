/**
 * A form over a row that others can change meanwhile: settings of an organization, a profile.
 *
 * For each field it knows the value that the person saw before they changed it. Only changed fields are sent, and the others
 * follow the row whenever it is read again. What was typed stays in this tab with what was seen, as in `kept-form`.
 */
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useForm, type DefaultValues, type FieldValues, type Path, type UseFormProps } from "react-hook-form";
import { forgetKept, keptName } from "./kept-form";
import { readStoredJson, store } from "./stored";

/** Only fields that were changed. */
interface Kept<T> {
  typed: Partial<T>;
  seen: Partial<T>;
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

function readEdit<T>(key: string | null): Kept<T> {
  const kept = key === null ? null : readStoredJson("tab", keptName(key));
  return isObject(kept) && "typed" in kept && isObject(kept.typed) && "seen" in kept && isObject(kept.seen)
    ? (kept as Kept<T>)
    : { typed: {}, seen: {} };
}

/** Whether changes are kept under `key`, for forms that are not always open. */
export const hasKeptEdit = (key: string): boolean => Object.keys(readEdit(key).typed).length > 0;

export interface EditFormProps<T extends FieldValues, O> extends Omit<
  UseFormProps<T, unknown, O>,
  "defaultValues" | "values"
> {
  /** The row as it was last read. It is compared by identity, so memoize it. Its values are compared by `===`. */
  row: T;
  /** See `readKept`; null keeps nothing. */
  keptAs: string | null;
  /** Fields that are never kept, such as the number of an identity card. */
  unkept?: readonly (keyof T)[];
}

/** One attempt to save. */
export interface Attempt<T> {
  changed: Partial<T>;
  /** What the person saw, for the server to compare. */
  seen: T;
  /** Call it once the changes are saved. Keeps what was typed meanwhile. */
  succeeded: () => void;
}

export function useEditForm<T extends FieldValues>({ row, keptAs, unkept, ...options }: EditFormProps<T, T>) {
  const [opened] = useState(() => readEdit<T>(keptAs));
  const newest = useRef(row);
  /** For changed fields what the person saw, for the others the row's value. */
  const seen = useRef<T>({ ...row, ...opened.seen });
  const form = useForm<T, unknown, T>({
    ...options,
    defaultValues: { ...row, ...opened.typed } as DefaultValues<T>,
  });
  const { getValues, setValue, reset, subscribe } = form;

  const keep = useCallback(() => {
    if (keptAs === null) return;
    const values = getValues();
    const names = Object.keys(seen.current).filter(
      (name) => values[name] !== seen.current[name] && !unkept?.includes(name),
    );
    if (names.length === 0) return forgetKept(keptAs);
    const pick = (from: T) => Object.fromEntries(names.map((name) => [name, from[name] as unknown]));
    store("tab", keptName(keptAs), JSON.stringify({ typed: pick(values), seen: pick(seen.current) }));
  }, [keptAs, unkept, getValues]);
  useLayoutEffect(() => subscribe({ formState: { values: true }, callback: keep }), [subscribe, keep]);

  /** Untouched fields take the row's values. */
  const follow = useCallback(
    (next: T) => {
      newest.current = next;
      for (const name of Object.keys(next) as Path<T>[]) {
        const value = getValues(name);
        if (value !== seen.current[name] && value !== next[name]) continue;
        seen.current = { ...seen.current, [name]: next[name] };
        if (value !== next[name]) setValue(name, next[name]);
      }
      keep();
    },
    [getValues, setValue, keep],
  );
  useEffect(() => follow(row), [row, follow]);

  return {
    form,
    /** `values`: the form's, as its schema returned them. */
    attempt(values: T): Attempt<T> {
      const typed = { ...getValues() };
      const before = newest.current;
      const base = seen.current;
      const names = (Object.keys(values) as Path<T>[]).filter((name) => values[name] !== base[name]);
      return {
        changed: Object.fromEntries(names.map((name) => [name, values[name] as unknown])) as Partial<T>,
        seen: base,
        succeeded() {
          for (const name of names) {
            // the row that was read after saving has the value as the database wrote it
            const saved = newest.current[name] === before[name] ? values[name] : newest.current[name];
            seen.current = { ...seen.current, [name]: saved };
            newest.current = { ...newest.current, [name]: saved };
            if (getValues(name) === typed[name]) setValue(name, saved);
          }
          // the next mistake is shown as in a new form
          reset(seen.current, { keepValues: true });
          keep();
        },
      };
    },
    /**
     * After the server refused because of somebody else's changes: the changed fields in which `next` differs from what
     * the person saw, with its values. Show them, because from here on they count as seen.
     */
    meet(next: T): Partial<T> {
      follow(next);
      const names = Object.keys(next).filter((name) => next[name] !== seen.current[name]);
      const theirs = Object.fromEntries(names.map((name) => [name, next[name] as unknown])) as Partial<T>;
      seen.current = { ...seen.current, ...theirs };
      keep();
      return theirs;
    },
    /** Back to the row. */
    discard() {
      seen.current = newest.current;
      reset(newest.current);
      keep();
    },
  };
}
