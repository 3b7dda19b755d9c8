// A file with a copy of its own runs beside all others.
import { startFerrobase } from "@ferrobase/testing";
import { afterAll, beforeAll, expect, test } from "vitest";

let ferrobase;

beforeAll(async () => {
  ferrobase = await startFerrobase();
}, 60_000);

afterAll(() => ferrobase.stop());

test("nobody else writes here", async () => {
  expect(ferrobase.url).not.toBe(process.env.SUPABASE_URL);
  expect(ferrobase.smtpPort).not.toBe(Number(process.env.MAILPIT_SMTP_PORT));
  expect(ferrobase.env.MAILPIT_SMTP_PORT).toBe(String(ferrobase.smtpPort));
  const person = await ferrobase.signedInClient();
  expect((await person.from("notes").insert({ title: "mine" })).error).toBeNull();
  expect((await person.from("notes").select("title")).data).toEqual([{ title: "mine" }]);
});
