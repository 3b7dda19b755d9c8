import { fireEvent, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { emptyAnswers } from "@/features/request-form/answers";
import { keep } from "@/features/request-form/storage";
import { endAnswers, store, unsentRequest } from "@/lib/stored";
import { EXIT_TARGET, ExitPage } from "./exit-page";

afterEach(() => vi.unstubAllGlobals());

it("leaves nothing of a guest, not even what would be kept while the other site is loading", () => {
  const replace = vi.fn();
  const reload = vi.fn();
  vi.stubGlobal("location", { replace, reload });
  const guest = { userId: null, draftId: null };
  const answers = { ...emptyAnswers("key-1"), description: "Typed words" };
  const keepNow = () => keep(guest, { answers, dirty: true, syncedAt: null, sent: null });
  render(<ExitPage />);
  expect(keepNow()).toBe(true);
  store("tab", "kept-form:answer", "Typed words");
  endAnswers("aidbridge-request:guest:earlier", { waits: true });
  expect(unsentRequest()).toBe("deleted");

  fireEvent.click(screen.getByRole("link"));
  expect(replace).toHaveBeenCalledWith(EXIT_TARGET);
  expect(document.body).toBeEmptyDOMElement();
  expect(unsentRequest()).toBeNull();
  // an upload or a submission that was on its way ends
  expect(keepNow()).toBe(false);
  expect(store("tab", "kept-form:answer", "Typed words")).toBe(false);
  expect(localStorage).toHaveLength(0);
  expect(sessionStorage).toHaveLength(0);

  window.dispatchEvent(new PageTransitionEvent("pageshow", { persisted: false }));
  expect(reload).not.toHaveBeenCalled();
  window.dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
  expect(reload).toHaveBeenCalledOnce();
});
