/** Recovery codes of second factors: experimental in the client, younger than the contract the server follows. */
import { expect } from "vitest";
import { anon, client, signedUp } from "../../project";
import type { Journey, Journeys } from "../journey";

type Codes = ReturnType<typeof anon>["auth"]["mfa"]["recoveryCodes"];

/** A signed-in client that is told to try. */
async function trying(): Promise<Codes> {
  const { session } = await signedUp();
  const experimental = { recoveryCodes: true } as never;
  const auth = { persistSession: false, autoRefreshToken: false, experimental };
  const supabase = client(undefined, auth);
  await supabase.auth.setSession(session);
  return supabase.auth.mfa.recoveryCodes;
}

/** A server without them answers as for a factor that is none; the client does not even ask unless told to. */
function notThere(call: (codes: Codes) => Promise<{ error: unknown }>): Journey {
  return {
    async succeeds() {
      expect((await call(await trying())).error).toMatchObject({ status: 404 });
    },
    async fails() {
      await expect(call(anon().auth.mfa.recoveryCodes)).rejects.toThrow(/experimental/);
    },
  };
}

export const recoveryCodes: Journeys = {
  "auth.mfa.recoveryCodes.getStatus": notThere((codes) => codes.getStatus()),
  "auth.mfa.recoveryCodes.generate": notThere((codes) => codes.generate()),
  "auth.mfa.recoveryCodes.verify": notThere((codes) => codes.verify({ code: "x" })),
  "auth.mfa.recoveryCodes.regenerate": notThere((codes) => codes.regenerate()),
  "auth.mfa.recoveryCodes.unenroll": notThere((codes) => codes.unenroll()),
};
