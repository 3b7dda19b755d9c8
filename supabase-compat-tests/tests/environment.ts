/**
 * The project under test, named by the environment alone: any Supabase-compatible server will do.
 *
 * SUPABASE_URL, SUPABASE_ANON_KEY (or SUPABASE_PUBLISHABLE_KEY), SUPABASE_SERVICE_ROLE_KEY (or SUPABASE_SECRET_KEY), and
 * MAILPIT_URL (or INBOX_URL): an inbox that answers as Mailpit does. On loopback they default to those of `supabase start`.
 */
const WELL_KNOWN_ANON =
  "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6ImFub24iLCJleHAiOjE5ODM4MTI5OTZ9.CRXP1A7WOeoJeXxjNni43kdQwgnWNReilDMblYTn_I0";
const WELL_KNOWN_SERVICE =
  "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImV4cCI6MTk4MzgxMjk5Nn0.EGIM96RAZx35lJzdJsyH-qQwv8Hdp7fsn3W0YpN81IU";

const env = (...names: string[]) => names.map((name) => process.env[name]).find(Boolean);
const url = (env("SUPABASE_URL") ?? "http://127.0.0.1:54321").replace(/\/+$/, "");
const isLocal = ["127.0.0.1", "localhost", "[::1]"].includes(new URL(url).hostname);
const local = (value: string) => (isLocal ? value : undefined);

// A server whose anon key is given is not the stack of `supabase start`: its other keys are not the well-known ones.
const givenAnon = env("SUPABASE_ANON_KEY", "SUPABASE_PUBLISHABLE_KEY");

export const environment = {
  url,
  anonKey: givenAnon ?? local(WELL_KNOWN_ANON) ?? "",
  serviceKey: env("SUPABASE_SERVICE_ROLE_KEY", "SUPABASE_SECRET_KEY") ?? (givenAnon ? undefined : local(WELL_KNOWN_SERVICE)),
  inbox: env("MAILPIT_URL", "INBOX_URL") ?? (givenAnon ? undefined : local("http://127.0.0.1:54324")),
};
