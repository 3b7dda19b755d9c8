import { screen, waitFor } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { rpc } from "@/lib/rpc";
import { renderScreen } from "@/testing/render";
import { ComposeForm } from "./compose-form";

vi.mock("@/lib/rpc", () => ({ rpc: vi.fn() }));

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

it("sends a message once, though its answer is lost and the form is opened again", async () => {
  const open = () => renderScreen(<ComposeForm nonprofitId="np-001" userId="u1" onSent={() => undefined} />);
  vi.mocked(rpc).mockRejectedValueOnce(new TypeError("Failed to fetch")).mockResolvedValue({ recipients: 3 });
  const first = open();
  await first.user.type(screen.getByLabelText("Subject"), "Winter");
  await first.user.type(screen.getByLabelText("Message"), "The coats have arrived. Thank you all.");
  await first.user.click(screen.getByRole("button", { name: /^Send/ }));
  expect(await screen.findByRole("alert")).toBeInTheDocument();
  first.unmount();
  const second = open();
  await second.user.click(screen.getByRole("button", { name: /^Send/ }));
  await waitFor(() => expect(screen.getByLabelText("Subject")).toHaveValue(""));
  const keys = vi.mocked(rpc).mock.calls.map(([, sent]) => "key" in sent && sent.key);
  expect(keys).toHaveLength(2);
  expect(keys[1]).toBe(keys[0]);
});
