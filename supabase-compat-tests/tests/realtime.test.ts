import { randomUUID } from "node:crypto";
import type { RealtimeChannel, SupabaseClient } from "@supabase/supabase-js";
import { afterEach, describe, expect, it } from "vitest";
import { anon, project, service, signedUp } from "./project.js";

const clients: SupabaseClient[] = [];

function kept(supabase: SupabaseClient): SupabaseClient {
  clients.push(supabase);
  return supabase;
}

afterEach(async () => {
  await Promise.all(clients.splice(0).map((supabase) => supabase.removeAllChannels()));
});

/** Subscribes and waits for the outcome. */
function subscribed(channel: RealtimeChannel): Promise<{ status: string; error?: Error }> {
  return new Promise((resolve) => {
    channel.subscribe((status, error) => resolve({ status, error }));
  });
}

async function joined(channel: RealtimeChannel): Promise<RealtimeChannel> {
  const { status, error } = await subscribed(channel);
  expect(error).toBeUndefined();
  expect(status).toBe("SUBSCRIBED");
  return channel;
}

/** What comes, in order; `next` waits for it. */
class Mailbox<T> {
  readonly all: T[] = [];
  private waiting: ((item: T) => void)[] = [];
  private unread: T[] = [];

  readonly put = (item: T) => {
    this.all.push(item);
    const waiter = this.waiting.shift();
    if (waiter) waiter(item);
    else this.unread.push(item);
  };

  next(): Promise<T> {
    const item = this.unread.shift();
    if (item !== undefined) return Promise.resolve(item);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("nothing came")), 20_000);
      this.waiting.push((value) => {
        clearTimeout(timer);
        resolve(value);
      });
    });
  }
}

const quiet = () => new Promise((resolve) => setTimeout(resolve, 500));
const room = () => `room-${randomUUID()}`;

describe("broadcast", () => {
  it("reaches the other clients, with self the sender too, and is acknowledged", async () => {
    const name = room();
    const [one, two] = [kept(anon()), kept(anon())];
    const heard = new Mailbox<{ event: string; payload?: unknown }>();
    const echoed = new Mailbox<{ event: string; payload?: unknown }>();
    await joined(two.channel(name).on("broadcast", { event: "*" }, (message) => heard.put(message)));
    const sender = one.channel(name, { config: { broadcast: { self: true, ack: true } } });
    await joined(sender.on("broadcast", { event: "wörd" }, (message) => echoed.put(message)));
    expect(await sender.send({ type: "broadcast", event: "wörd", payload: { a: "ü" } })).toBe("ok");
    expect(await heard.next()).toMatchObject({ event: "wörd", payload: { a: "ü" } });
    expect(await echoed.next()).toMatchObject({ payload: { a: "ü" } });
  });

  it("carries binary data", async () => {
    const name = room();
    const [one, two] = [kept(anon()), kept(anon())];
    const heard = new Mailbox<{ payload: ArrayBuffer }>();
    await joined(two.channel(name).on("broadcast", { event: "raw" }, (message) => heard.put(message as never)));
    const sender = await joined(one.channel(name));
    await sender.send({ type: "broadcast", event: "raw", payload: new Uint8Array([0, 255, 7]).buffer });
    expect(new Uint8Array((await heard.next()).payload)).toEqual(new Uint8Array([0, 255, 7]));
  });

  it("can be sent by HTTP before joining and at any time", async () => {
    const name = room();
    const heard = new Mailbox<{ event: string; payload?: unknown }>();
    await joined(kept(anon()).channel(name).on("broadcast", { event: "*" }, (message) => heard.put(message)));
    const sender = kept(anon()).channel(name);
    expect(await sender.send({ type: "broadcast", event: "early", payload: { n: 1 } })).toBe("ok");
    expect(await heard.next()).toMatchObject({ event: "early", payload: { n: 1 } });
    expect(await sender.httpSend("explicit", { n: 2 })).toEqual({ success: true });
    expect(await heard.next()).toMatchObject({ event: "explicit", payload: { n: 2 } });
  });

  it("can be sent by the database and is replayed on private channels", async () => {
    const { supabase, user } = await signedUp();
    kept(supabase);
    const name = `${user.id}:news`;
    const heard = new Mailbox<{ event: string; payload: { word: string } }>();
    await joined(
      supabase
        .channel(name, { config: { private: true } })
        .on("broadcast", { event: "announced" }, (message) => heard.put(message as never)),
    );
    // Broadcasts of the database flow once the stream is open.
    await expect
      .poll(
        async () => {
          await supabase.rpc("announce", { room: name, word: "hello" });
          await quiet();
          return heard.all.length;
        },
        { timeout: 15_000 },
      )
      .toBeGreaterThan(0);
    expect(await heard.next()).toMatchObject({ event: "announced", payload: { word: "hello" } });
    await supabase.removeAllChannels();
    const replayed = new Mailbox<{ meta?: { replayed?: boolean }; payload: { word: string } }>();
    await joined(
      supabase
        .channel(name, { config: { private: true, broadcast: { replay: { since: Date.now() - 60_000, limit: 1 } } } })
        .on("broadcast", { event: "announced" }, (message) => replayed.put(message as never)),
    );
    expect(await replayed.next()).toMatchObject({ meta: { replayed: true }, payload: { word: "hello" } });
  });
});

