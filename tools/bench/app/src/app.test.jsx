// The app on a real server, each test from the seed.
import { cleanup, configure, render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test } from "vitest";
import { App } from "./app.jsx";
import { supabase } from "./supabase.js";

configure({ asyncUtilTimeout: 60_000 });
beforeEach(async () => {
  const { SUPABASE_URL: url, SUPABASE_SECRET_KEY: apikey } = process.env;
  const answer = await fetch(`${url}/ferrobase/v1/reset`, { method: "POST", headers: { apikey } });
  expect(answer.status).toBe(204);
});
afterEach(async () => {
  await supabase.auth.signOut({ scope: "local" });
  cleanup();
});

/** Fills in the sign-in form and submits it. */
async function enter(verb, email = "ada@example.com", password = "secret words") {
  const person = userEvent.setup();
  for (const [label, text] of [["E-mail", email], ["Password", password]]) {
    await person.clear(await screen.findByLabelText(label));
    await person.type(screen.getByLabelText(label), text);
  }
  await person.click(screen.getByRole("button", { name: verb }));
  return person;
}

test("somebody signs up and writes notes", async () => {
  render(<App />);
  const ada = await enter("Sign up");
  for (const title of ["Milk", "Bread"]) {
    await ada.type(await screen.findByLabelText("Title"), title);
    await ada.click(screen.getByRole("button", { name: "Add" }));
    await screen.findByText(title);
    // The note may arrive over the socket before the insert is answered.
    await waitFor(() => expect(screen.getByLabelText("Title").value).toBe(""));
  }
  expect(screen.getAllByRole("listitem").map((item) => item.textContent)).toEqual(["Milk", "Bread"]);
});

test("nobody is left from the test before", async () => {
  render(<App />);
  await enter("Sign in");
  expect(await screen.findByText("Invalid login credentials")).toBeTruthy();
});

test("one's notes are nobody else's", async () => {
  render(<App />);
  const ada = await enter("Sign up");
  await ada.type(await screen.findByLabelText("Title"), "Mine");
  await ada.click(screen.getByRole("button", { name: "Add" }));
  await screen.findByText("Mine");
  await ada.click(screen.getByRole("button", { name: "Sign out" }));
  await enter("Sign up", "eve@example.com");
  await screen.findByText("Live");
  expect(screen.queryAllByRole("listitem")).toEqual([]);
});

test("the database refuses an empty title, and the page says so", async () => {
  render(<App />);
  const ada = await enter("Sign up");
  await ada.click(await screen.findByRole("button", { name: "Add" }));
  expect(await screen.findByText(/violates check constraint/)).toBeTruthy();
});
