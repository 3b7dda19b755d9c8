import { act, renderHook } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { readFolded, useSidebarFold } from "./sidebar";

afterEach(() => {
  document.cookie = "sidebar_state=; max-age=0; path=/";
});

it("is open unless the cookie says otherwise", () => {
  expect(readFolded("")).toBe(false);
  expect(readFolded("a=b; sidebar_state=false; c=d")).toBe(true);
  expect(readFolded("sidebar_state=true")).toBe(false);
  expect(readFolded("xsidebar_state=false")).toBe(false);
});

it("folds with Ctrl+B and Cmd+B and stores the state in the cookie", () => {
  const { result } = renderHook(() => useSidebarFold());
  const press = (init: KeyboardEventInit) => act(() => void window.dispatchEvent(new KeyboardEvent("keydown", init)));
  press({ key: "b", ctrlKey: true });
  expect(result.current[0]).toBe(true);
  expect(document.cookie).toContain("sidebar_state=false");
  press({ key: "B", metaKey: true });
  expect(result.current[0]).toBe(false);
  expect(document.cookie).toContain("sidebar_state=true");
  press({ key: "b" });
  expect(result.current[0]).toBe(false);
});
