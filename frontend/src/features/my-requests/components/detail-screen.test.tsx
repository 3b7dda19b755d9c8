import { screen, waitFor, within } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { rpc } from "@/lib/rpc";
import { renderScreen } from "@/testing/render";
import type { RequestDetail } from "../api";
import { Detail } from "./detail-screen";

vi.mock("@/lib/rpc", async (actual) => ({ ...(await actual<object>()), rpc: vi.fn() }));

const nothing = { add_documents: false, cancel: false, correct: false, edit: false, resubmit: false };
const detail = (request: object) =>
  ({
    request: {
      id: "r-1",
      request_number: "REQ-042",
      category: "Food Assistance",
      status: "pending",
      needs_more_proof: false,
      description: "We need food until my new job starts.",
      submitted_at: "2026-11-20T15:00:00Z",
      review_started_at: "2026-11-20T16:00:00Z",
      decided_at: "2026-11-20T17:00:00Z",
      amount_requested: 250,
      amount_approved: null,
      denial_reason: null,
      first_name: "Marie",
      last_name: "Désir",
      email: "marie@mail.example",
      phone: "2075550100",
      sms_consent: false,
      address: "18 Main Street",
      city: "Portland",
      state: "ME",
      postal_code: "04101",
      ...request,
    },
    documents: [],
    nonprofits: [],
    timeline: [],
    can: nothing,
  }) as unknown as RequestDetail;

it("says why a request was declined and suggests two next steps", () => {
  renderScreen(
    <Detail detail={detail({ status: "declined", denial_reason: "Our funds are used up until January." })} />,
  );
  expect(screen.getByText("Our funds are used up until January.")).toBeInTheDocument();
  expect(screen.getByRole("heading", { name: "What you can do now" })).toBeInTheDocument();
  expect(screen.getByRole("link", { name: "Ask other nonprofits with a new request" })).toHaveAttribute(
    "href",
    "/request-submission",
  );
  expect(screen.getByRole("link", { name: "Read how to write a request that gets a quick answer" })).toHaveAttribute(
    "href",
    "/blog/1",
  );
});

it("says what happens after an approval without the suggestions for a refusal", () => {
  renderScreen(<Detail detail={detail({ status: "approved", amount_approved: 250 })} />);
  expect(screen.getByText("The nonprofit writes to you about how the money reaches you.")).toBeInTheDocument();
  expect(screen.queryByRole("heading", { name: "What you can do now" })).toBeNull();
});

it.each([
  ["– Your rent contract.\n– Your last pay slip.", "Harbor Relief Fund asks for:", 2, null],
  ["– Your rent contract.\n\nA photo is fine.\n– Ann", "Harbor Relief Fund asks for:", 1, /^A photo is fine\.\s– Ann$/],
  ["The letter, please.", "Harbor Relief Fund writes: “The letter, please.”", 0, null],
])("says who asks, and for what: %j", (pending_notes, who, items, notes) => {
  const shown = detail({ needs_more_proof: true, claimed_by: "np-1", pending_notes });
  shown.can = { ...shown.can, add_documents: true };
  shown.nonprofits = [{ id: "np-1", name: "Harbor Relief Fund" }] as RequestDetail["nonprofits"];
  renderScreen(<Detail detail={shown} />);
  expect(screen.getByRole("region", { name: "Needs More Proof" })).toHaveTextContent(who);
  const list = screen.queryByRole("list", { name: who });
  expect(
    list
      ? within(list)
          .getAllByRole("listitem")
          .map(({ textContent }) => textContent)
      : [],
  ).toEqual(["Your rent contract.", "Your last pay slip."].slice(0, items));
  expect(screen.queryAllByText(notes ?? "no such notes")).toHaveLength(notes ? 1 : 0);
});

it("closes a guest's request if the access has ended when an answer is sent", async () => {
  vi.mocked(rpc).mockRejectedValue({ code: "PT401", message: "This page closed itself.", hint: "access_ended" });
  const onEnded = vi.fn();
  const shown = detail({ needs_more_proof: true, claimed_by: "np-1", pending_notes: "The letter, please." });
  shown.can = { ...shown.can, add_documents: true };
  const { user } = renderScreen(<Detail detail={shown} guest={{ access: "secret", uploadKey: "key", onEnded }} />);
  await user.type(screen.getByLabelText(/^Your answer/), "I have no letter.");
  await user.click(screen.getByRole("button", { name: "Send answer" }));
  await waitFor(() => expect(onEnded).toHaveBeenCalledOnce());
});

it("prints", async () => {
  const print = vi.fn();
  vi.stubGlobal("print", print);
  const { user } = renderScreen(<Detail detail={detail({})} />);
  await user.click(screen.getByRole("button", { name: "Print" }));
  expect(print).toHaveBeenCalledOnce();
  vi.unstubAllGlobals();
});
