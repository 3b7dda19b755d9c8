import { act, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { rpc } from "@/lib/rpc";
import { renderScreen } from "@/testing/render";
import { keepAccess, readAccess } from "../request-access";
import { OpenRequestScreen } from "./open-request-screen";

vi.mock("@/lib/rpc", async (actual) => ({ ...(await actual<object>()), rpc: vi.fn() }));
vi.mock("./detail-screen", () => ({
  Detail: ({ detail }: { detail: { request: { description: string } } }) => <h1>{detail.request.description}</h1>,
}));

const ended = { code: "PT401", message: "For your safety this page closed itself.", hint: "access_ended" };
const HOUR = 60 * 60_000;

beforeEach(() => {
  sessionStorage.clear();
  vi.mocked(rpc)
    .mockReset()
    .mockResolvedValue({ request: { description: "We need food." } });
  const expiresAt = new Date(Date.now() + HOUR).toISOString();
  keepAccess({ number: "REQ-042", access: "secret", uploadKey: "key", expiresAt });
});
afterEach(() => vi.useRealTimers());

it("shows nothing of the request once the server says that the access has ended", async () => {
  const { queryClient } = renderScreen(<OpenRequestScreen />);
  expect(await screen.findByText("We need food.")).toBeInTheDocument();
  vi.mocked(rpc).mockRejectedValue(ended);
  await act(() => queryClient.refetchQueries());
  expect(await screen.findByRole("alert")).toHaveTextContent("Your request is closed on this device");
  expect(screen.queryByText("We need food.")).not.toBeInTheDocument();
});

it("closes itself at the end of the access, though nothing is read again", async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  renderScreen(<OpenRequestScreen />);
  expect(await screen.findByText("We need food.")).toBeInTheDocument();
  await act(() => vi.advanceTimersByTimeAsync(HOUR - 60_000));
  expect(screen.getByText("We need food.")).toBeInTheDocument();
  await act(() => vi.advanceTimersByTimeAsync(60_000));
  expect(screen.queryByText("We need food.")).not.toBeInTheDocument();
  expect(screen.getByLabelText(/Request ID/)).toBeInTheDocument();
  expect(readAccess(new Date(0))).toBeNull();
});

it("stays open on a device whose clock is ahead of the end of the access", async () => {
  sessionStorage.clear();
  const opened = { ok: true, access: "secret", upload_key: "key", request_number: "REQ-042" };
  const expires_at = new Date(Date.now() - HOUR).toISOString();
  vi.mocked(rpc).mockImplementation((name) =>
    Promise.resolve(
      name === "check_request_code" ? { ...opened, expires_at } : { request: { description: "We need food." } },
    ),
  );
  renderScreen(<OpenRequestScreen />);
  await userEvent.type(screen.getByLabelText(/Request ID/), "REQ-042");
  await userEvent.click(screen.getByRole("button", { name: "Send me a code" }));
  await userEvent.type(await screen.findByLabelText(/Code/), "123456");
  await userEvent.click(screen.getByRole("button", { name: "Open my request" }));
  expect(await screen.findByText("We need food.")).toBeInTheDocument();
  await act(() => new Promise((later) => setTimeout(later, 20)));
  expect(screen.getByText("We need food.")).toBeInTheDocument();
});
