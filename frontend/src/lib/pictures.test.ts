import { beforeEach, expect, it, vi } from "vitest";
import { replacePicture } from "./pictures";

const stored = vi.hoisted(() => ({ names: new Set<string>() }));
vi.mock("./supabase", () => {
  const pictures = {
    upload: (path: string) => {
      stored.names.add(path);
      return Promise.resolve({ error: null });
    },
    remove: (paths: string[]) => {
      for (const path of paths) stored.names.delete(path);
      return Promise.resolve({ error: null });
    },
    list: () => Promise.resolve({ data: [] }),
  };
  return { getSupabase: () => Promise.resolve({ storage: { from: () => pictures } }) };
});

const replace = (pointTo: (path: string) => Promise<void>) =>
  replacePicture({
    bucket: "logos",
    folder: "np-001",
    file: new File(["x"], "logo.png", { type: "image/png" }),
    extension: ".png",
    before: "np-001/old.png",
    pointTo,
  });

beforeEach(() => {
  stored.names = new Set(["np-001/old.png"]);
});

it("the new picture replaces the old one", async () => {
  let shown = "";
  await replace((path) => {
    shown = path;
    return Promise.resolve();
  });
  expect([...stored.names]).toEqual([shown]);
});

it("a picture that the row may show stays when the answer is lost", async () => {
  let shown = "";
  const lost = { code: "", message: "TypeError: Failed to fetch" };
  const change = replace((path) => {
    shown = path;
    return Promise.reject(lost as never);
  });
  await expect(change).rejects.toBe(lost);
  expect(stored.names).toContain(shown);
});

it("a refused picture is removed", async () => {
  const refusal = { code: "42501", message: "permission denied" };
  await expect(replace(() => Promise.reject(refusal as never))).rejects.toBe(refusal);
  expect([...stored.names]).toEqual(["np-001/old.png"]);
});
