import { expect, it, vi } from "vitest";
import { currentToasts, dismissToast, toast } from "./toast";

it("holds one toast at a time, closes it and removes it after 1000000 ms", () => {
  vi.useFakeTimers();
  toast({ title: "first" });
  toast({ title: "second", variant: "destructive" });
  expect(currentToasts().map((entry) => entry.title)).toEqual(["second"]);
  dismissToast(currentToasts()[0]?.id ?? 0);
  expect(currentToasts()[0]?.open).toBe(false);
  vi.advanceTimersByTime(999_999);
  expect(currentToasts()).toHaveLength(1);
  vi.advanceTimersByTime(1);
  expect(currentToasts()).toHaveLength(0);
  vi.useRealTimers();
});
