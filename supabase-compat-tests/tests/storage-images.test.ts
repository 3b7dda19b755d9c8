import { randomUUID } from "node:crypto";
import { deflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { anon, signedUp } from "./project.js";

// Pictures through supabase-js: `transform` of a download, of a signed and of a public address.
const bucket = "compat";

/** A PNG of one colour, 8 bits of grey. */
function png(width: number, height: number): Buffer {
  const table = Array.from({ length: 256 }, (_, n) => {
    let c = n;
    for (let bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
    return c >>> 0;
  });
  const crc = (bytes: Buffer) => (bytes.reduce((c, byte) => ((table[(c ^ byte) & 0xff] ?? 0) ^ (c >>> 8)) >>> 0, 0xffffffff) ^ 0xffffffff) >>> 0;
  const chunk = (name: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc(body));
    return Buffer.concat([length, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head[8] = 8;
  const rows = Buffer.concat(Array.from({ length: height }, () => Buffer.concat([Buffer.from([0]), Buffer.alloc(width, 99)])));
  const start = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([start, chunk("IHDR", head), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

/** Width and height in a PNG's head. */
async function size(body: Blob | Response): Promise<[number, number]> {
  const bytes = Buffer.from(await body.arrayBuffer());
  expect(bytes.subarray(1, 4).toString()).toBe("PNG");
  return [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
}

describe("images", () => {
  it("are resized for their owner and by link only", async () => {
    const { supabase, user } = await signedUp();
    const files = supabase.storage.from(bucket);
    const path = `${user.id}/${randomUUID()}.png`;
    const source = png(80, 40);
    expect((await files.upload(path, source, { contentType: "image/png" })).error).toBeNull();

    const small = await files.download(path, { transform: { width: 20, height: 20, format: "origin" } });
    expect(small.error).toBeNull();
    expect(small.data && (await size(small.data))).toEqual([20, 20]);
    const contained = await files.download(path, { transform: { width: 20, height: 20, resize: "contain", format: "origin" } });
    expect(contained.data && (await size(contained.data))).toEqual([20, 10]);

    const signed = await files.createSignedUrl(path, 60, { transform: { width: 10, format: "origin" } });
    expect(signed.data?.signedUrl).toContain("/render/image/sign/");
    const byLink = await fetch(signed.data?.signedUrl ?? "");
    expect(byLink.headers.get("content-type")).toBe("image/png");
    expect(await size(byLink)).toEqual([10, 5]);
    const wider = await fetch((signed.data?.signedUrl ?? "").replace("/render/image/sign/", "/object/sign/"));
    expect(wider.status).toBe(400);

    const address = files.getPublicUrl(path, { transform: { width: 10 } }).data.publicUrl;
    expect(address).toContain("/render/image/public/");
    expect((await fetch(address)).status).toBe(400);
    expect((await anon().storage.from(bucket).download(path, { transform: { width: 10 } })).error).toBeTruthy();
  });
});
