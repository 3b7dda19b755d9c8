/** Renders a screen with what every screen has around it: query cache, router, session. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { ReactElement } from "react";
import { createMemoryRouter, RouterProvider, type RouteObject } from "react-router-dom";
import { SessionContext, type Session } from "@/lib/session";
import { aSession } from "./factories";

export interface RenderOptions {
  session?: Partial<Session>;
  /** The address the screen opens at, and the pattern it is mounted under. */
  at?: string;
  path?: string;
  /** Further routes, to see where a click leads. */
  routes?: RouteObject[];
}

export function renderScreen(screen: ReactElement, { session, at = "/", path = "/", routes = [] }: RenderOptions = {}) {
  const queryClient = new QueryClient({ defaultOptions: { queries: { retry: false }, mutations: { retry: false } } });
  const router = createMemoryRouter([{ path, element: screen }, ...routes], { initialEntries: [at] });
  const view = render(
    <QueryClientProvider client={queryClient}>
      <SessionContext value={aSession(session)}>
        <RouterProvider router={router} />
      </SessionContext>
    </QueryClientProvider>,
  );
  return { ...view, user: userEvent.setup(), router, queryClient };
}
