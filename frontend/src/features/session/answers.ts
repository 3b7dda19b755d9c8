/** Schemas of the database's answers about the person. Loaded with the first call. */
import { z } from "zod";
import { rpc } from "@/lib/rpc";
import type { AccountRole } from "@/lib/session";

const roleSchema = z.enum(["admin", "manager", "employee", "volunteer"]);

/** What `me()` answers; null signed out. */
const meSchema = z
  .object({
    email: z.string().nullable(),
    email_proved: z.boolean(),
    // An unknown role is reported where it would matter.
    role: z
      .string()
      .transform((role) => role as AccountRole)
      .nullable(),
    nonprofit_role: roleSchema.nullable(),
    profile: z
      .object({
        full_name: z.string().nullable(),
        phone: z.string().nullable(),
        photo_path: z.string().nullable(),
        language: z.string().nullish(),
        sms_consent: z.boolean().optional(),
      })
      .nullable(),
    selected_nonprofit: z.object({ id: z.string(), name: z.string() }).nullable(),
    organization: z
      .object({ nonprofit_id: z.string(), name: z.string(), role: roleSchema, logo_path: z.string().nullable() })
      .nullable(),
  })
  .nullable();

export type Me = z.output<typeof meSchema>;

export const readMe = () => rpc("me", {} as never, meSchema);

export const claimRequests = async (): Promise<number> =>
  (await rpc("claim_guest_requests", {} as never, z.object({ claimed_requests: z.number() }))).claimed_requests;
