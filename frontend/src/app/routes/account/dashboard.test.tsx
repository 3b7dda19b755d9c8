import { screen, waitFor } from "@testing-library/react";
import { expect, it } from "vitest";
import Toaster from "@/components/ui/toaster";
import { aUser } from "@/testing/factories";
import { renderScreen } from "@/testing/render";
import { Component as Dashboard } from "./dashboard";

it("names the target while the next page loads", async () => {
  let come = () => {};
  const { router } = renderScreen(<Dashboard />, {
    at: "/dashboard",
    path: "/dashboard",
    routes: [
      {
        path: "/requester-dashboard",
        // the page's code is still loading
        lazy: () => new Promise((done) => (come = () => done({ element: <h1>Requester Dashboard</h1> }))),
      },
    ],
  });
  expect(await screen.findByRole("heading", { name: "Redirecting to your dashboard..." })).toBeVisible();
  await waitFor(() => expect(router.state.navigation.location?.pathname).toBe("/requester-dashboard"));
  expect(screen.getByText("Redirecting to your dashboard...")).toBeVisible();
  come();
  expect(await screen.findByRole("heading", { name: "Requester Dashboard" })).toBeVisible();
});

it("reports an unknown role and links to the home page", async () => {
  const { router } = renderScreen(<Dashboard />, {
    at: "/dashboard",
    path: "/dashboard",
    session: { user: aUser({ role: "auditor" as never }) },
    routes: [{ path: "/", element: <Toaster /> }],
  });
  expect(await screen.findByText("Invalid user role")).toBeVisible();
  expect(screen.getByText("Your account has an invalid role. Please contact support.")).toBeVisible();
  await waitFor(() => expect(router.state.location.pathname).toBe("/"));
});
