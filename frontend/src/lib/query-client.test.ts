import { QueryObserver } from "@tanstack/react-query";
import { expect, it } from "vitest";
import { announcePersonChange } from "./person-change";
import { queryClient } from "./query-client";

it("drops the previous user's data while a shown page still gets its response", async () => {
  queryClient.setQueryData(["left", "behind"], "secret");
  let answer: (value: string) => void = () => {};
  const shown = new QueryObserver(queryClient, {
    queryKey: ["shown"],
    queryFn: () => new Promise<string>((resolve) => (answer = resolve)),
  });
  const unsubscribe = shown.subscribe(() => {});
  announcePersonChange();
  expect(queryClient.getQueryData(["left", "behind"])).toBeUndefined();
  await Promise.resolve();
  answer("here");
  await expect.poll(() => shown.getCurrentResult().data).toBe("here");
  unsubscribe();
});
