/** Edge functions: shared modules, secrets, CORS, tokens, streaming, and a client inside. */
import { FunctionsHttpError } from "@supabase/supabase-js";
import { expect, test } from "vitest";
import { project } from "./started";

const here = project("functions");

test("a function has its secrets and sends its own CORS headers", async () => {
  const { data, error } = await here.client().functions.invoke("hello", { body: { name: "Ada" } });
  expect(error).toBeNull();
  expect(data).toEqual({ message: "good morning, Ada" });
  const asked = await fetch(`${here.url("FUNCTIONS_URL")}/hello`, { method: "OPTIONS", headers: { origin: "https://app.compat.test" } });
  expect([asked.status, asked.headers.get("access-control-allow-origin")]).toEqual([200, "https://app.compat.test"]);
});

test("verify_jwt decides who may call a function", async () => {
  expect((await fetch(`${here.url("FUNCTIONS_URL")}/hello`, { method: "POST", body: "{}" })).status).toBe(401);
  const open = await fetch(`${here.url("FUNCTIONS_URL")}/open/any/path`, { method: "POST" });
  expect(open.headers.get("x-path")).toBe("/open/any/path");
  expect(await open.text()).toBe("data: 1\n\ndata: 2\n\ndata: 3\n\n");
  const { error } = await here.client().functions.invoke("none");
  expect((error as FunctionsHttpError).context.status).toBe(404);
});

test("a client in a function acts as the caller", async () => {
  const client = here.client();
  await client.auth.signUp({ email: "rows@compat.test", password: "correct-Horse-7" });
  expect((await client.from("rows").insert({ id: 7 })).error).toBeNull();
  expect((await client.functions.invoke("rows")).data).toEqual({ rows: [{ id: 7 }], error: null });
  expect((await here.client().functions.invoke("rows")).data).toEqual({ rows: [], error: null });
});
