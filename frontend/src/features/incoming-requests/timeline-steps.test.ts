import { describe, expect, it } from "vitest";
import { timelineSteps } from "./timeline-steps";
import type { RequestRow, TimelineEvent } from "./types";

const request = {
  id: "r1",
  request_number: "REQ-001",
  status: "pending",
  submitted_at: "2026-11-17T12:00:00Z",
  decided_at: null,
} as RequestRow;

const event = (type: TimelineEvent["type"], created_at: string, more: Partial<TimelineEvent> = {}): TimelineEvent => ({
  type,
  created_at,
  actor: "nonprofit",
  nonprofit_name: "Harbor Relief Fund",
  staff_name: null,
  note: null,
  amount: null,
  ...more,
});

describe("the timeline of a request, seen by staff", () => {
  it.each([
    ["pending", ["complete", "current", "upcoming"]],
    ["processing", ["complete", "complete", "current"]],
    ["approved", ["complete", "complete", "complete"]],
    ["declined", ["complete", "complete", "complete"]],
    ["withdrawn", ["complete", "complete", "complete"]],
  ] as const)("of a %s request stands at %j", (status, states) => {
    expect(timelineSteps({ request: { ...request, status }, timeline: [] }).map((step) => step.state)).toEqual(states);
  });

  it("says who opened the request and when a decision is due", () => {
    const opened = [event("opened", "2026-11-18T12:00:00Z", { staff_name: "Ruth Okonkwo" })];
    const steps = timelineSteps({ request, timeline: opened }, new Date("2026-11-20T12:00:00Z"));
    expect(steps[1]?.when).toBe("Opened by Ruth Okonkwo, Nov 18, 2026");
    expect(steps[2]?.body).toBe("Promised within 5–7 days: by Nov 24, 2026.");
    const late = timelineSteps({ request, timeline: opened }, new Date("2026-11-25T12:00:00Z"));
    expect(late[2]?.body).toBe("It was promised by Nov 24, 2026.");
  });

  it("shows an answer only if it came after the last question", () => {
    const asked = event("info_requested", "2026-11-18T12:00:00Z");
    const answered = event("info_answered", "2026-11-19T12:00:00Z", { actor: "requester" });
    const again = event("info_requested", "2026-11-20T12:00:00Z");
    expect(timelineSteps({ request, timeline: [asked, answered] })[1]?.body).toContain("Answer came, Nov 19, 2026");
    expect(timelineSteps({ request, timeline: [asked, answered, again] })[1]?.body).toBe(
      "More information asked, Nov 20, 2026",
    );
  });

  it("lists payouts under the decision", () => {
    const steps = timelineSteps({
      request: { ...request, status: "approved", decided_at: "2026-11-20T12:00:00Z" },
      timeline: [
        event("paid", "2026-11-21T12:00:00Z", { amount: 40 }),
        event("paid", "2026-11-22T12:00:00Z", { amount: 60.5 }),
      ],
    });
    expect(steps[2]).toMatchObject({
      when: "Approved, Nov 20, 2026",
      body: "$40 paid, Nov 21, 2026 · $60.50 paid, Nov 22, 2026",
    });
  });
});
