/** A project of this folder, started as a developer starts it: by the CLI's `start` in a copy of it, at free ports. */
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import { afterAll, beforeAll } from "vitest";
import WebSocket from "ws";

const run = promisify(execFile);

/** `ferrobase`, or another program with the same commands: `PROJECT_CLI="npx supabase"`. */
const [cli = "", ...first] = (process.env.PROJECT_CLI ?? resolve(import.meta.dirname, "../../target/debug/ferrobase")).split(" ");

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, () => {
      const server = createServer();
      return new Promise<typeof server>((done, fail) => server.once("error", fail).listen(0, "127.0.0.1", () => done(server)));
    }),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

export class Started {
  folder = "";
  status: Record<string, string> = {};
  private env: NodeJS.ProcessEnv = {};

  /** Runs a command in the project's folder; returns its output. */
  async command(...args: string[]): Promise<string> {
    const { stdout } = await run(cli, [...first, ...args], { cwd: this.folder, env: this.env, maxBuffer: 1 << 24 });
    return stdout;
  }

  async open(name: string): Promise<void> {
    this.folder = await mkdtemp(join(tmpdir(), `compat-${name}-`));
    await cp(resolve(import.meta.dirname, name), this.folder, { recursive: true });
    const [api, database, shadow, inbox] = await freePorts(4);
    // Variables win over config.toml, here as with the CLI.
    this.env = {
      PATH: process.env.PATH, HOME: process.env.HOME,
      SUPABASE_API_PORT: String(api), SUPABASE_DB_PORT: String(database), SUPABASE_DB_SHADOW_PORT: String(shadow),
      SUPABASE_LOCAL_SMTP_PORT: String(inbox),
    };
    await this.command("start");
    this.status = JSON.parse(await this.command("status", "-o", "json")) as Record<string, string>;
  }

  async close(): Promise<void> {
    if (!this.folder) return;
    await this.command("stop", "--no-backup").catch((error: Error) => console.error(error));
    await rm(this.folder, { recursive: true, force: true });
  }

  url(name = "API_URL"): string {
    return this.status[name] ?? "";
  }

  client(key = this.status.PUBLISHABLE_KEY ?? ""): SupabaseClient {
    return createClient(this.url(), key, {
      auth: { persistSession: false, autoRefreshToken: false }, realtime: { transport: WebSocket as never },
    });
  }

  service(): SupabaseClient {
    return this.client(this.status.SECRET_KEY);
  }

  /** Somebody with a session, by a password of the seed. */
  async signedIn(email: string, password: string): Promise<SupabaseClient> {
    const client = this.client();
    const { error } = await client.auth.signInWithPassword({ email, password });
    if (error) throw error;
    return client;
  }
}

/** The project of the folder `name`, for all tests of a file. */
export function project(name: string): Started {
  const started = new Started();
  beforeAll(() => started.open(name), 120_000);
  afterAll(() => started.close(), 60_000);
  return started;
}

/** Waits until `look` finds something. */
export async function found<T>(what: string, look: () => Promise<T | undefined | null | false>): Promise<T> {
  const end = Date.now() + 30_000;
  for (;;) {
    const value = await look();
    if (value) return value;
    if (Date.now() > end) throw new Error(`${what} did not come`);
    await new Promise((done) => setTimeout(done, 100));
  }
}
