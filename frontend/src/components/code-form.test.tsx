import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { renderScreen } from "@/testing/render";
import { CodeForm } from "./code-form";

it.each(["123456", " 123 456 ", "123-456", "Your code is 123456."])("takes the code out of %j", async (copied) => {
  const check = vi.fn(async () => ({ ok: true as const }));
  const nothing = () => undefined;
  const { user } = renderScreen(
    <CodeForm
      sent="sent"
      check={check}
      onProved={nothing}
      onFailed={nothing}
      onAgain={nothing}
      sendingAgain={false}
      leaveLabel="Leave"
      onLeave={nothing}
    />,
  );
  await user.click(screen.getByLabelText("Code"));
  await user.paste(copied);
  await user.click(screen.getByRole("button", { name: "Check code" }));
  expect(check).toHaveBeenCalledTimes(1);
  expect(check).toHaveBeenCalledWith("123456", expect.anything());
});
