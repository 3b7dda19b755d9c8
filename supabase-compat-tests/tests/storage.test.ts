import { randomUUID } from "node:crypto";
import { gzipSync } from "node:zlib";
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

  it("are read, copied, moved and removed only as the version that is asked for", async () => {
    const { supabase, user } = await signedUp();
    const files = supabase.storage.from(bucket());
    const path = `${user.id}/versions.txt`;
    const version = async (of: string) => (await files.info(of)).data?.version ?? "";
    await files.upload(path, "one", { contentType: "text/plain" });
    const former = await version(path);
    await files.upload(path, "two", { contentType: "text/plain", upsert: true });
    const current = await version(path);
    expect(current).not.toBe(former);
    expect(await (await files.download(path, { versionId: current })).data?.text()).toBe("two");
    expect((await files.download(path, { versionId: former })).error).toBeTruthy();
    expect((await files.info(path, { versionId: current })).data).toMatchObject({ version: current });
    const missing = { message: "Object not found" };
    expect((await files.info(path, { versionId: former })).error).toMatchObject(missing);
    expect((await files.createSignedUrl(path, 60, { versionId: former })).error).toMatchObject(missing);
    expect((await files.copy(path, `${user.id}/copy.txt`, { sourceVersionId: former })).error).toMatchObject(missing);
    expect((await files.move(path, `${user.id}/moved.txt`, { sourceVersionId: former })).error).toMatchObject(missing);
    expect((await files.remove([{ path, versionId: former }])).data).toEqual([]);
    const signed = await files.createSignedUrl(path, 60, { versionId: current });
    expect(await (await fetch(signed.data?.signedUrl ?? "")).text()).toBe("two");
    expect((await files.copy(path, `${user.id}/copy.txt`, { sourceVersionId: current })).error).toBeNull();
    await files.upload(path, "three", { contentType: "text/plain", upsert: true });
    expect((await fetch(signed.data?.signedUrl ?? "")).status).toBe(400);
    expect((await files.remove([{ path, versionId: await version(path) }, `${user.id}/copy.txt`])).data).toHaveLength(2);
  });

  it("are decoded by clients if they were uploaded encoded", async () => {
    const { supabase, user } = await signedUp();
    const files = supabase.storage.from(bucket());
    const packed = gzipSync("hello hello");
    const [raw, form] = [`${user.id}/raw.txt`, `${user.id}/form.txt`];
    expect((await files.upload(raw, packed, { contentType: "text/plain", contentEncoding: "gzip" })).error).toBeNull();
    const blob = new Blob([new Uint8Array(packed)], { type: "text/plain" });
    expect((await files.upload(form, blob, { contentEncoding: "gzip" })).error).toBeNull();
    for (const path of [raw, form]) {
      expect(await (await files.download(path)).data?.text()).toBe("hello hello");
      expect((await files.info(path)).data).toMatchObject({ contentEncoding: "gzip", size: packed.length });
    }
    const cleared = { copyMetadata: false, metadata: { contentEncoding: "" } };
    expect((await files.copy(raw, `${user.id}/copy.txt`, cleared)).error).toBeNull();
    const copy = await (await files.download(`${user.id}/copy.txt`)).data?.arrayBuffer();
    expect(copy && Buffer.from(copy).equals(packed)).toBe(true);
  });

  it("are found by their exact name", async () => {
    const { supabase, user } = await signedUp();
    const files = supabase.storage.from(bucket());
    const path = `${user.id}/note.txt`;
    for (const name of [path, `${path}.bak`]) await files.upload(name, "x", { contentType: "text/plain" });
    expect((await files.list(path, { exactMatch: true })).data?.map((file) => file.name)).toEqual([path]);
    expect((await files.listV2({ prefix: path, exactMatch: true })).data?.objects.map((file) => file.name)).toEqual([path]);
    expect((await files.list(user.id, { noncurrentVersions: "only" })).data).toEqual([]);
    expect((await files.listV2({ prefix: user.id, noncurrentVersions: "only" })).data?.objects).toEqual([]);
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
