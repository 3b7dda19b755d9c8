import type { SupabaseClient, SupabaseClientOptions, User } from "@supabase/supabase-js";

/** A mail that the copy's inbox has caught. */
export interface Mail {
  id: string;
  from: string;
  to: string;
  subject: string;
  text: string;
  html: string;
  headers: Record<string, string>;
  /** ISO 8601. */
  receivedAt: string;
  /** Addresses that the mail links to. */
  links: string[];
  /** Numbers of six to ten digits that stand alone: sign-in codes. */
  codes: string[];
}

export interface StartOptions {
  /** Folder that holds `supabase/`; default: the current one. */
  project?: string;
  /** Program to run; default: `FERROBASE_BINARY`, the npm package `ferrobase`, or `ferrobase` on PATH. */
  binary?: string;
  /** Further environment of the server. */
  env?: Record<string, string>;
}

export interface PersonOptions {
  /** Default: an address that nobody else has. */
  email?: string;
  password?: string;
  userMetadata?: Record<string, unknown>;
  /** Of `createClient`. */
  options?: SupabaseClientOptions<string>;
}

/** A running copy of a project. */
export interface Ferrobase {
  readonly url: string;
  readonly anonKey: string;
  readonly serviceRoleKey: string;
  readonly publishableKey: string;
  readonly secretKey: string;
  readonly jwtSecret: string;
  /** PostgreSQL as `postgres`. */
  readonly dbUrl: string;
  /** Page and JSON of the inbox. */
  readonly inboxUrl: string;
  /** Where the inbox takes mail by SMTP, on 127.0.0.1; not of builds without it. */
  readonly smtpPort?: number;
  /** What `ferrobase test` sets in the environment of its command. */
  readonly env: Record<string, string>;
  /** Takes database, files, jobs and inbox back to what a fresh copy has. */
  reset(): Promise<void>;
  /** The mails to a person, newest first. Waits until there are `count` (default 1), for `timeout` milliseconds at most (default 5000). */
  inbox(to: string, options?: { count?: number; timeout?: number }): Promise<Mail[]>;
  /** A supabase-js client that has not signed in, with `anonKey` unless another is named; needs `@supabase/supabase-js`. */
  client<Database = any>(options?: SupabaseClientOptions<string>, key?: string): SupabaseClient<Database>;
  /** A supabase-js client of a new person, signed in. */
  signedInClient<Database = any>(options?: PersonOptions): Promise<SupabaseClient<Database> & { user: User }>;
  /** Ends the server and removes the copy. It also ends with this process. */
  stop(): Promise<void>;
}

/** Serves a fresh copy of a project until it is stopped or this process ends. */
export function startFerrobase(options?: StartOptions): Promise<Ferrobase>;

/** The copy that the environment names, e.g. below `ferrobase test -- …`. Its `stop` does nothing. */
export function connectFerrobase(env?: Record<string, string | undefined>): Ferrobase;
