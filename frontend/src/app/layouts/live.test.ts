import { expect, it } from "vitest";
import { liveTables } from "./live";

const follows = (...who: Parameters<typeof liveTables>) =>
  liveTables(...who).map(({ table, filter }) => `${table} ${filter}`);

it("subscribes to a user's own rows", () => {
  expect(follows({ id: "u1", role: "requester" }, null)).toEqual([
    "notifications user_id=eq.u1",
    "requests user_id=eq.u1",
  ]);
  expect(follows({ id: "u1", role: "donor" }, null)).toEqual(["notifications user_id=eq.u1"]);
});

it("subscribes to an organization's rows for its members", () => {
  expect(follows({ id: "u1", role: "nonprofit" }, { id: "np-001" })).toEqual([
    "notifications user_id=eq.u1",
    "request_nonprofits nonprofit_id=eq.np-001",
    "donor_messages nonprofit_id=eq.np-001",
    "donor_message_replies nonprofit_id=eq.np-001",
  ]);
});
