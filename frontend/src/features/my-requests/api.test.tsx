import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, renderHook, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { beforeEach, expect, it, vi } from "vitest";
import { useDeleteDraft } from "./api";

const answer = vi.hoisted(() => ({ error: null as object | null }));
vi.mock("@/lib/supabase", () => {
  const query = { eq: () => query, then: (done: (answer: object) => void) => done({ error: answer.error }) };
  return { getSupabase: () => Promise.resolve({ from: () => ({ delete: () => query }) }) };
});

const wrapper = ({ children }: { children: ReactNode }) => (
  <QueryClientProvider client={new QueryClient()}>{children}</QueryClientProvider>
);
const copy = (draftId: string | null) => JSON.stringify({ version: 1, answers: { key: "k1", draftId } });
const copies = () => Object.keys(sessionStorage).sort();

beforeEach(() => {
  sessionStorage.clear();
  answer.error = null;
  sessionStorage.setItem("aidbridge-request:u1:d1", copy("d1"));
  sessionStorage.setItem("aidbridge-request:u1:d2", copy("d2"));
  sessionStorage.setItem("aidbridge-request:u1:new", copy("d1"));
});

it("a deleted draft does not come back from this tab's copies", async () => {
  const { result } = renderHook(() => useDeleteDraft("u1"), { wrapper });
  await act(() => result.current.mutateAsync("d1"));
  expect(copies()).toEqual(["aidbridge-request:u1:d2"]);
});

it("the copy of another request stays", async () => {
  sessionStorage.setItem("aidbridge-request:u1:new", copy(null));
  const { result } = renderHook(() => useDeleteDraft("u1"), { wrapper });
  await act(() => result.current.mutateAsync("d1"));
  expect(copies()).toEqual(["aidbridge-request:u1:d2", "aidbridge-request:u1:new"]);
});

it("a draft that could not be deleted keeps its copies", async () => {
  answer.error = { code: "", message: "TypeError: Failed to fetch" };
  const { result } = renderHook(() => useDeleteDraft("u1"), { wrapper });
  act(() => result.current.mutate("d1"));
  await waitFor(() => expect(result.current.isError).toBe(true));
  expect(copies()).toHaveLength(3);
});
