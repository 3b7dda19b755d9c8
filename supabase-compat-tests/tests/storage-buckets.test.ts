import { randomUUID } from "node:crypto";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { project, run, service } from "./project.js";

let admin: ReturnType<typeof service>;
const made: string[] = [];
const name = (kind: string) => {
  const id = `${kind}-${run}-${randomUUID().slice(0, 8)}`;
  made.push(id);
  return id;
};

beforeEach(() => {
  admin = service();
});
afterAll(async () => {
  for (const id of made) {
    await admin.storage.emptyBucket(id);
    await admin.storage.deleteBucket(id);
  }
});

describe("buckets", () => {
  it("are created, read, listed, updated, emptied and deleted", async () => {
    const id = name("life");
    const created = await admin.storage.createBucket(id, { public: false, fileSizeLimit: "1MB", allowedMimeTypes: ["text/*"] });
    expect(created).toMatchObject({ data: { name: id }, error: null });
    expect((await admin.storage.createBucket(id)).error).toMatchObject({ statusCode: "409", message: "The resource already exists" });
    const shown = await admin.storage.getBucket(id);
    expect(shown.data).toMatchObject({ id, name: id, public: false, file_size_limit: 1_000_000, allowed_mime_types: ["text/*"] });
    expect((await admin.storage.listBuckets({ search: id, limit: 2, sortColumn: "name", sortOrder: "desc" })).data).toHaveLength(1);
    expect((await admin.storage.updateBucket(id, { public: true, allowedMimeTypes: null, fileSizeLimit: null })).data).toEqual({
      message: "Successfully updated",
    });
    await admin.storage.from(id).upload("a.txt", "a");
    expect((await admin.storage.deleteBucket(id)).error).toMatchObject({ statusCode: "409" });
    expect((await admin.storage.emptyBucket(id)).error).toBeNull();
    await expect.poll(async () => (await admin.storage.from(id).list()).data?.length).toBe(0);
    expect((await admin.storage.deleteBucket(id)).data).toEqual({ message: "Successfully deleted" });
    expect((await admin.storage.getBucket(id)).error).toMatchObject({ statusCode: "404", message: "Bucket not found" });
  });
});

describe("objects across buckets", () => {
  it("are copied, moved and described", async () => {
    const [from, to] = [name("from"), name("to")];
    await admin.storage.createBucket(from);
    await admin.storage.createBucket(to, { public: true });
    const files = admin.storage.from(from);
    await files.upload("a/one.txt", "one", { contentType: "text/plain", cacheControl: "60", metadata: { who: "me" } });
    expect((await files.copy("a/one.txt", "a/two.txt", { destinationBucket: to })).data).toMatchObject({ path: `${to}/a/two.txt` });
    expect((await files.move("a/one.txt", "b/three.txt")).data).toEqual({ message: "Successfully moved" });
    expect((await files.info("b/three.txt")).data).toMatchObject({ name: "b/three.txt", size: 3, contentType: "text/plain", metadata: { who: "me" } });
    expect((await files.exists("a/one.txt")).data).toBe(false);
    const address = admin.storage.from(to).getPublicUrl("a/two.txt", { download: "eins_zwei.txt" }).data.publicUrl;
    const open = await fetch(address);
    expect(await open.text()).toBe("one");
    expect(open.headers.get("content-disposition")).toBe("attachment; filename=eins_zwei.txt; filename*=UTF-8''eins_zwei.txt");
    expect((await files.move("none", "x")).error).toMatchObject({ message: "Object not found" });
    const put = await fetch(`${project.url}/storage/v1/object/${from}/new.txt`, {
      method: "PUT",
      headers: { apikey: project.serviceKey, authorization: `Bearer ${project.serviceKey}` },
      body: "made by PUT",
    });
    expect(put.status).toBe(200);
    expect((await files.update("new.txt", "changed")).error).toBeNull();
    expect(await (await files.download("new.txt")).data?.text()).toBe("changed");
  });

  it("are listed in pages", async () => {
    const id = name("pages");
    await admin.storage.createBucket(id);
    const files = admin.storage.from(id);
    for (const path of ["a/1", "a/2", "b", "c/3", "d"]) await files.upload(path, path);
    const names: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await files.listV2({ limit: 2, with_delimiter: true, cursor });
      expect(page.error).toBeNull();
      names.push(...[...(page.data?.folders ?? []), ...(page.data?.objects ?? [])].map((entry) => entry.name));
      cursor = page.data?.hasNext ? page.data.nextCursor : undefined;
    } while (cursor);
    expect(names.sort()).toEqual(["a/", "b", "c/", "d"]);
    expect((await files.list("a", { limit: 1, offset: 1, sortBy: { column: "name", order: "asc" } })).data?.map((file) => file.name)).toEqual(["2"]);
  });
});
