import { useEffect, useRef } from "react";
import { useLocation } from "react-router-dom";

/** After a navigation the keyboard starts at the new page's content, and screen readers hear its title. */
export function FocusOnNavigation() {
  const { pathname } = useLocation();
  const before = useRef(pathname);
  useEffect(() => {
    if (before.current === pathname) return;
    before.current = pathname;
    const frame = requestAnimationFrame(() => document.getElementById("main")?.focus({ preventScroll: true }));
    return () => cancelAnimationFrame(frame);
  }, [pathname]);
  return null;
}
