import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import Toaster from "@/components/ui/toaster";
import { renderScreen } from "@/testing/render";
import { Component as RoleSelection } from "./role-selection";

it("reports an ended session", async () => {
  const { user } = renderScreen(
    <>
      <RoleSelection />
      <Toaster />
    </>,
    { session: { user: null } },
  );
  await user.click(screen.getByRole("button", { name: /Donor/ }));
  expect(await screen.findByText("User not found")).toBeVisible();
  expect(screen.getByText("Please try logging in again.")).toBeVisible();
});
