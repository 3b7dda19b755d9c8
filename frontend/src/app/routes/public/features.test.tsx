import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { renderScreen } from "@/testing/render";
import { Component as Features } from "./features";

const server = vi.hoisted(() => ({ sms: false }));
vi.mock("@/lib/env", async (original) => ({ ...(await original<object>()), useAppConfig: () => server }));

it.each([
  [false, "By e-mail, at every step, in plain words. SMS is coming soon."],
  [true, "By e-mail, at every step, in plain words. By SMS too, if you want it."],
])("speaks of texts as they are here (%s)", (sms, said) => {
  server.sms = sms;
  renderScreen(<Features />);
  expect(screen.getByText(said)).toBeInTheDocument();
});
