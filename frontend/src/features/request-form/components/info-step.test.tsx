import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { currentToasts } from "@/lib/toast";
import { renderScreen } from "@/testing/render";
import { emptyAnswers } from "../answers";
import { InfoStep, type InfoStepProps } from "./info-step";

const nothing = () => undefined;
const open = (props: Partial<InfoStepProps>) =>
  renderScreen(
    <InfoStep
      answers={emptyAnswers("key", "wizard")}
      accountEmail={null}
      onIdentity={nothing}
      onTexts={nothing}
      onAccount={nothing}
      onContinue={nothing}
      {...props}
    />,
  );

it("removes the errors of fields that are filled in", async () => {
  const { user } = open({});
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

it("a guest can undo the link to an account", async () => {
  const account = { id: "u9", fullName: "Marie Désir", email: "marie@test.example", proof: "p" };
  const onAccount = vi.fn();
  const { user } = open({ answers: { ...emptyAnswers("key"), account }, onAccount });
  expect(screen.getByText("This request will be in the account of Marie Désir.")).toBeInTheDocument();
  await user.click(screen.getByRole("button", { name: "Do not link it" }));
  expect(onAccount).toHaveBeenCalledWith(null);
});

it("asks a guest whose proof is over for another one, or leads on without the account", async () => {
  const identity = { ...emptyAnswers("key").identity, email: "marie@test.example" };
  const { user } = open({
    answers: { ...emptyAnswers("key"), identity },
    proofOver: true,
    withoutHref: "/?step=review",
  });
  expect(screen.getByRole("alert")).toHaveTextContent("Please confirm your email address again");
  expect(screen.getByRole("link", { name: "Continue without an account" })).toHaveAttribute("href", "/?step=review");
  await user.click(screen.getByRole("button", { name: "Find my account" }));
  expect(await screen.findByRole("heading", { name: "Find your account" })).toBeInTheDocument();
});
