import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { anon, project, signedUp } from "./project.js";

// Policies of supabase/migrations: everybody signed in keeps files in a folder of their own name.
const bucket = () => "compat";

describe("objects", () => {
  it("are uploaded, listed, read, signed and removed by their owner", async () => {
    const { supabase, user } = await signedUp();
    const files = supabase.storage.from(bucket());
    const path = `${user.id}/letter.txt`;
    const uploaded = await files.upload(path, "hello", { contentType: "text/plain" });
    expect(uploaded.data).toMatchObject({ path, fullPath: `${bucket()}/${path}` });
    expect((await files.upload(path, "again")).error).toMatchObject({ statusCode: "409", message: "The resource already exists" });
    expect((await files.upload(path, "again", { contentType: "text/plain", upsert: true })).error).toBeNull();
    expect(await (await files.download(path)).data?.text()).toBe("again");
    expect((await files.list(user.id)).data?.map((file) => file.name)).toEqual(["letter.txt"]);
    expect((await files.exists(path)).data).toBe(true);
    const signed = await files.createSignedUrl(path, 60, { download: "my letter.txt" });
    const byLink = await fetch(signed.data?.signedUrl ?? "");
    expect(await byLink.text()).toBe("again");
    expect(byLink.headers.get("content-disposition")).toContain("attachment");
    const many = await files.createSignedUrls([path, `${user.id}/none`], 60);
    expect(many.data?.map((one) => Boolean(one.signedUrl))).toEqual([true, false]);
    expect((await files.remove([path])).data).toHaveLength(1);
    expect((await files.download(path)).error).toBeTruthy();
  });

  it("are inaccessible to all others", async () => {
    const alice = await signedUp("alice");
    const bob = await signedUp("bob");
    const path = `${alice.user.id}/${randomUUID()}.txt`;
    await alice.supabase.storage.from(bucket()).upload(path, "mine");
    expect((await bob.supabase.storage.from(bucket()).upload(`${alice.user.id}/x.txt`, "x")).error).toMatchObject({
      statusCode: "403",
      message: "new row violates row-level security policy",
    });
    expect((await bob.supabase.storage.from(bucket()).createSignedUrl(path, 60)).error).toMatchObject({ message: "Object not found" });
    expect((await anon().storage.from(bucket()).download(path)).error).toBeTruthy();
    expect((await bob.supabase.storage.from(bucket()).remove([path])).data).toEqual([]);
  });

  it("can be uploaded without an account by a signed URL", async () => {
    const { supabase, user } = await signedUp();
    const path = `${user.id}/signed.txt`;
    const signed = await supabase.storage.from(bucket()).createSignedUploadUrl(path);
    const stored = await anon().storage.from(bucket()).uploadToSignedUrl(path, signed.data?.token ?? "", new Blob(["by link"], { type: "text/plain" }));
    expect(stored.error).toBeNull();
    expect(await (await supabase.storage.from(bucket()).download(path)).data?.text()).toBe("by link");
  });

  it("respect their bucket's limits and need a token", async () => {
    const { supabase, user } = await signedUp();
    const large = await supabase.storage.from(bucket()).upload(`${user.id}/large`, "x".repeat(5000));
    expect(large.error).toMatchObject({ statusCode: "413", message: "The object exceeded the maximum allowed size" });
    const nobody = await fetch(`${project.url}/storage/v1/object/${bucket()}/x`, { method: "POST", body: "x" });
    expect(nobody.status).toBe(400);
    expect((await supabase.storage.from("nothing").upload("x", "x")).error).toMatchObject({ message: "Bucket not found" });
  });
});
