import { describe, expect, it } from "vitest";
import { decisionState, reviewState, timelineOf } from "./timeline";

const request = {
  status: "pending",
  needs_more_proof: false,
  submitted_at: "2026-11-20T15:00:00Z",
  review_started_at: null,
  decided_at: null,
  amount_approved: null,
} as const;

describe("the timeline (section 4)", () => {
  it.each([
    ["draft", "upcoming", "upcoming"],
    ["pending", "current", "upcoming"],
    ["processing", "complete", "upcoming"],
    ["approved", "complete", "complete"],
    ["declined", "complete", "complete"],
    ["withdrawn", "upcoming", "upcoming"],
  ] as const)("%s: review %s, decision %s", (status, review, decision) => {
    expect(reviewState(status)).toBe(review);
    expect(decisionState(status)).toBe(decision);
  });

  it("always begins with the submission", () => {
    for (const status of ["pending", "processing", "approved", "declined", "withdrawn"] as const) {
      expect(timelineOf({ ...request, status })[0]).toMatchObject({ title: "Request Submitted", state: "complete" });
    }
  });

  it("says by when the first answer comes: five business days on", () => {
    expect(timelineOf(request)[1]?.body).toContain("Friday, November 27");
  });

  it("says that the turn is the reader's when proof is missing", () => {
    const steps = timelineOf({ ...request, needs_more_proof: true, review_started_at: "2026-11-21T10:00:00Z" });
    expect(steps[1]?.body).toContain("needs something more from you");
  });

  it("ends with the withdrawal, without review or decision", () => {
    const titles = timelineOf({ ...request, status: "withdrawn", decided_at: "2026-11-21T10:00:00Z" }).map(
      ({ title }) => title,
    );
    expect(titles).toEqual(["Request Submitted", "Withdrawn"]);
  });

  it("names the approved amount", () => {
    expect(timelineOf({ ...request, status: "approved", amount_approved: 1250 })[2]?.body).toContain("$1,250");
  });
});
