import { describe, expect, it } from "vitest";
import { decisionState, reviewState, timelineOf } from "./timeline";

/** A Monday after the Friday on which the request came. */
const NOW = new Date("2026-11-23T12:00:00Z");

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

  it("says that a nonprofit reads it only once one has opened it", () => {
    expect(timelineOf(request, NOW)[1]?.body).toMatch(/^The nonprofits have it\./);
    expect(timelineOf({ ...request, review_started_at: "2026-11-21T10:00:00Z" }, NOW)[1]?.body).toMatch(
      /^A nonprofit has opened it and reads it now\./,
    );
  });

  it("says when the first answer is due: after five business days", () => {
    for (const review_started_at of [null, "2026-11-21T10:00:00Z"])
      expect(timelineOf({ ...request, review_started_at }, NOW)[1]?.body).toContain("by Friday, November 27");
  });

  it("says when most requests are decided until that day is over", () => {
    for (const status of ["pending", "processing"] as const) {
      expect(timelineOf({ ...request, status }, NOW)[2]?.body).toContain("by Friday, November 27");
      expect(timelineOf({ ...request, status }, new Date("2026-11-29T12:00:00Z"))[2]?.body).not.toContain("November");
    }
  });

  it("says that it takes longer from the day after the due date", () => {
    const late = "It takes longer than usual: the first answer was due by Friday, November 27.";
    expect(timelineOf(request, new Date(2026, 10, 27, 23, 59))[1]?.body).not.toContain(late);
    expect(timelineOf(request, new Date(2026, 10, 28, 0, 1))[1]?.body).toContain(late);
  });

  it("says after an approval when to ask and after a refusal what to do next", () => {
    const decided_at = "2026-11-20T15:00:00Z";
    expect(timelineOf({ ...request, status: "approved", decided_at, amount_approved: 5 }, NOW)[2]?.body).toContain(
      "No word by Friday, November 27? Then ask them.",
    );
    expect(timelineOf({ ...request, status: "declined", decided_at }, NOW)[2]?.body).toContain("today");
  });

  it("says that the requester has to act when proof is missing", () => {
    const steps = timelineOf({ ...request, needs_more_proof: true, review_started_at: "2026-11-21T10:00:00Z" }, NOW);
    expect(steps[1]?.body).toContain("needs something more from you");
    expect(steps[2]?.body).toContain("after you send what is missing");
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
