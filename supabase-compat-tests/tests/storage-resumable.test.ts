import { randomBytes, randomUUID } from "node:crypto";
import * as tus from "tus-js-client";
import { describe, expect, it } from "vitest";
import { anon, project, signedUp } from "./project.js";

// tus-js-client as Supabase's guide sets it up; the bucket takes 4,000 bytes, so that the pieces are small.
const bucket = "compat";

interface Sent {
  path: string;
  bytes: Buffer;
  headers: Record<string, string>;
  endpoint?: string;
  onProgress?: (upload: tus.Upload, sent: number) => void;
}

function upload({ path, bytes, headers, endpoint = "", onProgress }: Sent): Promise<void> {
  return new Promise((resolve, reject) => {
    const upload: tus.Upload = new tus.Upload(bytes, {
      endpoint: `${project.url}/storage/v1/upload/resumable${endpoint}`,
      retryDelays: [0, 100, 500],
      headers,
      uploadDataDuringCreation: true,
      removeFingerprintOnSuccess: true,
      metadata: { bucketName: bucket, objectName: path, contentType: "text/plain", cacheControl: "3600" },
      chunkSize: 1000,
      onError: reject,
      onProgress: (sent) => onProgress?.(upload, sent),
      onSuccess: () => resolve(),
    });
    upload.start();
  });
}

describe("resumable uploads", () => {
  it("are sent in parts by their owner only", async () => {
    const { supabase, user, session } = await signedUp();
    const path = `${user.id}/${randomUUID()}.txt`;
    const bytes = Buffer.from(randomBytes(1750).toString("hex"));
    const headers = { authorization: `Bearer ${session.access_token}`, "x-upsert": "true" };
    await upload({ path, bytes, headers });
    const stored = await supabase.storage.from(bucket).download(path);
    expect(Buffer.from((await stored.data?.arrayBuffer()) ?? new ArrayBuffer(0)).equals(bytes)).toBe(true);
    await expect(upload({ path: `${randomUUID()}/x`, bytes, headers })).rejects.toThrow("row-level security");
    await expect(upload({ path: `${user.id}/large`, bytes: randomBytes(5000), headers })).rejects.toThrow("Maximum size exceeded");
  });

  it("resume after a pause", async () => {
    const { supabase, user, session } = await signedUp();
    const path = `${user.id}/${randomUUID()}.txt`;
    const bytes = Buffer.from(randomBytes(1750).toString("hex"));
    let paused = false;
    const whole = upload({
      path,
      bytes,
      headers: { authorization: `Bearer ${session.access_token}` },
      onProgress: (running, sent) => {
        if (paused || sent < 1000) return;
        paused = true;
        void running.abort().then(() => running.start());
      },
    });
    await whole;
    expect(paused).toBe(true);
    const stored = await supabase.storage.from(bucket).download(path);
    expect(Buffer.from((await stored.data?.arrayBuffer()) ?? new ArrayBuffer(0)).equals(bytes)).toBe(true);
  });

  it("need no account with a signed token", async () => {
    const { supabase, user } = await signedUp();
    const path = `${user.id}/${randomUUID()}.txt`;
    const signed = await supabase.storage.from(bucket).createSignedUploadUrl(path);
    await upload({ path, bytes: Buffer.from("by link"), headers: { "x-signature": signed.data?.token ?? "" }, endpoint: "/sign" });
    expect(await (await supabase.storage.from(bucket).download(path)).data?.text()).toBe("by link");
    expect((await anon().storage.from(bucket).download(path)).error).toBeTruthy();
  });
});
