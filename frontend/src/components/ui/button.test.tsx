import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { renderScreen } from "@/testing/render";
import { ChoiceCard } from "@/components/choice-card";
import { Button } from "./button";

it.each([
  ["begins work once on a double tap", false, 1],
  ["begins nothing while the work runs", true, 0],
  ["turns two pages on two quick presses", undefined, 2],
])("%s", async (_, busy, times) => {
  const onClick = vi.fn();
  const { user } = renderScreen(
    <Button busy={busy} onClick={onClick}>
      Delete
    </Button>,
  );
  await user.dblClick(screen.getByRole("button", { name: "Delete" }));
  expect(onClick).toHaveBeenCalledTimes(times);
});

it("a choice card advances once on a double tap", async () => {
  const onClick = vi.fn();
  const { user } = renderScreen(<ChoiceCard title="Harbor Relief Fund" onClick={onClick} />);
  await user.dblClick(screen.getByRole("button", { name: "Harbor Relief Fund" }));
  expect(onClick).toHaveBeenCalledTimes(1);
});
