import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

type Handler = (payload: object) => void;
/** The client's channels as `follow` uses them. */
const made: { filters: { table: string; filter: string }[]; changed: Handler[]; system: Handler; status: Handler }[] =
  [];
const removed = vi.fn<() => void>();

vi.mock("./supabase", () => ({
  getSupabase: () =>
    Promise.resolve({
      realtime: { disconnect: () => Promise.resolve(), connect: () => undefined },
      removeChannel: removed,
      channel: () => {
        const it = {
          filters: [],
          changed: [],
          system: () => undefined,
          status: () => undefined,
        } as (typeof made)[number];
        made.push(it);
        const channel = {
          on(kind: string, filter: { table: string; filter: string }, handler: Handler) {
            if (kind === "system") it.system = handler;
            else {
              it.filters.push(filter);
              it.changed.push(handler);
            }
            return channel;
          },
          subscribe(handler: (status: string) => void) {
            it.status = handler as unknown as Handler;
            return channel;
          },
        };
        return channel;
      },
    }),
}));
const { follow, whileDown } = await import("./live");

const OK = { extension: "postgres_changes", status: "ok" };
const listeners: Record<string, () => void> = {};
let cache: QueryClient;
let read: string[][];
let stop: () => void;

beforeEach(async () => {
  vi.useFakeTimers();
  vi.stubGlobal("window", {
    addEventListener: (name: string, listener: () => void) => (listeners[name] = listener),
    removeEventListener: () => undefined,
  });
  made.length = 0;
  removed.mockClear();
  cache = new QueryClient();
  read = [];
  vi.spyOn(cache, "invalidateQueries").mockImplementation((filters) => {
    read.push([...(filters?.queryKey ?? [])] as string[]);
    return Promise.resolve();
  });
  stop = follow(cache, [
    { table: "notifications", filter: "user_id=eq.u1", keys: [["notifications"], ["my-requests"]] },
    { table: "requests", filter: "user_id=eq.u1", keys: [["my-requests"]] },
  ]);
  await vi.runAllTimersAsync();
});
afterEach(() => {
  stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settle = async () => {
  await vi.runAllTimersAsync();
  return read.splice(0);
};

it("reloads everything each time the channel connects and stops polling", async () => {
  expect(made[0]?.filters.map(({ table }) => table)).toEqual(["notifications", "requests"]);
  expect(whileDown()).toBe(30_000);
  made[0]?.system(OK);
  expect(await settle()).toEqual([["notifications"], ["my-requests"]]);
  expect(whileDown()).toBe(false);
  made[0]?.system(OK);
  expect(await settle()).toEqual([["notifications"], ["my-requests"]]);
});

it("reloads once for changes that arrive together", async () => {
  made[0]?.system(OK);
  await settle();
  made[0]?.changed[1]?.({});
  made[0]?.changed[1]?.({});
  made[0]?.changed[0]?.({});
  expect(await settle()).toEqual([["my-requests"], ["notifications"]]);
});

it.each([
  ["the socket is lost", () => made[0]?.status("CHANNEL_ERROR" as never)],
  ["the join is not answered", () => made[0]?.status("TIMED_OUT" as never)],
  ["the database cannot be followed", () => made[0]?.system({ ...OK, status: "error" })],
  ["the browser is offline", () => listeners.offline?.()],
])("asks by itself when %s, beginning now", async (_, lose) => {
  made[0]?.system(OK);
  await settle();
  lose();
  expect(whileDown()).toBe(30_000);
  expect(await settle()).toEqual([["notifications"], ["my-requests"]]);
});

it("opens a new socket when online again and ignores the old one", async () => {
  made[0]?.system(OK);
  await settle();
  listeners.offline?.();
  listeners.online?.();
  await settle();
  expect(made).toHaveLength(2);
  expect(removed).toHaveBeenCalledOnce();
  made[1]?.system(OK);
  expect(await settle()).toEqual([["notifications"], ["my-requests"]]);
  made[0]?.status("CLOSED" as never);
  expect(whileDown()).toBe(false);
});

it("gets no events after it was left", async () => {
  stop();
  expect(removed).toHaveBeenCalledOnce();
  made[0]?.system(OK);
  made[0]?.status("CLOSED" as never);
  expect(await settle()).toEqual([]);
});
