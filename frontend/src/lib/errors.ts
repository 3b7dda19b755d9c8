/**
 * From any failure to words. Supabase's auth errors carry `code`; PostgREST's carry `code`
 * (SQLSTATE or PGRSTnnn), `message`, `details` and `hint`. AidBridge's database functions raise `PTnnn`
 * with a stable code in `hint`, a sentence fit to show in `message` and JSON in `details` (docs/database.md).
 */
import "@/messages/en/errors";
import { t, type MessageKey } from "@/messages";
import { translated } from "@/messages/catalogue";

/** The common fields of supabase-js errors. */
interface Known {
  name?: string;
  message?: string;
  code?: string;
  hint?: string | null;
  details?: string | null;
  status?: number;
  /** The real status, where storage answers 400. */
  statusCode?: string;
}

const byCode: Record<string, MessageKey> = {
  invalid_credentials: "errors.invalidCredentials",
  email_not_confirmed: "errors.emailNotConfirmed",
  user_already_exists: "errors.emailTaken",
  email_exists: "errors.emailTaken",
  weak_password: "errors.weakPassword",
  same_password: "errors.samePassword",
  signup_disabled: "errors.signupsOff",
  email_provider_disabled: "errors.signupsOff",
  over_request_rate_limit: "errors.tooMany",
  over_email_send_rate_limit: "errors.tooMany",
  otp_expired: "errors.badCode",
  flow_state_not_found: "errors.badCode",
  flow_state_expired: "errors.badCode",
  bad_jwt: "errors.expired",
  session_expired: "errors.expired",
  session_not_found: "errors.expired",
  refresh_token_not_found: "errors.expired",
  refresh_token_already_used: "errors.expired",
  user_banned: "errors.banned",
  "42501": "errors.refused",
  "23505": "errors.conflict",
  "23503": "errors.stillUsed",
  "23514": "errors.invalid",
  "23502": "errors.invalid",
  "22P02": "errors.invalid",
  "22001": "errors.tooLarge",
  "57014": "errors.server",
  PGRST116: "errors.notFound",
  PGRST301: "errors.expired",
  PGRST303: "errors.expired",
  PT401: "errors.expired",
};

function known(error: unknown): Known {
  return typeof error === "object" && error !== null ? (error as Known) : { message: String(error) };
}

/** The catalogue's words for a code. A 401 that says more, such as `access_ended`, has words of its own. */
const keyOf = ({ code, hint }: Known): MessageKey | undefined =>
  code === undefined || (code === "PT401" && hint && hint !== "sign_in_required") ? undefined : byCode[code];

function meantStatus(error: unknown): number | undefined {
  const { status, statusCode } = known(error);
  const meant = Number(statusCode);
  return meant >= 400 ? meant : status;
}

/** True when a file's bytes are not of the type that its name says. */
export const isWrongFileType = (error: unknown): boolean => meantStatus(error) === 415;

/** True when the request never reached the server. */
export function isNetworkError(error: unknown): boolean {
  const { name, message = "", status } = known(error);
  return (
    // supabase-js also uses it for a 502, 503 or 504, when the server was reached
    (name === "AuthRetryableFetchError" && !status) ||
    name === "FunctionsFetchError" ||
    /failed to fetch|networkerror|load failed|fetch failed|network request failed/i.test(message)
  );
}

/** True if the session is over and a new sign-in is needed. */
export function isSessionExpired(error: unknown): boolean {
  const cause = known(error);
  return cause.name === "AuthSessionMissingError" || keyOf(cause) === "errors.expired";
}

/** True if a guest's access to a request is over and a new code is needed. */
export const isAccessEnded = (error: unknown): boolean => errorHint(error) === "access_ended";

/** True when signing in failed only because the address was never confirmed. */
export function isUnconfirmed(error: unknown): boolean {
  return error !== null && error !== undefined && known(error).code === "email_not_confirmed";
}

/** True when the database or a policy refused. */
export function isRefused(error: unknown): boolean {
  const { code, status } = known(error);
  return code === "42501" || code === "PT403" || status === 403;
}

/**
 * True when the database said no, so nothing was written. After a lost answer or a fault of the server, the write may
 * have arrived.
 */
export const nothingWritten = (error: unknown): boolean =>
  /^(?:PT4|PGRST[123]|P0001|2[2-8]|42)/.test(known(error).code ?? "");

/** True when there is nothing under this id (or nothing this person may see). */
export function isNotFound(error: unknown): boolean {
  const { code, status } = known(error);
  return code === "PGRST116" || code === "PT404" || status === 404;
}

/** The stable code of a database function's refusal (`request_already_decided`), or null. */
export function errorHint(error: unknown): string | null {
  return known(error).hint ?? null;
}

/** The refusal's details as an object; {} if there are none. */
export function errorDetails(error: unknown): Record<string, unknown> {
  try {
    const details: unknown = JSON.parse(known(error).details ?? "{}");
    return typeof details === "object" && details !== null ? (details as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Field messages of a `validation_failed`: `{ description: "…" }` (the server's field names). */
export function fieldErrors(error: unknown): Record<string, string> {
  const fields = errorDetails(error).fields;
  if (typeof fields !== "object" || fields === null) return {};
  return Object.fromEntries(
    Object.entries(fields)
      .filter((entry): entry is [string, string] => typeof entry[1] === "string")
      .map(([field, message]) => [field, translated("refusals.field") ?? message]),
  );
}

/** The refusal's text in another language than English, if its code has one. */
const refusal = (error: unknown) => translated(`refusals.${errorHint(error) ?? ""}`);

/**
 * One sentence for a person: the catalogue's for a known code, the database function's own sentence
 * (SQLSTATE P0001 or a PTnnn status), else `fallback`. Never a raw fault.
 */
export function errorMessage(error: unknown, fallback: MessageKey = "errors.server"): string {
  if (isNetworkError(error)) return t("errors.network");
  const { code, message, name } = known(error);
  const status = meantStatus(error);
  const key = keyOf(known(error));
  if (key === "errors.weakPassword" && message) return message;
  if (key) return t(key);
  if (message && code && /^PT4\d\d$/.test(code)) return refusal(error) ?? translated("errors.invalid") ?? message;
  if (name === "AuthSessionMissingError") return t("errors.expired");
  if (status === 429) return t("errors.tooMany");
  if (status === 413) return t("errors.tooLarge");
  if (status === 415) return t("errors.wrongFileType");
  return t(fallback);
}
