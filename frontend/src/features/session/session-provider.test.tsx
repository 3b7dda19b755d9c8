import { act, render, screen } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { queryClient } from "@/lib/query-client";
import { useSession } from "@/lib/session";
import { SessionProvider } from "./session-provider";

type Listener = (event: string, session: { user: { id: string; email: string } } | null) => void;
const server = vi.hoisted(() => ({
  tell: (() => undefined) as Listener,
  me: (() => Promise.resolve(null)) as () => Promise<unknown>,
  signOut: () => Promise.resolve({ error: null }),
  rpc: vi.fn<(name: string, input: object) => Promise<{ error: { code: string } | null }>>(),
}));
vi.mock("@/lib/supabase", () => {
  const client = {
    rpc: server.rpc,
    auth: {
      onAuthStateChange(listener: Listener) {
        server.tell = listener;
        return { data: { subscription: { unsubscribe: () => undefined } } };
      },
      getSession: () => Promise.resolve({ data: { session: { user: { id: "u1", email: "marie@test.example" } } } }),
      signOut: () => server.signOut(),
      admin: { signOut: () => Promise.resolve({ error: null }) },
    },
  };
  return {
    getSupabase: () => Promise.resolve(client),
    mayHaveSession: () => true,
    whenClient: (watcher: (made: typeof client) => void) => {
      watcher(client);
      return () => undefined;
    },
  };
});
vi.mock("./answers", () => ({ readMe: () => server.me(), claimRequests: () => Promise.resolve(0) }));

const marie = { user: { id: "u1", email: "marie@test.example" } };
const me = (full_name: string) => ({
  email: "marie@test.example",
  email_proved: true,
  role: "requester",
  nonprofit_role: null,
  profile: { full_name, phone: null, photo_path: null },
  selected_nonprofit: { id: "np-001", name: "Harbor Relief Fund" },
  organization: null,
});
const expired = Object.assign(new Error("JWT expired"), { code: "PGRST303" });

function Shown() {
  const { status, user, ended, refresh, signOut, selectedNonprofit } = useSession();
  return (
    <p>
      {status} {user?.fullName} {ended} {selectedNonprofit?.name ?? "none selected"}
      <button type="button" onClick={() => void refresh()}>
        Refresh
      </button>
      <button type="button" onClick={() => void signOut()}>
        Logout
      </button>
    </p>
  );
}
const shown = (words: string | RegExp) => screen.findByText(words);

beforeEach(() => {
  localStorage.clear();
  server.signOut = () => Promise.resolve({ error: null });
  server.rpc.mockReset().mockResolvedValue({ error: null });
});

it("loads the user and reloads on request", async () => {
  server.me = () => Promise.resolve(me("Marie"));
  render(<SessionProvider>{<Shown />}</SessionProvider>);
  expect(await shown(/^loading/)).toBeInTheDocument();
  act(() => server.tell("INITIAL_SESSION", marie));
  expect(await shown(/^signed-in Marie/)).toBeInTheDocument();
  server.me = () => Promise.resolve(me("Marie Désir"));
  act(() => screen.getByRole("button", { name: "Refresh" }).click());
  expect(await shown(/^signed-in Marie Désir/)).toBeInTheDocument();
  // a later failed read does not remove the page
  server.me = () => Promise.reject(new Error("no"));
  act(() => screen.getByRole("button", { name: "Refresh" }).click());
  expect(await shown(/^signed-in Marie Désir/)).toBeInTheDocument();
  act(() => server.tell("SIGNED_OUT", null));
  expect(await shown(/^signed-out expired|^signed-out +expired/)).toBeInTheDocument();
});

it("stays signed in after signing in again following a rejected session", async () => {
  server.me = () => Promise.reject(expired);
  server.signOut = () => {
    server.tell("SIGNED_OUT", null);
    return Promise.resolve({ error: null });
  };
  render(<SessionProvider>{<Shown />}</SessionProvider>);
  act(() => server.tell("INITIAL_SESSION", marie));
  expect(await shown(/^signed-out/)).toBeInTheDocument();
  server.me = () => Promise.resolve(me("Marie"));
  act(() => server.tell("SIGNED_IN", marie));
  expect(await shown(/^signed-in Marie/)).toBeInTheDocument();
});

it("reports when the user cannot be loaded", async () => {
  server.me = () => Promise.reject(new Error("no"));
  render(<SessionProvider>{<Shown />}</SessionProvider>);
  act(() => server.tell("INITIAL_SESSION", { user: { id: "u2", email: "x@test.example" } }));
  expect(await shown(/^failed/)).toBeInTheDocument();
});

