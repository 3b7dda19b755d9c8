/** What a test needs of the server or of the environment; where it is missing, the test is skipped with a word. */
import { inject, TestRunner } from "vitest";

export const NEEDS = [
  "auth", "rest", "storage", "realtime", "functions", "schema", "aidbridge", "serviceKey", "inbox", "sessions", "outside",
] as const;
export type Need = (typeof NEEDS)[number];

declare module "vitest" {
  export interface ProvidedContext {
    /** What is missing, and why. */
    missing: Partial<Record<Need, string>>;
    /** In the names of everything a run makes, so that runs do not meet and each finds its own again. */
    run: string;
  }
}

/** Skips the test that runs if one of these is missing; `COMPAT_COMPLETE=1` makes that a failure. */
export function need(...needs: Need[]) {
  const missing = inject("missing");
  for (const one of needs) {
    const why = missing[one];
    if (!why) continue;
    const test = TestRunner.getCurrentTest();
    if (process.env.COMPAT_COMPLETE || !test) throw new Error(why);
    test.context.skip(why);
  }
}

/** Codes of Supabase Auth and Storage for what a project has switched off. */
const SWITCHED_OFF = new Set([
  "anonymous_provider_disabled", "email_provider_disabled", "phone_provider_disabled", "provider_disabled", "web3_unsupported_chain",
  "manual_linking_disabled", "mfa_totp_enroll_not_enabled", "mfa_phone_enroll_not_enabled", "mfa_webauthn_enroll_not_enabled",
  "mfa_recovery_codes_enroll_not_enabled", "mfa_recovery_codes_verify_not_enabled",
  "passkey_disabled", "oauth_server_disabled", "feature_disabled", "FeatureNotEnabled", "over_email_send_rate_limit",
  "over_request_rate_limit", "over_sms_send_rate_limit", "email_address_not_authorized",
]);

let refusals: string[] = [];

/** Notes the code of a refusal, for `unlessOff`. */
export function noteRefusal(code: unknown) {
  if (typeof code === "string") refusals.push(code);
}

/** Runs a test; one that failed after the server said that the feature is switched off is skipped with its code. */
export async function unlessOff(work: () => Promise<void>) {
  refusals = [];
  try {
    await work();
  } catch (error) {
    const code = refusals.find((one) => SWITCHED_OFF.has(one));
    if (!code || process.env.COMPAT_COMPLETE) throw error;
    TestRunner.getCurrentTest()?.context.skip(`the server says ${code}`);
  }
}