it("stores broadcasts only for a time that is allowed", async () => {
  const channel = await joined(kept(service()).channel(room(), { config: { private: true, broadcast: { ack: true } } }));
  const send = (persist: boolean | { ttl: number }) => channel.send({ type: "broadcast", event: "e", payload: { n: 1 }, persist });
  expect(await send({ ttl: 60 })).toBe("ok");
  expect(await send({ ttl: -1 })).toBe("invalid_persist_ttl");
  expect(await channel.httpSend("e", { n: 2 }, { persist: true })).toEqual({ success: true });
});

describe("private channels", () => {
  it("admit only clients that the policies allow", async () => {
    const alice = await signedUp("alice");
    const bob = await signedUp("bob");
    kept(alice.supabase);
    kept(bob.supabase);
    const name = `${alice.user.id}:diary`;
    const heard = new Mailbox<unknown>();
    const own = alice.supabase.channel(name, { config: { private: true, broadcast: { self: true } } });
    await joined(own.on("broadcast", { event: "*" }, heard.put));
    const refused = await subscribed(bob.supabase.channel(name, { config: { private: true } }));
    expect(refused.status).toBe("CHANNEL_ERROR");
    expect(refused.error?.message).toContain(`You do not have permissions to read from this Channel topic: ${name}`);
    // The public channel of the same name is another.
    const forged = await joined(kept(anon()).channel(name));
    await forged.send({ type: "broadcast", event: "forged", payload: {} });
    await quiet();
    expect(heard.all).toEqual([]);
    await own.send({ type: "broadcast", event: "mine", payload: {} });
    expect(await heard.next()).toMatchObject({ event: "mine" });
  });
});

describe("presence", () => {
  it("shows who is present per tab and who has left", async () => {
    const name = room();
    const [watcher, tab] = [kept(anon()), kept(anon())];
    const joins = new Mailbox<{ key: string; newPresences: { page?: string }[] }>();
    const leaves = new Mailbox<{ key: string }>();
    const watching = watcher.channel(name);
    watching.on("presence", { event: "join" }, (message) => joins.put(message as never));
    watching.on("presence", { event: "leave" }, (message) => leaves.put(message as never));
    await joined(watching);
    const tracked = await joined(tab.channel(name, { config: { presence: { key: "ann" } } }));
    expect(await tracked.track({ page: "a" })).toBe("ok");
    expect(await joins.next()).toMatchObject({ key: "ann", newPresences: [{ page: "a" }] });
    expect(watching.presenceState()).toMatchObject({ ann: [{ page: "a" }] });
    await tab.removeAllChannels();
    expect(await leaves.next()).toMatchObject({ key: "ann" });
    expect(watching.presenceState()).toEqual({});
  });
});

