import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, renderHook, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { currentToasts } from "@/lib/toast";
import { emptyAnswers } from "./answers";
import { submitRequest } from "./api";
import { useSubmit, whyNotSent } from "./use-submit";

vi.mock("./api", () => ({ submitRequest: vi.fn(), saveDraft: vi.fn() }));

const gone = { code: "PT404", message: "The requested aid request could not be found.", hint: "request_not_found" };
const arrived = { id: "r1", request_number: "REQ-042", submitted_at: "2026-11-20T10:00:00Z", email: "m@mail.example" };
const answers = { ...emptyAnswers("k1"), draftId: "d1" };

function setUp({ current = true, own = false } = {}) {
  const seen = vi.fn().mockReturnValueOnce("10:00").mockReturnValue("10:05");
  const onProofOver = vi.fn();
  const meet = vi.fn().mockResolvedValue(own);
  const leaveDraft = vi.fn();
  const onWaits = vi.fn();
  const stopWaiting = vi.fn();
  const onSent = vi.fn();
  const queryClient = new QueryClient({ defaultOptions: { mutations: { retry: false } } });
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={queryClient}>{children}</QueryClientProvider>
  );
  const { result } = renderHook(
    () =>
      useSubmit({
        signedIn: true,
        seen,
        meet,
        leaveDraft,
        isCurrent: () => current,
        onWaits,
        stopWaiting,
        onSent,
        onProofOver,
      }),
    { wrapper },
  );
  return { result, meet, leaveDraft, onWaits, stopWaiting, onSent, onProofOver };
}

beforeEach(() => vi.mocked(submitRequest).mockReset());

it("sends a request whose draft was deleted elsewhere by its key", async () => {
  vi.mocked(submitRequest).mockRejectedValueOnce(gone).mockResolvedValueOnce(arrived);
  const { result, leaveDraft, onSent } = setUp();
  act(() => result.current.mutate({ answers }));
  await waitFor(() => expect(onSent).toHaveBeenCalledWith(expect.objectContaining({ number: "REQ-042" })));
  expect(leaveDraft).toHaveBeenCalledWith("d1");
  expect(vi.mocked(submitRequest).mock.calls[1]?.[0]).toEqual({ ...answers, draftId: null });
});

it("does not send a request without the documents that were deleted with its draft", async () => {
  vi.mocked(submitRequest).mockRejectedValueOnce(gone);
  const { result, leaveDraft, onSent } = setUp();
  const document = { id: "d", name: "letter.pdf", size: 1, path: "d1/letter.pdf", slot: false };
  act(() => result.current.mutate({ answers: { ...answers, documents: [document] } }));
  await waitFor(() => expect(result.current.isError).toBe(true));
  expect(whyNotSent(result.current.error)).toMatch(/its documents with it/);
  expect(submitRequest).toHaveBeenCalledOnce();
  expect(leaveDraft).toHaveBeenCalledWith("d1");
  expect(onSent).not.toHaveBeenCalled();
});

describe("a draft that was saved since this page knew it", () => {
  const changed = { code: "PT409", message: "This draft was changed on another device.", hint: "draft_changed" };

  it("is not sent until the person has chosen a version", async () => {
    vi.mocked(submitRequest).mockRejectedValueOnce(changed);
    const { result, meet, onWaits, stopWaiting, onSent } = setUp();
    act(() => result.current.mutate({ answers }));
    await waitFor(() => expect(result.current.error).toBe(changed));
    expect(meet).toHaveBeenCalledWith("d1");
    expect(vi.mocked(submitRequest).mock.calls).toEqual([[answers, true, "10:00"]]);
    expect(onSent).not.toHaveBeenCalled();
    // the person is told that it no longer waits
    expect(stopWaiting).toHaveBeenCalledOnce();
    expect(onWaits).not.toHaveBeenCalled();
  });

  it("is sent if this page saved it itself", async () => {
    vi.mocked(submitRequest).mockRejectedValueOnce(changed).mockResolvedValueOnce(arrived);
    const { result, onSent } = setUp({ own: true });
    act(() => result.current.mutate({ answers }));
    await waitFor(() => expect(onSent).toHaveBeenCalled());
    expect(vi.mocked(submitRequest).mock.calls[1]).toEqual([answers, true, "10:05"]);
  });

  it("is read again if it was saved elsewhere before the second try", async () => {
    vi.mocked(submitRequest).mockRejectedValueOnce(changed).mockRejectedValueOnce(changed);
    const { result, meet } = setUp({ own: true });
    act(() => result.current.mutate({ answers }));
    await waitFor(() => expect(result.current.error).toBe(changed));
    expect(submitRequest).toHaveBeenCalledTimes(2);
    expect(meet).toHaveBeenCalledTimes(2);
  });
});

it("says so if the answers were changed while they were on their way", async () => {
  vi.mocked(submitRequest).mockResolvedValue(arrived);
  const { result, onSent } = setUp({ current: false });
  act(() => result.current.mutate({ answers }));
  await waitFor(() => expect(onSent).toHaveBeenCalled());
  expect(currentToasts()[0]?.description).toBe("Your request ID is REQ-042. What you changed just now is not in it.");
});

it("leads to another proof of the address if the last one is over", async () => {
  const message = "This account does not match the address you proved. Please try again.";
  vi.mocked(submitRequest).mockRejectedValueOnce({ code: "PT403", message, hint: "account_mismatch" });
  const { result, onProofOver, onSent } = setUp();
  act(() => result.current.mutate({ answers }));
  await waitFor(() => expect(onProofOver).toHaveBeenCalledOnce());
  expect(onSent).not.toHaveBeenCalled();
  expect(whyNotSent(result.current.error)).toMatch(/send it without the account/);
});
