// Copies of a Supabase project for tests: each with its own database, files and inbox, on free ports, gone with the process.
"use strict";
const { spawn } = require("node:child_process");
const { randomUUID } = require("node:crypto");

const PREFIXES = ["VITE_", "NEXT_PUBLIC_", "PUBLIC_", "EXPO_PUBLIC_"];

/** Program and first arguments of `ferrobase`: what was named, else the package beside this one, else the one on PATH. */
function commandOf(named) {
  const binary = named ?? process.env.FERROBASE_BINARY;
  if (binary) return [binary];
  try {
    return [process.execPath, require.resolve("ferrobase/ferrobase.mjs")];
  } catch {
    return ["ferrobase"];
  }
}

/** Serves a fresh copy of the project in `project` (a folder with `supabase/`; default: the current one). */
async function startFerrobase({ project = process.cwd(), binary, env = {} } = {}) {
  const [program, ...first] = commandOf(binary);
  const args = [...first, "start", "--ephemeral", "--output", "json", "--until-eof"];
  const { FERROBASE_BINARY: _, ...inherited } = process.env;
  // The pipe ends with this process however that ends, and the copy ends with the pipe.
  const child = spawn(program, args, { cwd: project, env: { ...inherited, ...env }, stdio: ["pipe", "pipe", "pipe"] });
  const ended = new Promise((resolve) => {
    child.once("close", resolve);
    child.once("error", resolve);
  });
  const status = await new Promise((resolve, reject) => {
    let printed = "";
    let told = "";
    child.stderr.setEncoding("utf8").on("data", (text) => {
      told += text;
    });
    child.stdout.setEncoding("utf8").on("data", (text) => {
      printed += text;
      if (printed.endsWith("}\n")) resolve(JSON.parse(printed));
    });
    child.once("error", (error) => reject(new Error(`${program} cannot be run: ${error.message}`)));
    // After the last of what it says.
    child.once("close", (code) => reject(new Error(told.trim().split("\n").at(-1) || `ferrobase ended (${code})`)));
  });
  // A test runner that is done does not wait for the copy.
  for (const handle of [child, child.stdin, child.stdout, child.stderr]) handle.unref();
  return new Ferrobase({
    url: status.API_URL,
    anonKey: status.ANON_KEY,
    serviceRoleKey: status.SERVICE_ROLE_KEY,
    publishableKey: status.PUBLISHABLE_KEY,
    secretKey: status.SECRET_KEY,
    jwtSecret: status.JWT_SECRET,
    dbUrl: status.DB_URL,
    inboxUrl: status.MAILPIT_URL,
    smtpPort: Number(status.MAILPIT_SMTP_PORT) || undefined,
  }, async () => {
    for (const handle of [child, child.stdin, child.stdout, child.stderr]) handle.ref();
    child.stdin.end();
    await ended;
  });
}

/** The copy that the environment names: below `ferrobase test -- …`, or in the workers of a runner that set `copy.env`. */
function connectFerrobase(env = process.env) {
  const required = (name) => {
    if (!env[name]) throw new Error(`${name} is not set: run the tests below 'ferrobase test --', or set the env of startFerrobase()`);
    return env[name];
  };
  return new Ferrobase({
    url: required("SUPABASE_URL"),
    anonKey: required("SUPABASE_ANON_KEY"),
    serviceRoleKey: required("SUPABASE_SERVICE_ROLE_KEY"),
    publishableKey: required("SUPABASE_PUBLISHABLE_KEY"),
    secretKey: required("SUPABASE_SECRET_KEY"),
    jwtSecret: required("SUPABASE_JWT_SECRET"),
    dbUrl: required("SUPABASE_DB_URL"),
    inboxUrl: required("MAILPIT_URL"),
    smtpPort: Number(env.MAILPIT_SMTP_PORT) || undefined,
  }, async () => {});
}

class Ferrobase {
  #stop;

