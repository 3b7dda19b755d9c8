import { FunctionsHttpError, FunctionsRelayError } from "@supabase/supabase-js";
import { describe, expect, it } from "vitest";
import { anon, signedUp } from "./project.js";

describe("functions.invoke", () => {
  it("passes the body on and knows the caller's role", async () => {
    const asAnon = await anon().functions.invoke("compat-echo", { body: { a: [1, 2] } });
    expect(asAnon).toMatchObject({ error: null, data: { got: { a: [1, 2] }, role: "anon" } });
    const { supabase } = await signedUp();
    const asUser = await supabase.functions.invoke("compat-echo", { body: { b: 1 } });
    expect(asUser.data).toEqual({ got: { b: 1 }, role: "authenticated" });
  });

  it("ignores a region and accepts a call without a body", async () => {
    const { data, error } = await anon().functions.invoke("compat-echo", { region: "eu-west-1" as never });
    expect(error).toBeNull();
    expect(data.role).toBe("anon");
  });

  it("returns a relay error for an unknown function", async () => {
    const { error } = await anon().functions.invoke("compat-missing");
    expect(error).toBeInstanceOf(FunctionsRelayError);
    expect((error as FunctionsRelayError).context.status).toBe(404);
  });

  it("rejects a body that is not JSON", async () => {
    const { error } = await anon().functions.invoke("compat-echo", { body: "{", headers: { "content-type": "application/json" } });
    expect(error).toBeInstanceOf(FunctionsHttpError);
    expect((error as FunctionsHttpError).context.status).toBe(400);
  });
});
