/**
 * Resumable uploads by TUS 1.0.0 at `/storage/v1/upload/resumable` (docs/storage.md). A dropped connection loses only
 * the bytes in flight. supabase-js has no such call.
 */
import { loadAppConfig } from "./env";

export interface ResumableUpload {
  bucket: string;
  /** Object name. */
  path: string;
  file: Blob;
  /** MIME type. */
  type: string;
  /**
   * The authorization headers, requested each time because the session may be renewed. `signed` uses the endpoint for
   * signed links.
   */
  headers: () => Promise<Record<string, string>>;
  signed: boolean;
  signal?: AbortSignal;
  /** Percent of the file that has left this device. */
  onProgress?: (percent: number) => void;
}

/** Pauses in ms between attempts that fail although online; after the last one the upload fails. */
export const PAUSES_MS = [1_000, 2_000, 4_000, 8_000, 16_000];

/** A refusal by the server; `status` has the reason (`lib/errors`). */
class UploadRefused extends Error {
  constructor(
    readonly status: number,
    text: string,
  ) {
    super(text.trim() || `the upload was answered with ${status}`);
  }
}

/**
 * The server could not be reached, could not answer just now, or has more of the file than was said (409): a browser sends a request
 * again by itself when its connection broke, and what the first one brought is there by then.
 */
const mayPass = (error: unknown) =>
  !(error instanceof UploadRefused) || error.status >= 500 || [409, 423, 429].includes(error.status);

interface Answer {
  status: number;
  text: string;
  header: (name: string) => string | null;
}

/** Uses XMLHttpRequest, because fetch does not report upload progress. */
function send(
  method: string,
  url: string,
  headers: Record<string, string>,
  body: Blob | null,
  signal: AbortSignal | undefined,
  onSent?: (bytes: number) => void,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const request = new XMLHttpRequest();
    const stop = () => request.abort();
    signal?.addEventListener("abort", stop);
    request.open(method, url);
    for (const [name, value] of Object.entries({ "Tus-Resumable": "1.0.0", ...headers }))
      request.setRequestHeader(name, value);
    if (onSent) request.upload.onprogress = ({ loaded }) => onSent(loaded);
    request.onload = () =>
      resolve({
        status: request.status,
        text: request.responseText,
        header: (name) => request.getResponseHeader(name),
      });
    request.onerror = () => reject(new TypeError("Failed to fetch"));
    request.onabort = () => reject((signal?.reason as Error | undefined) ?? new TypeError("Failed to fetch"));
    request.onloadend = () => signal?.removeEventListener("abort", stop);
    request.send(body);
  });
}

const inBase64 = (text: string) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

/** Resolves when online again or after the pause, and at once if aborted. */
function pause(ms: number | null, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = ms === null ? undefined : setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      window.removeEventListener("online", done);
      signal?.removeEventListener("abort", done);
      resolve();
    }
    window.addEventListener("online", done);
    signal?.addEventListener("abort", done);
  });
}

/** Sends the whole file. Offline it waits, however long; it throws refusals of the server. */
export async function uploadResumable(upload: ResumableUpload): Promise<void> {
  const { file, signal, onProgress } = upload;
  const { apiUrl } = await loadAppConfig();
  const door = `${apiUrl}/storage/v1/upload/resumable${upload.signed ? "/sign" : ""}`;
  let location: string | null = null;
  let offset = 0;
  let failures = 0;
  let known = true;

  const ask = async (method: string, url: string, headers: Record<string, string>, body: Blob | null = null) => {
    const from = offset;
    const answer = await send(method, url, { ...(await upload.headers()), ...headers }, body, signal, (bytes) =>
      onProgress?.(Math.min(99, ((from + bytes) / file.size) * 100)),
    );
    if (answer.status >= 400) throw new UploadRefused(answer.status, answer.text);
    return answer;
  };

  const step = async (): Promise<void> => {
    if (location === null) {
      const metadata = { bucketName: upload.bucket, objectName: upload.path, contentType: upload.type };
      const made = await ask("POST", door, {
        "Upload-Length": String(file.size),
        "Upload-Metadata": Object.entries(metadata)
          .map(([name, value]) => `${name} ${inBase64(value)}`)
          .join(","),
      });
      const given = made.header("Location");
      if (given === null) throw new UploadRefused(500, "the upload has no address");
      location = new URL(given, door).href;
    }
    if (!known) {
      offset = Number((await ask("HEAD", location, {})).header("Upload-Offset") ?? 0);
      known = true;
    }
    if (offset >= file.size) return;
    known = false;
    const written = await ask(
      "PATCH",
      location,
      { "Upload-Offset": String(offset), "Content-Type": "application/offset+octet-stream" },
      file.slice(offset),
    );
    offset = Number(written.header("Upload-Offset") ?? file.size);
    known = true;
    failures = 0;
  };

  while (location === null || offset < file.size) {
    const before = offset;
    try {
      await step();
    } catch (error) {
      signal?.throwIfAborted();
      // the upload expired on the server, so start again
      const gone = location !== null && error instanceof UploadRefused && [404, 410].includes(error.status);
      if (!gone && !mayPass(error)) throw error;
      if (gone) {
        location = null;
        offset = 0;
        known = true;
      }
      if (offset > before) failures = 0;
      if (!navigator.onLine) {
        await pause(null, signal);
      } else {
        const ms = PAUSES_MS[failures];
        if (ms === undefined) throw error;
        failures += 1;
        await pause(ms, signal);
      }
      signal?.throwIfAborted();
    }
  }
  onProgress?.(100);
}
