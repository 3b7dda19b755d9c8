import { connectFerrobase } from "@ferrobase/testing";
import { afterEach, expect, test } from "vitest";

const ferrobase = connectFerrobase();

afterEach(() => ferrobase.reset());

test("people see their own notes only", async () => {
  const ada = await ferrobase.signedInClient({ email: "ada@example.com" });
  const bob = await ferrobase.signedInClient();
  expect((await ada.from("notes").insert({ title: "mine" })).error).toBeNull();
  expect((await ada.from("notes").select("title, owner")).data).toEqual([{ title: "mine", owner: ada.user.id }]);
  expect((await bob.from("notes").select()).data).toEqual([]);
});

test("a new person confirms the address with the code from the mail", async () => {
  const client = ferrobase.client();
  // The person of the test before is gone.
  const { data } = await client.auth.signUp({ email: "ada@example.com", password: "secret-Words-1" });
  expect(data.session).toBeNull();
  const [mail] = await ferrobase.inbox("ada@example.com");
  expect(mail.links[0]).toContain("/auth/v1/verify?");
  const confirmed = await client.auth.verifyOtp({ email: "ada@example.com", token: mail.codes[0], type: "email" });
  expect(confirmed.data.session?.user.email).toBe("ada@example.com");
  expect((await client.from("notes").select()).data).toEqual([]);
});
