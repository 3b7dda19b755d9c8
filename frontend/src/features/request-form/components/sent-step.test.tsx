import { screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { renderScreen } from "@/testing/render";
import { SentStep } from "./sent-step";

const sent = {
  number: "REQ-042",
  email: "marie@mail.example",
  nonprofits: ["Harbor Relief Fund"],
  at: "2026-11-20T12:00:00Z",
};
const open = () => renderScreen(<SentStep sent={sent} signedIn={false} />);
afterEach(() => void vi.unstubAllGlobals());

it("prints the confirmation", async () => {
  const print = vi.fn();
  vi.stubGlobal("print", print);
  const { user } = open();
  await user.click(screen.getByRole("button", { name: "Print" }));
  expect(print).toHaveBeenCalledOnce();
});

it("shares number and state if the device can and ignores a cancelled share", async () => {
  const share = vi.fn(() => Promise.reject(new DOMException("put away", "AbortError")));
  vi.stubGlobal("navigator", Object.assign(Object.create(navigator) as Navigator, { share }));
  const { user } = open();
  await user.click(screen.getByRole("button", { name: "Share" }));
  expect(share).toHaveBeenCalledWith({
    text: expect.stringContaining("REQ-042") as string,
    url: `${window.location.origin}/request-status?id=REQ-042`,
  });
});

it("tells a guest how to open the request without an account", () => {
  open();
  expect(screen.getByText(/You need no account/)).toHaveTextContent("marie@mail.example");
  const way = screen.getByRole("link", { name: "Open it with a code" });
  expect(way).toHaveAttribute("href", "/open-request?number=REQ-042");
});

it("offers no sharing if the browser does not support it", () => {
  open();
  expect(screen.queryByRole("button", { name: "Share" })).toBeNull();
});
