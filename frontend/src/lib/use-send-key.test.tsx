import { act, renderHook } from "@testing-library/react";
import { beforeEach, expect, it } from "vitest";
import { forgetKept } from "./kept-form";
import { useSendKey } from "./use-send-key";

beforeEach(() => sessionStorage.clear());

const open = () => renderHook(() => useSendKey("letter-u1"));

it("keeps the key of what was sent until that is forgotten, so that a lost answer does not send it twice", () => {
  const first = open();
  const key = first.result.current.take();
  first.unmount();
  const second = open();
  expect(second.result.current.take()).toBe(key);
  second.unmount();
  forgetKept("letter-u1");
  expect(open().result.current.take()).not.toBe(key);
  expect(sessionStorage).toHaveLength(1);
});

it("keeps no key for what was never sent", () => {
  open();
  expect(sessionStorage).toHaveLength(0);
});

it("keeps another key after another version was sent under the first", () => {
  const { result, unmount } = open();
  const key = result.current.take();
  act(() => result.current.refused({ code: "PT409", hint: "rate_limited" }));
  expect(result.current.take()).toBe(key);
  act(() => result.current.refused({ code: "PT409", hint: "key_reused" }));
  const next = result.current.take();
  expect(next).not.toBe(key);
  unmount();
  expect(open().result.current.take()).toBe(next);
});
