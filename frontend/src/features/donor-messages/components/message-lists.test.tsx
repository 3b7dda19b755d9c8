import { screen, waitFor } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { renderScreen } from "@/testing/render";
import { Sent } from "./message-lists";

/** A server that mails 2,000 more per call, and stops at `limit`, as at the end of a day's. */
const server = vi.hoisted(() => ({ mailed: 100, limit: 5000, calls: 0, reads: 0 }));
vi.mock("@/lib/supabase", () => {
  const row = () => {
    server.reads += 1;
    return message();
  };
  const message = () => ({
    id: "m-1",
    subject: "Winter pantry",
    message: "It opens on Monday.",
    recipient_count: 5000,
    mailed_count: server.mailed,
    created_at: "2026-11-24T09:00:00Z",
  });
  const query = {
    eq: () => query,
    order: () => query,
    range: () => Promise.resolve({ data: [row()], error: null, count: 1 }),
  };
  const rpc = (name: string) => {
    expect(name).toBe("continue_donor_message");
    server.calls += 1;
    server.mailed = Math.min(server.limit, server.mailed + 2000);
    return Promise.resolve({ data: { id: "m-1", recipients: 5000, mailed: server.mailed }, error: null });
  };
  return { getSupabase: () => Promise.resolve({ from: () => ({ select: () => query }), rpc }) };
});

beforeEach(() => Object.assign(server, { mailed: 100, limit: 5000, calls: 0, reads: 0 }));

const shown = () => renderScreen(<Sent nonprofitId="np-1" onCompose={() => undefined} />);

it("mails the rest of a message to 5,000 donors in batches and shows progress", async () => {
  shown();
  expect(await screen.findByText(/ of 5,000 mailed\./)).toBeInTheDocument();
  await waitFor(() => expect(screen.queryByText(/ of 5,000 mailed\./)).toBeNull());
  expect(server).toMatchObject({ mailed: 5000, calls: 3 });
});

it("stops when the day's mail quota is used up", async () => {
  server.limit = 2100;
  shown();
  expect(await screen.findByText(/2,100 of 5,000 mailed\./)).toBeInTheDocument();
  await waitFor(() => expect(server.calls).toBe(2));
  // the list was read after each, and the second one brought nothing new
  await waitFor(() => expect(server.reads).toBe(3));
  expect(server.calls).toBe(2);
});
