import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { beforeEach, expect, it, vi } from "vitest";
import { TextConsent } from "./text-consent";

const server = vi.hoisted(() => ({ sms: true }));
vi.mock("@/lib/env", () => ({ useAppConfig: () => server }));
beforeEach(() => void (server.sms = true));

function Box({ number, stoppedAt }: { number: string; stoppedAt?: string }) {
  const [on, setOn] = useState(false);
  return <TextConsent number={number} checked={on} onChange={setOn} stoppedAt={stoppedAt} />;
}
const box = () => screen.getByRole("checkbox", { name: "Send me texts about my request, too." });

it("is not shown if the server sends no texts", () => {
  server.sms = false;
  render(<Box number="207 555 0123" />);
  expect(screen.queryByRole("checkbox")).toBeNull();
});

it("is off by default, explains how to stop and warns about a number that cannot receive texts", async () => {
  render(<Box number="06 12 34 56 78" />);
  expect(box()).not.toBeChecked();
  expect(box()).toHaveAccessibleDescription(/reply STOP/);
  expect(screen.getByRole("status")).toBeEmptyDOMElement();
  await userEvent.click(box());
  expect(box()).toBeChecked();
  expect(screen.getByRole("status")).toHaveTextContent("We cannot text this number.");
});

it("says that STOP ended it while it is off", async () => {
  render(<Box number="207 555 0123" stoppedAt="2026-11-20T12:00:00Z" />);
  expect(screen.getByRole("status")).toHaveTextContent("You replied STOP on");
  await userEvent.click(box());
  expect(screen.getByRole("status")).toBeEmptyDOMElement();
});
