import { screen } from "@testing-library/react";
import { beforeEach, expect, it } from "vitest";
import { renderScreen } from "@/testing/render";
import { ComposeForm } from "./compose-form";

beforeEach(() => sessionStorage.clear());

it("restores unsent words to the person who typed them, and to no colleague", async () => {
  const open = (userId: string) =>
    renderScreen(<ComposeForm nonprofitId="np-001" userId={userId} onSent={() => undefined} />);
  const first = open("u1");
  await first.user.type(screen.getByLabelText("Subject"), "Winter");
  first.unmount();
  const colleague = open("u2");
  expect(screen.getByLabelText("Subject")).toHaveValue("");
  colleague.unmount();
  open("u1");
  expect(screen.getByLabelText("Subject")).toHaveValue("Winter");
});
