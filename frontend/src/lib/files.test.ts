import { describe, expect, it } from "vitest";
import {
  ADDITIONAL_FILE_RULES,
  DEFAULT_FILE_RULES,
  LOGO_FILE_RULES,
  PHOTO_FILE_RULES,
  REQUEST_FILE_RULES,
  sortFiles,
} from "./files";

const MB = 1024 * 1024;
function file(name: string, type: string, size = 1000): File {
  const made = new File(["x"], name, { type });
  Object.defineProperty(made, "size", { value: size });
  return made;
}
const reasons = (files: File[], already: number, rules = DEFAULT_FILE_RULES) =>
  sortFiles(files, already, rules).rejections.map((rejection) => rejection.reason);

describe("sortFiles", () => {
  it("accepts jpeg, png and pdf of exactly 10 MB", () => {
    const chosen = [file("a.jpg", "image/jpeg"), file("b.png", "image/png"), file("c.pdf", "application/pdf", 10 * MB)];
    expect(sortFiles(chosen, 0, DEFAULT_FILE_RULES).accepted).toEqual(chosen);
  });
  it("rejects one byte more and other types", () => {
    expect(reasons([file("c.pdf", "application/pdf", 10 * MB + 1)], 0)).toEqual(["size"]);
    expect(reasons([file("v.mov", "video/quicktime")], 0)).toEqual(["type"]);
    expect(reasons([file("w.docx", REQUEST_FILE_RULES.accept[4] ?? "")], 0)).toEqual(["type"]);
  });
  it("accepts Word documents with requests, by type or by name", () => {
    expect(reasons([file("w.docx", ""), file("w.doc", "application/msword")], 0, REQUEST_FILE_RULES)).toEqual([]);
  });
  it("drops files beyond the limit and reports each", () => {
    const chosen = [1, 2, 3].map((n) => file(`${n}.pdf`, "application/pdf"));
    const { accepted, rejections } = sortFiles(chosen, 4, DEFAULT_FILE_RULES);
    expect(accepted).toHaveLength(1);
    expect(rejections.map((rejection) => rejection.reason)).toEqual(["count", "count"]);
  });
  it("has the specified limits for later documents, photos and logos", () => {
    expect(ADDITIONAL_FILE_RULES.maxFiles).toBe(10);
    expect(reasons([file("p.heic", "image/heic")], 0, PHOTO_FILE_RULES)).toEqual([]);
    expect(reasons([file("l.png", "image/png", 5 * MB + 1)], 0, LOGO_FILE_RULES)).toEqual(["size"]);
    expect(reasons([file("l.gif", "image/gif")], 0, LOGO_FILE_RULES)).toEqual(["type"]);
  });
});
