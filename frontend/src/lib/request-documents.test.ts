import { beforeEach, expect, it, vi } from "vitest";
import { uploadToRequest, withdrawUpload } from "./request-documents";

/** The store and the table, and what each of the next writes of a row does. */
const server = vi.hoisted(() => ({
  objects: new Set<string>(),
  rows: [] as { id: string; path: string }[],
  /** "lost": written, but the answer does not arrive. "cut": neither. */
  writes: [] as ("ok" | "lost" | "cut" | { code: string; message: string })[],
  /** Whether rows can be read. */
  readable: true,
  uploads: 0,
}));
const unreachable = { code: "", message: "TypeError: Failed to fetch" };

vi.mock("./env", () => ({ loadAppConfig: () => Promise.resolve({ publishableKey: "key", apiUrl: "" }) }));
vi.mock("./resumable", () => ({
  uploadResumable: ({ path }: { path: string }) => {
    server.objects.add(path);
    server.uploads += 1;
    return Promise.resolve();
  },
}));
vi.mock("./supabase", () => {
  const insert = ({ path }: { path: string }) => {
    const what = server.writes.shift() ?? "ok";
    const there = server.rows.some((row) => row.path === path);
    const id = `row-${server.rows.length + 1}`;
    if ((what === "ok" || what === "lost") && !there) server.rows.push({ id, path });
    const error =
      typeof what === "object"
        ? what
        : what !== "ok"
          ? unreachable
          : there
            ? { code: "23505", message: "duplicate key" }
            : null;
    return { select: () => ({ single: () => Promise.resolve({ data: error ? null : { id }, error }) }) };
  };
  const rowAt = (path: string) => server.rows.find((row) => row.path === path) ?? null;
  const select = () => ({
    eq: () => ({
      eq: (_: string, path: string) => ({
        maybeSingle: () =>
          Promise.resolve(server.readable ? { data: rowAt(path), error: null } : { data: null, error: unreachable }),
      }),
    }),
  });
  const remove = () => ({
    eq: () => ({
      eq: (_: string, path: string) => {
        server.rows = server.rows.filter((row) => row.path !== path);
        return Promise.resolve({ error: null });
      },
    }),
  });
  const client = {
    from: () => ({ insert, select, delete: remove }),
    storage: {
      from: () => ({
        remove: (paths: string[]) => {
          for (const path of paths) server.objects.delete(path);
          return Promise.resolve({ error: null });
        },
      }),
    },
  };
  return { getSupabase: () => Promise.resolve(client) };
});

const paper = () => new File(["x"], "letter.pdf", { type: "application/pdf" });
/** Rows whose object is missing make a request impossible to send. */
const broken = () => server.rows.filter(({ path }) => !server.objects.has(path));

beforeEach(() => Object.assign(server, { objects: new Set(), rows: [], writes: [], readable: true, uploads: 0 }));

it("a document whose answer was lost has arrived", async () => {
  server.writes = ["lost"];
  expect(await uploadToRequest("r1", paper())).toMatchObject({ id: "row-1", name: "letter.pdf", slot: false });
  expect(server.objects.size).toBe(1);
});

it("as long as it is unknown whether the row was written, the object stays", async () => {
  server.writes = ["lost"];
  server.readable = false;
  await expect(uploadToRequest("r1", paper())).rejects.toMatchObject(unreachable);
  expect(broken()).toEqual([]);
});

it("sending the file again continues with the stored object and makes one row", async () => {
  for (const first of ["lost", "cut"] as const) {
    Object.assign(server, { objects: new Set(), rows: [], writes: [first], readable: false, uploads: 0 });
    const file = paper();
    await expect(uploadToRequest("r1", file)).rejects.toMatchObject(unreachable);
    server.readable = true;
    expect(await uploadToRequest("r1", file)).toMatchObject({ id: "row-1" });
    expect([server.uploads, server.rows.length, server.objects.size]).toEqual([1, 1, 1]);
  }
});

it("a refused document leaves no object", async () => {
  server.writes = [{ code: "42501", message: "new row violates row-level security policy" }];
  await expect(uploadToRequest("r1", paper())).rejects.toMatchObject({ code: "42501" });
  expect(server.objects.size).toBe(0);
});

it("a file that is removed after a lost answer is taken back", async () => {
  server.writes = ["lost"];
  server.readable = false;
  const file = paper();
  await expect(uploadToRequest("r1", file)).rejects.toMatchObject(unreachable);
  await withdrawUpload(file);
  expect([server.rows.length, server.objects.size]).toEqual([0, 0]);
});
