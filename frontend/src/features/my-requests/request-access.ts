/** A guest's access to one request, kept in this tab: it ends with the tab, with 'Exit this page' or after a day. */
import { z } from "zod";
import { readStoredJson, removeStored, store } from "@/lib/stored";

const NAME = "aidbridge-request-access";

const heldSchema = z.object({
  number: z.string(),
  access: z.string(),
  uploadKey: z.string(),
  /** ISO instant. */
  expiresAt: z.string(),
});
export type HeldAccess = z.output<typeof heldSchema>;

export function readAccess(now = new Date()): HeldAccess | null {
  const held = heldSchema.safeParse(readStoredJson("tab", NAME));
  return held.success && new Date(held.data.expiresAt) > now ? held.data : null;
}

/** If storage is unavailable, the page keeps it until it is left. */
export const keepAccess = (held: HeldAccess) => void store("tab", NAME, JSON.stringify(held));

export const forgetAccess = () => removeStored("tab", NAME);