describe("changes", () => {
  it("are sent only to the rows' owner, filtered and converted", async () => {
    const alice = await signedUp("alice");
    const bob = await signedUp("bob");
    kept(alice.supabase);
    kept(bob.supabase);
    const [mine, other] = [room(), room()];
    type Change = { eventType: string; new: Record<string, unknown>; old: Record<string, unknown>; errors: unknown };
    const [heard, bobs] = [new Mailbox<Change>(), new Mailbox<Change>()];
    const all = { event: "*", schema: "public", table: "live_notes" } as const;
    await joined(alice.supabase.channel("notes").on("postgres_changes", { ...all, filter: `room=eq.${mine}` }, heard.put as never));
    await joined(bob.supabase.channel("notes").on("postgres_changes", all, bobs.put as never));

    const notes = alice.supabase.from("live_notes");
    // Subscribed means subscribed: nothing after it is missed.
    await notes.insert({ room: other, body: "filtered" }).throwOnError();
    const { data: row } = await notes.insert({ room: mine, body: "hello", labels: ["a,b", "c"] }).select().single().throwOnError();
    expect(await heard.next()).toMatchObject({ eventType: "INSERT", new: row, old: {}, errors: null });
    await notes.update({ body: "bye" }).eq("id", row.id).throwOnError();
    expect(await heard.next()).toMatchObject({ eventType: "UPDATE", new: { ...row, body: "bye" }, old: { id: row.id } });
    await bob.supabase.from("live_notes").insert({ room: mine, body: "of bob" }).throwOnError();
    expect(await bobs.next()).toMatchObject({ eventType: "INSERT", new: { body: "of bob" } });
    await quiet();
    expect(heard.all).toHaveLength(2);
    expect(bobs.all).toHaveLength(1);
  });

  it("support several bindings per channel and report an unpublished table", async () => {
    const { supabase } = await signedUp();
    kept(supabase);
    const name = room();
    const [inserts, deletes, system] = [new Mailbox<unknown>(), new Mailbox<{ old: unknown }>(), new Mailbox<{ status: string }>()];
    const table = { schema: "public", table: "live_notes" } as const;
    await joined(
      supabase
        .channel("several")
        .on("postgres_changes", { event: "INSERT", ...table, filter: `room=eq.${name}` }, inserts.put)
        .on("postgres_changes", { event: "DELETE", ...table }, deletes.put as never),
    );
    const { data: row } = await supabase.from("live_notes").insert({ room: name, body: "x" }).select().single().throwOnError();
    await inserts.next();
    await supabase.from("live_notes").delete().eq("id", row.id).throwOnError();
    expect(await deletes.next()).toMatchObject({ old: { id: row.id } });
    const missing = supabase.channel("missing").on("postgres_changes", { event: "*", schema: "public", table: "no_such" }, () => {});
    await joined(missing.on("system", {}, system.put as never));
    expect(await system.next()).toMatchObject({ status: "error", extension: "postgres_changes" });
  });

  it("make a join fail that waits for them", async () => {
    const config = { postgres_changes_options: { wait: true, timeout: 10_000 } };
    const waiting = (name: string, table: string) =>
      kept(anon()).channel(name, { config }).on("postgres_changes", { event: "*", schema: "public", table }, () => {});
    await joined(waiting("waiting", "live_notes"));
    const { status, error } = await subscribed(waiting("missing", "no_such"));
    expect(status).toBe("CHANNEL_ERROR");
    expect(error?.message).toMatch(/RealtimeDisabledForConfiguration: Unable to subscribe to changes/);
  });
});

it("rejects an invalid key", async () => {
  const answer = await fetch(`${project.url}/realtime/v1/websocket?apikey=none&vsn=2.0.0`);
  expect(answer.status).toBe(401);
  expect((await service().from("live_notes").select("id").limit(1)).error).toBeNull();
});
