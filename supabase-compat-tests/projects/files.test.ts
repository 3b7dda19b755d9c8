/** Declared buckets with their files and limits, and policies on `storage.objects`. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { project } from "./started";

const here = project("files");

async function person(name: string) {
  const client = here.client();
  const { data, error } = await client.auth.signUp({ email: `${name}@compat.test`, password: "correct-Horse-7" });
  if (error || !data.user) throw error ?? new Error("no account");
  return { storage: client.storage.from("drawers"), id: data.user.id };
}

test("files from the project's folder are in their bucket", async () => {
  const pictures = here.client().storage.from("pictures");
  for (const name of ["dot.svg", "deep/two.svg"]) {
    const answer = await fetch(pictures.getPublicUrl(name).data.publicUrl);
    expect(answer.headers.get("content-type")).toBe("image/svg+xml");
    expect(await answer.text()).toBe(await readFile(join(here.folder, "supabase/pictures", name), "utf8"));
  }
});

test("users access only their own folder, within its limit", async () => {
  const [ada, bob] = await Promise.all([person("ada"), person("bob")]);
  expect((await ada.storage.upload(`${ada.id}/note.txt`, "secret", { contentType: "text/plain" })).error).toBeNull();
  expect((await bob.storage.upload(`${ada.id}/other.txt`, "x")).error?.message).toMatch(/row-level security/);
  expect((await bob.storage.download(`${ada.id}/note.txt`)).error).not.toBeNull();
  expect((await ada.storage.upload(`${ada.id}/big.txt`, "x".repeat(1025))).error?.message).toMatch(/exceeded the maximum allowed size/);
  const signed = await ada.storage.createSignedUrl(`${ada.id}/note.txt`, 60);
  expect(await (await fetch(signed.data?.signedUrl ?? "")).text()).toBe("secret");
  const refused = await here.service().storage.from("pictures").upload("note.txt", "no picture", { contentType: "text/plain" });
  expect(refused.error?.message).toMatch(/mime type text\/plain is not supported/);
});

test("the storage commands list, copy, move and delete", async () => {
  const at = (path: string) => `ss:///pictures${path}`;
  expect((await here.command("storage", "ls", "-r", at("/"))).split("\n").sort()).toEqual(["", "/pictures/deep/two.svg", "/pictures/dot.svg"]);
  await here.command("storage", "cp", "-r", "supabase/pictures", at("/copied"));
  await here.command("storage", "mv", at("/copied/dot.svg"), at("/moved.svg"));
  await here.command("storage", "cp", at("/moved.svg"), "moved.svg");
  expect(await readFile(join(here.folder, "moved.svg"), "utf8")).toContain('width="1"');
  await here.command("storage", "cp", "-r", at("/deep"), "there");
  expect(await readFile(join(here.folder, "there/two.svg"), "utf8")).toContain('width="2"');
  await here.command("storage", "rm", "-r", "--yes", at("/copied"), at("/moved.svg"));
  expect(await here.command("storage", "ls", at("/"))).toBe("deep/\ndot.svg\n");
  await expect(here.command("storage", "cp", at("/none.svg"), "none.svg")).rejects.toThrow(/Object not found/);
});
