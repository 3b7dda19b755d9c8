import { screen, waitFor } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { rpc } from "@/lib/rpc";
import { renderScreen } from "@/testing/render";
import type { RequestRow } from "../api";
import { CorrectForm } from "./correct-form";

vi.mock("@/lib/rpc", () => ({ rpc: vi.fn(() => Promise.resolve({ corrected: true })) }));

const request = {
  id: "r-1",
  first_name: "Ann",
  last_name: "Lee",
  phone: "2075550100",
  sms_consent: false,
  address: "1 High Street",
  city: "Portland",
  state: "ME",
  postal_code: "04101",
} as RequestRow;

const open = async (row = request) => {
  const view = renderScreen(<CorrectForm request={row} />);
  await view.user.click(screen.getByRole("button", { name: "Correct my contact data" }));
  return view;
};
const save = () => screen.getByRole("button", { name: "Save" });
const sent = () => vi.mocked(rpc).mock.calls.map(([, args]) => (args as { input: object }).input);

beforeEach(() => {
  sessionStorage.clear();
  vi.mocked(rpc).mockClear();
});

it("accepts only a town from a requester who has lost their address", async () => {
  const { user } = await open();
  expect(screen.getByLabelText("Street address")).toHaveValue("1 High Street");
  await user.click(screen.getByRole("checkbox", { name: "I have no fixed address" }));
  expect(screen.queryByLabelText("Street address")).toBeNull();
  await user.click(save());
  await waitFor(() => expect(rpc).toHaveBeenCalled());
  expect(sent()).toEqual([{ address: "No fixed address", postal_code: "none" }]);
});

it("sends no consent to texts that a STOP may have ended meanwhile, except beside another number", async () => {
  const { user } = await open({ ...request, sms_consent: true });
  await user.type(screen.getByLabelText("City"), " East");
  await user.click(save());
  await waitFor(() => expect(rpc).toHaveBeenCalledTimes(1));
  await user.click(await screen.findByRole("button", { name: "Correct my contact data" }));
  await user.type(screen.getByLabelText("Phone"), "1");
  await user.click(save());
  await waitFor(() => expect(rpc).toHaveBeenCalledTimes(2));
  expect(sent()).toEqual([{ city: "Portland East" }, { phone: "20755501001", sms_consent: true }]);
});

it("shows what was typed after the page was loaded again, until it is cancelled", async () => {
  const first = await open();
  await first.user.type(screen.getByLabelText("City"), " East");
  first.unmount();
  const { user } = renderScreen(<CorrectForm request={{ ...request, phone: "2075550111" }} />);
  expect(screen.getByLabelText("City")).toHaveValue("Portland East");
  expect(screen.getByLabelText("Phone")).toHaveValue("2075550111");
  await user.click(screen.getByRole("button", { name: "Cancel" }));
  await user.click(screen.getByRole("button", { name: "Correct my contact data" }));
  expect(screen.getByLabelText("City")).toHaveValue("Portland");
});

it("closes a guest's request if the access has ended, and keeps what was typed", async () => {
  const onEnded = vi.fn();
  vi.mocked(rpc).mockRejectedValueOnce({ code: "PT401", message: "This page closed itself.", hint: "access_ended" });
  const guest = { access: "secret", uploadKey: "key", onEnded };
  const { user } = renderScreen(<CorrectForm request={request} guest={guest} />);
  await user.click(screen.getByRole("button", { name: "Correct my contact data" }));
  await user.type(screen.getByLabelText("City"), " East");
  await user.click(save());
  await waitFor(() => expect(onEnded).toHaveBeenCalledOnce());
  expect(JSON.stringify(sessionStorage)).toContain("Portland East");
});
