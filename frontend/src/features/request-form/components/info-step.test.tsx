import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { currentToasts } from "@/lib/toast";
import { renderScreen } from "@/testing/render";
import { emptyAnswers } from "../answers";
import { InfoStep } from "./info-step";

it("removes the errors of fields that are filled in", async () => {
  const nothing = () => undefined;
  const { user } = renderScreen(
    <InfoStep
      answers={emptyAnswers("key", "wizard")}
      accountEmail={null}
      onIdentity={nothing}
      onTexts={nothing}
      onAccount={nothing}
      onContinue={nothing}
    />,
  );
  const told = () => currentToasts().filter(({ open, title }) => open && title === "Please complete all fields").length;
  const next = () => user.click(screen.getByRole("button", { name: "Next" }));
  await next();
  expect(told()).toBe(1);
  for (const [label, text] of [
    ["First name", "Marie"],
    ["Last name", "Désir"],
    ["Email", "marie@test.example"],
    ["Phone", "+1 207 555 0142"],
  ] as const)
    await user.type(screen.getByLabelText(label), text);
  await next();
  expect(await screen.findByLabelText("Street address")).toBeVisible();
  expect(told()).toBe(0);
});
