import "@testing-library/jest-dom/vitest";
import { cleanup, configure } from "@testing-library/react";
import { afterEach, vi } from "vitest";

// Generous, because a loaded machine is slow and no test asserts speed.
configure({ asyncUtilTimeout: 30_000 });

afterEach(() => {
  cleanup();
  // the next file may have the same document (vitest.config.ts)
  localStorage.clear();
  sessionStorage.clear();
  window.history.replaceState(null, "", "/");
});

// jsdom has no layout, so the APIs used by Radix and our media hook report a desktop without overflow.
window.matchMedia = (query: string) =>
  ({
    matches: false,
    media: query,
    onchange: null,
    addEventListener: vi.fn(),
    removeEventListener: vi.fn(),
    addListener: vi.fn(),
    removeListener: vi.fn(),
    dispatchEvent: () => false,
  }) as MediaQueryList;
Element.prototype.scrollIntoView = vi.fn();
Element.prototype.hasPointerCapture = () => false;
Element.prototype.setPointerCapture = vi.fn();
Element.prototype.releasePointerCapture = vi.fn();
window.ResizeObserver = class {
  observe() {}
  unobserve() {}
  disconnect() {}
};
