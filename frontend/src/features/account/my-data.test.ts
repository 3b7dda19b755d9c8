import { strFromU8, unzipSync } from "fflate";
import { expect, it } from "vitest";
import { archiveNames, archiveOf } from "./my-data";

it("gives every file a unique name inside the archive", () => {
  expect(archiveNames(["r1/pay.pdf", "r1/pay.pdf", "../../etc/passwd", "r1/.hidden", "/a//b"])).toEqual([
    "files/r1/pay.pdf",
    "files/r1/pay (2).pdf",
    "files/etc/passwd",
    "files/r1/.hidden",
    "files/a/b",
  ]);
});

it("packs the data and the documents and skips a missing document", async () => {
  const data = {
    account: { email: "marie@test.example" },
    files: [
      { bucket: "request-documents", path: "r1/x", name: "r1/letter.txt" },
      { bucket: "request-documents", path: "r1/y", name: "r1/gone.txt" },
    ],
  };
  const archive = unzipSync(
    await archiveOf(data, (_, path) => Promise.resolve(path === "r1/x" ? new TextEncoder().encode("Dear Sir") : null)),
  );
  expect(Object.keys(archive)).toEqual(["about-you.json", "files/r1/letter.txt"]);
  expect(JSON.parse(strFromU8(archive["about-you.json"] ?? new Uint8Array()))).toEqual(data);
  expect(strFromU8(archive["files/r1/letter.txt"] ?? new Uint8Array())).toBe("Dear Sir");
});
