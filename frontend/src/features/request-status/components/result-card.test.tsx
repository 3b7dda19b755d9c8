import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import type { FoundStatus } from "../api";
import { ResultCard, stepsOf } from "./result-card";

/** A Monday after the Friday on which the request came. */
const NOW = new Date("2026-11-23T12:00:00Z");
const found: FoundStatus = {
  request_number: "REQ-042",
  status: "pending",
  needs_more_proof: false,
  submitted_at: "2026-11-20T15:00:00Z",
  review_started_at: null,
  decided_at: null,
  awarded: null,
  reason: null,
};
const decided_at = "2026-11-20T16:00:00Z";

it.each<[Partial<FoundStatus>, string]>([
  [{}, "It has arrived. Nobody has opened it yet."],
  [{ review_started_at: "2026-11-20T16:00:00Z" }, "It was opened and waits for an answer."],
  [{ status: "in_review" }, "A nonprofit has opened it and reads it."],
  [{ needs_more_proof: true }, "It waits for you. A nonprofit needs something more from you."],
  [{ status: "processing" }, "It was read. The decision is being made."],
  [{ status: "approved", awarded: 100 }, "$100 awarded"],
  [{ status: "declined", reason: "Funding limit reached" }, "Reason: Funding limit reached"],
  [{ status: "withdrawn" }, "It was taken back."],
])("%o says who is to act", (change, words) => {
  render(<ResultCard found={{ ...found, ...change }} />);
  expect(screen.getByText(words)).toBeInTheDocument();
});

it.each<[Partial<FoundStatus>, string]>([
  [{}, "by Friday, November 27"],
  [{ status: "in_review" }, "by Friday, November 27"],
  [{ needs_more_proof: true }, "Usually 5–7 days after you send what is missing."],
  [{ status: "processing" }, "by Friday, November 27"],
  [{ status: "approved", awarded: 100, decided_at }, "No word by Friday, November 27? Then ask them."],
  [{ status: "declined", decided_at }, "You can send a new request at any time."],
  [{ status: "withdrawn", decided_at }, "You can send a new request at any time."],
])("%o says what comes next, and by when", (change, words) => {
  const steps = stepsOf({ ...found, ...change }, NOW);
  expect(steps.map(({ body }) => body).join(" ")).toContain(words);
});

it("does not ask a user without an account to sign in", () => {
  const bodies = stepsOf({ ...found, status: "declined", decided_at }, NOW).map(({ body }) => body);
  expect(bodies.join(" ")).not.toMatch(/sign in/i);
});

it("shows no date that has passed", () => {
  const late = stepsOf(found, new Date(2026, 10, 29)).map(({ body }) => body);
  expect(late[1]).toBe("It takes longer than usual. The first answer was due by Friday, November 27.");
  expect(late[2]).toBe("Most people have one after 5–7 days.");
});
