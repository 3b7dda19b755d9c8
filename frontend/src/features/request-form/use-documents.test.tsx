import { act, renderHook, waitFor } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { removeDocument, uploadToRequest, uploadToSlot, type StoredDocument } from "@/lib/request-documents";
import { emptyAnswers, type Answers } from "./answers";
import { useDocuments } from "./use-documents";

vi.mock("@/lib/request-documents", () => ({
  removeDocument: vi.fn(() => Promise.resolve()),
  withdrawUpload: vi.fn(() => Promise.resolve()),
  uploadToRequest: vi.fn(),
  uploadToSlot: vi.fn(),
}));

const file = (name: string) => new File(["x"], name, { type: "application/pdf" });
const stored = (name: string): StoredDocument => ({ id: name, name, size: 1, path: `guest/${name}`, slot: true });

/** Uploads that wait to be ended by the test, in the order in which they began. */
const uploads: { name: string; signal: AbortSignal; arrive: () => void; fail: (error: unknown) => void }[] = [];

beforeEach(() => {
  uploads.length = 0;
  vi.mocked(removeDocument).mockClear();
  vi.mocked(uploadToSlot).mockImplementation(
    (_key, { name }, sending) =>
      new Promise((arrive, fail) => {
        uploads.push({ name, signal: sending?.signal as AbortSignal, arrive: () => arrive(stored(name)), fail });
      }),
  );
});

function setUp(key = "k1") {
  const onAdd = vi.fn();
  let answers = emptyAnswers(key);
  const change = vi.fn((patch: Partial<Answers> | ((now: Answers) => Partial<Answers>)) => {
    answers = { ...answers, ...(typeof patch === "function" ? patch(answers) : patch) };
  });
  const hook = renderHook(
    ({ answers: given }) =>
      useDocuments({ answers: given, change, signedIn: false, save: () => Promise.resolve("d"), onAdd }),
    { initialProps: { answers } },
  );
  return {
    ...hook,
    documents: () => answers.documents.map(({ name }) => name),
    begin: (next: Answers) => {
      answers = next;
      hook.rerender({ answers: next });
    },
  };
}

it("uploads one file after the other, also on retry", async () => {
  const { result, documents } = setUp();
  const [a, b] = [file("a.pdf"), file("b.pdf")];
  act(() => result.current.add([a, b]));
  await waitFor(() => expect(uploads.map(({ name }) => name)).toEqual(["a.pdf"]));
  await act(async () => uploads[0]?.fail(new Error("Failed to fetch")));
  await waitFor(() => expect(uploads.map(({ name }) => name)).toEqual(["a.pdf", "b.pdf"]));
  expect(result.current.failed).toBe(true);
  act(() => result.current.retry(a));
  expect(uploads).toHaveLength(2); // b is still on its way
  await act(async () => uploads[1]?.arrive());
  await waitFor(() => expect(uploads.map(({ name }) => name)).toEqual(["a.pdf", "b.pdf", "a.pdf"]));
  await act(async () => uploads[2]?.arrive());
  expect(documents()).toEqual(["b.pdf", "a.pdf"]);
  expect(result.current).toMatchObject({ pending: [], busy: false, failed: false });
});

it("aborts the upload of a removed file, which does not reappear", async () => {
  const { result, documents } = setUp();
  const a = file("a.pdf");
  act(() => result.current.add([a]));
  await waitFor(() => expect(uploads).toHaveLength(1));
  act(() => result.current.drop(a));
  expect(uploads[0]?.signal.aborted).toBe(true);
  await act(async () => uploads[0]?.arrive());
  expect(documents()).toEqual([]);
  expect(result.current.pending).toEqual([]);
  expect(removeDocument).toHaveBeenCalledWith(stored("a.pdf"));
});

it("never begins the upload of a file that was removed while it waited", async () => {
  const { result, documents } = setUp();
  const [a, b, c] = [file("a.pdf"), file("b.pdf"), file("c.pdf")];
  act(() => result.current.add([a, b, c]));
  await waitFor(() => expect(uploads).toHaveLength(1));
  act(() => result.current.drop(b));
  await act(async () => uploads[0]?.arrive());
  await waitFor(() => expect(uploads.map(({ name }) => name)).toEqual(["a.pdf", "c.pdf"]));
  await act(async () => uploads[1]?.arrive());
  expect(documents()).toEqual(["a.pdf", "c.pdf"]);
});

it("carries no files over into the next request", async () => {
  const { result, begin, documents } = setUp("k1");
  act(() => result.current.add([file("a.pdf"), file("b.pdf")]));
  await waitFor(() => expect(uploads).toHaveLength(1));
  act(() => begin(emptyAnswers("k2")));
  await act(async () => uploads[0]?.arrive());
  expect(uploads).toHaveLength(1); // b.pdf was never begun
  expect(documents()).toEqual([]);
  expect(result.current.pending).toEqual([]);
});

it("keeps a rejected file in the list with the reason and offers no retry", async () => {
  const { result } = setUp();
  act(() => result.current.add([file("a.pdf")]));
  await waitFor(() => expect(uploads).toHaveLength(1));
  await act(async () => uploads[0]?.fail({ statusCode: "415", message: "no" }));
  expect(result.current).toMatchObject({ busy: false, failed: false });
  expect(result.current.pending[0]?.error).toBe("a.pdf is not an accepted file type.");
});

it("uploads a file for a draft that was deleted elsewhere into the one that is saved anew", async () => {
  const onto = vi.mocked(uploadToRequest);
  onto.mockRejectedValueOnce({ status: 403, message: "new row violates row-level security policy" });
  onto.mockResolvedValueOnce({ ...stored("a.pdf"), slot: false });
  const change = vi.fn();
  const answers = { ...emptyAnswers("k1"), draftId: "d1" };
  const given = { answers, change, signedIn: true, save: () => Promise.resolve("d2"), onAdd: () => undefined };
  const { result } = renderHook(() => useDocuments(given));
  act(() => result.current.add([file("a.pdf")]));
  await waitFor(() => expect(change).toHaveBeenCalledOnce());
  expect(onto.mock.calls.map(([id]) => id)).toEqual(["d1", "d2"]);
});