  constructor(values, stop) {
    Object.assign(this, values);
    this.#stop = stop;
  }

  /** What `ferrobase test` sets, e.g. for `Object.assign(process.env, copy.env)`. */
  get env() {
    const open = {
      SUPABASE_URL: this.url,
      SUPABASE_ANON_KEY: this.anonKey,
      SUPABASE_PUBLISHABLE_KEY: this.publishableKey,
    };
    const all = {
      ...open,
      SUPABASE_SERVICE_ROLE_KEY: this.serviceRoleKey,
      SUPABASE_SECRET_KEY: this.secretKey,
      SUPABASE_JWT_SECRET: this.jwtSecret,
      SUPABASE_DB_URL: this.dbUrl,
      MAILPIT_URL: this.inboxUrl,
      INBUCKET_URL: this.inboxUrl,
      ...(this.smtpPort ? { MAILPIT_SMTP_PORT: String(this.smtpPort) } : {}),
    };
    for (const prefix of PREFIXES) {
      for (const [name, value] of Object.entries(open)) all[prefix + name] = value;
    }
    return all;
  }

  /** Takes database, files, jobs and inbox back to what a fresh copy has. */
  async reset() {
    const answer = await fetch(`${this.url}/ferrobase/v1/reset`, { method: "POST", headers: { apikey: this.serviceRoleKey } });
    if (!answer.ok) throw new Error(`the reset failed (${answer.status}): ${await answer.text()}`);
  }

  /** The mails to a person, newest first. Waits until there are `count`, for `timeout` milliseconds at most. */
  async inbox(to, { count = 1, timeout = 5000 } = {}) {
    const until = Date.now() + timeout;
    for (;;) {
      const answer = await fetch(`${this.inboxUrl}/api/messages?to=${encodeURIComponent(to)}`);
      if (!answer.ok) throw new Error(`the inbox answers ${answer.status}`);
      const mails = await answer.json();
      if (mails.length >= count || Date.now() >= until) return mails.map(withCodes);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }

  /** A supabase-js client that has not signed in; of `key`, if it is named. */
  client(options, key = this.anonKey) {
    const { createClient } = require("@supabase/supabase-js");
    return createClient(this.url, key, {
      ...options,
      auth: { persistSession: false, autoRefreshToken: false, ...options?.auth },
      realtime: { ...(globalThis.WebSocket ? {} : { transport: transport() }), ...options?.realtime },
    });
  }

  /** A supabase-js client of a new person, signed in. */
  async signedInClient({ email, password = "secret-Words-1", userMetadata, options } = {}) {
    const address = email ?? `person-${randomUUID()}@example.com`;
    const made = await this.client(options, this.serviceRoleKey).auth.admin.createUser({
      email: address,
      password,
      email_confirm: true,
      user_metadata: userMetadata,
    });
    if (made.error) throw made.error;
    const client = this.client(options);
    const { data, error } = await client.auth.signInWithPassword({ email: address, password });
    if (error) throw error;
    return Object.assign(client, { user: data.user });
  }

  async stop() {
    await this.#stop();
  }
}

/** Node.js has sockets from 22 on; before, supabase-js refuses to be made without the package `ws` or another. */
function transport() {
  try {
    return require("ws");
  } catch {
    return class {
      constructor() {
        throw new Error("realtime needs Node.js 22 or the package ws");
      }
    };
  }
}

function withCodes(mail) {
  const links = [...mail.html.matchAll(/href="(https?:[^"]+)"/g)].map(([, link]) => link.replaceAll("&amp;", "&"));
  // Codes stand alone, in the text people read.
  const text = mail.text || mail.html.replace(/<[^>]*>/g, " ");
  const codes = text.match(/(?<![\w/=-])\d{6,10}(?![\w-])/g) ?? [];
  return { ...mail, links: [...new Set(links)], codes: [...new Set(codes)] };
}

module.exports = { startFerrobase, connectFerrobase };
