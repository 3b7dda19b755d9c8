/** Calls database functions and validates their answers, so that no page gets an unexpected shape. */
import { z } from "zod";
import type { Database } from "@/types/database";
import { getSupabase } from "./supabase";

type Functions = Database["public"]["Functions"];

/** Calls a function and reads its answer by `schema`. Throws what supabase-js answers, or the schema's `ZodError`. */
export async function rpc<Name extends keyof Functions & string, S extends z.ZodType>(
  name: Name,
  args: Functions[Name]["Args"],
  schema: S,
): Promise<z.output<S>> {
  const supabase = await getSupabase();
  const { data, error } = await supabase.rpc(name, args as never);
  if (error) throw error;
  return schema.parse(data);
}

/** For functions whose answer is ignored. */
export const nothing = z.unknown();
