import { screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { forgetOldAnswers, store } from "@/lib/stored";
import { renderScreen } from "@/testing/render";
import NotSent from "./not-sent";

const kept = (how: object) =>
  store("browser", "aidbridge-request:guest:new", JSON.stringify({ keptAt: Date.now(), ...how }));
const pressed = () => kept({ waits: true });

afterEach(() => {
  vi.useRealTimers();
  localStorage.clear();
});

it("links to an unsent request from every page except its form", () => {
  pressed();
  const { unmount } = renderScreen(<NotSent />, { at: "/request-status", path: "/request-status" });
  expect(screen.getByRole("status")).toHaveTextContent("Your request is not sent yet");
  expect(screen.getByRole("link", { name: "Open it and send it" })).toHaveAttribute(
    "href",
    "/submit-request?step=review",
  );
  unmount();
  renderScreen(<NotSent />, { at: "/submit-request", path: "/submit-request" });
  expect(screen.queryByRole("status")).toBeNull();
});

it("says that a request that was changed while it waited has to be sent again", () => {
  kept({ stopped: true });
  renderScreen(<NotSent />);
  expect(screen.getByRole("status")).toHaveTextContent("it does not go by itself anymore");
  expect(screen.getByRole("link", { name: "Open it and send it" })).toBeInTheDocument();
});

it("says that the answers of an unsent request are gone until it is dismissed", async () => {
  pressed();
  vi.useFakeTimers({ toFake: ["Date"] });
  vi.setSystemTime(Date.now() + 25 * 60 * 60_000);
  forgetOldAnswers();
  const { user, unmount } = renderScreen(<NotSent />);
  expect(screen.getByRole("status")).toHaveTextContent("Your request was not sent");
  await user.click(screen.getByRole("button", { name: "Close" }));
  expect(screen.queryByRole("status")).toBeNull();
  unmount();
  renderScreen(<NotSent />);
  expect(screen.queryByRole("status")).toBeNull();
});