it("keeps the user across an offline reload and reloads when online", async () => {
  sessionStorage.clear();
  server.me = () => Promise.resolve(me("Marie"));
  localStorage.setItem("aidbridge-auth", JSON.stringify({ user: { ...marie.user, id: "u7" } }));
  const first = render(<SessionProvider>{<Shown />}</SessionProvider>);
  act(() => server.tell("INITIAL_SESSION", { user: { ...marie.user, id: "u7" } }));
  expect(await shown(/^signed-in Marie/)).toBeInTheDocument();
  first.unmount();

  queryClient.clear();
  const line = vi.spyOn(navigator, "onLine", "get").mockReturnValue(false);
  server.me = () => Promise.reject(new TypeError("Failed to fetch"));
  render(<SessionProvider>{<Shown />}</SessionProvider>);
  expect(await shown(/^signed-in Marie/)).toBeInTheDocument();
  // supabase-js could not renew the session
  act(() => server.tell("INITIAL_SESSION", null));
  expect(await shown(/^signed-in Marie/)).toBeInTheDocument();

  line.mockReturnValue(true);
  server.me = () => Promise.resolve(me("Marie Désir"));
  act(() => void window.dispatchEvent(new Event("online")));
  expect(await shown(/^signed-in Marie Désir/)).toBeInTheDocument();
  // once the session is known to be over, the tab's copy is deleted
  act(() => server.tell("SIGNED_OUT", null));
  expect(await shown(/^signed-out +expired/)).toBeInTheDocument();
  expect(sessionStorage).toHaveLength(0);
});

it("deletes what the person typed in this tab at 'Logout', but not when the session expires", async () => {
  sessionStorage.clear();
  const own = ["kept-form:donor-message:np-001:u1", "aidbridge-request:u1:new"];
  const others = ["kept-form:donor-message:np-001:u2"];
  for (const name of [...own, ...others]) sessionStorage.setItem(name, "{}");
  const typed = () => Object.keys(sessionStorage).filter((name) => !name.startsWith("aidbridge-me:"));
  server.me = () => Promise.resolve(me("Marie"));
  server.signOut = () => {
    server.tell("SIGNED_OUT", null);
    return Promise.resolve({ error: null });
  };
  render(<SessionProvider>{<Shown />}</SessionProvider>);
  act(() => server.tell("INITIAL_SESSION", marie));
  expect(await shown(/^signed-in Marie/)).toBeInTheDocument();
  act(() => server.tell("SIGNED_OUT", null));
  expect(await shown(/^signed-out +expired/)).toBeInTheDocument();
  expect(typed().toSorted()).toEqual([...own, ...others].toSorted());

  act(() => server.tell("SIGNED_IN", marie));
  expect(await shown(/^signed-in Marie/)).toBeInTheDocument();
  act(() => screen.getByRole("button", { name: "Logout" }).click());
  expect(await shown(/^signed-out +choice/)).toBeInTheDocument();
  expect(typed()).toEqual(others);
});

const without = (full_name: string) => ({ ...me(full_name), selected_nonprofit: null });
const stored = () => JSON.parse(localStorage.getItem("selectedNonprofit") ?? "null") as unknown;

it("uses the account's nonprofit alone: not the last person's, nor one that has closed", async () => {
  server.me = () => Promise.resolve(me("Marie"));
  render(<SessionProvider>{<Shown />}</SessionProvider>);
  act(() => server.tell("INITIAL_SESSION", marie));
  expect(await shown(/^signed-in Marie +Harbor Relief Fund/)).toBeInTheDocument();
  expect(stored()).toEqual({ id: "np-001", name: "Harbor Relief Fund", of: "u1" });
  // it has closed meanwhile
  server.me = () => Promise.resolve(without("Marie"));
  act(() => screen.getByRole("button", { name: "Refresh" }).click());
  expect(await shown(/^signed-in Marie +none selected/)).toBeInTheDocument();
  expect(stored()).toBeNull();
  server.me = () => Promise.resolve(me("Marie"));
  act(() => screen.getByRole("button", { name: "Refresh" }).click());
  expect(await shown(/^signed-in Marie +Harbor Relief Fund/)).toBeInTheDocument();
  // her session expires, and somebody else signs in
  act(() => server.tell("SIGNED_OUT", null));
  expect(await shown(/^signed-out +expired none selected/)).toBeInTheDocument();
  server.me = () => Promise.resolve(without("Jean"));
  act(() => server.tell("SIGNED_IN", { user: { id: "u9", email: "jean@test.example" } }));
  expect(await shown(/^signed-in Jean +none selected/)).toBeInTheDocument();
  expect(server.rpc).not.toHaveBeenCalled();
});

it("gives an account without a nonprofit the one chosen here before signing in, once", async () => {
  localStorage.setItem("selectedNonprofit", JSON.stringify({ id: "np-002", name: "Open Table", of: null }));
  server.me = () => Promise.resolve(without("Marie"));
  render(<SessionProvider>{<Shown />}</SessionProvider>);
  act(() => server.tell("INITIAL_SESSION", { user: { ...marie.user, id: "u10" } }));
  expect(await shown(/^signed-in Marie +Open Table/)).toBeInTheDocument();
  expect(server.rpc.mock.calls).toEqual([["select_nonprofit", { nonprofit_id: "np-002" }]]);
  act(() => server.tell("SIGNED_OUT", null));
  server.rpc.mockClear();
  act(() => server.tell("SIGNED_IN", { user: { id: "u11", email: "jean@test.example" } }));
  expect(await shown(/^signed-in Marie +none selected/)).toBeInTheDocument();
  expect(server.rpc).not.toHaveBeenCalled();
});
