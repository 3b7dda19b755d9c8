import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { uploadResumable } from "./resumable";

vi.mock("./env", () => ({
  loadAppConfig: () => Promise.resolve({ apiUrl: "https://api.example", publishableKey: "k" }),
}));

interface Made {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string;
}

/** A server that accepts `bites` bytes of each PATCH and then drops the connection; null: all of it. */
let bites: (number | null)[] = [];
let stored = "";
let made: Made[] = [];
let refuse: number | null = null;
/** The browser sends what a broken line has cut once more by itself, as Chromium does on a connection that it has used before. */
let resends = false;
let refused: number | null = null;
let online = true;
const page = new EventTarget();

class Request {
  upload: { onprogress?: (event: { loaded: number }) => void } = {};
  status = 0;
  responseText = "";
  onload?: () => void;
  onerror?: () => void;
  onabort?: () => void;
  onloadend?: () => void;
  private answered: Record<string, string> = {};
  private now: Made = { method: "", url: "", headers: {}, body: "" };
  open(method: string, url: string) {
    this.now = { method, url, headers: {}, body: "" };
  }
  setRequestHeader(name: string, value: string) {
    this.now.headers[name] = value;
  }
  getResponseHeader(name: string) {
    return this.answered[name] ?? null;
  }
  abort() {
    this.onabort?.();
    this.onloadend?.();
  }
  send(body: Blob | null) {
    void (async () => {
      this.now.body = body ? await body.text() : "";
      made.push(this.now);
      const { method } = this.now;
      let bite = method === "PATCH" ? (bites.shift() ?? null) : null;
      if (method === "PATCH") {
        const take = () => {
          if (Number(this.now.headers["Upload-Offset"]) !== stored.length) return false;
          stored += bite === null ? this.now.body : this.now.body.slice(0, bite);
          return true;
        };
        let taken = take();
        if (resends && bite !== null) {
          bite = null;
          taken = take();
        }
        if (!taken) refused = 409;
        this.upload.onprogress?.({ loaded: bite ?? this.now.body.length });
      }
      if (bite !== null) this.onerror?.();
      else {
        this.status = refused ?? refuse ?? (method === "POST" ? 201 : 204);
        refused = null;
        this.responseText = "no";
        this.answered = { Location: "/storage/v1/upload/resumable/sign/one", "Upload-Offset": String(stored.length) };
        this.onload?.();
      }
      this.onloadend?.();
    })();
  }
}

beforeEach(() => {
  [bites, stored, made, refuse, online] = [[], "", [], null, true];
  [resends, refused] = [false, null];
  vi.stubGlobal("XMLHttpRequest", Request);
  vi.stubGlobal("window", page);
  vi.stubGlobal("navigator", {
    get onLine() {
      return online;
    },
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const send = (more: object = {}) =>
  uploadResumable({
    bucket: "request-documents",
    path: "guest/é.pdf",
    file: new Blob(["0123456789"]),
    type: "application/pdf",
    headers: () => Promise.resolve({ "x-signature": "s" }),
    signed: true,
    ...more,
  });
const methods = () => made.map(({ method }) => method);

it("creates the upload at the signed endpoint and sends the file in one piece", async () => {
  const percents: number[] = [];
  await send({ onProgress: (percent: number) => percents.push(percent) });
  expect(methods()).toEqual(["POST", "PATCH"]);
  expect(made[0]).toMatchObject({
    url: "https://api.example/storage/v1/upload/resumable/sign",
    headers: { "Tus-Resumable": "1.0.0", "Upload-Length": "10", "x-signature": "s" },
  });
  const metadata = Object.fromEntries(
    (made[0]?.headers["Upload-Metadata"] ?? "").split(",").map((pair) => pair.split(" ") as [string, string]),
  );
  expect(Buffer.from(metadata.objectName ?? "", "base64").toString()).toBe("guest/é.pdf");
  expect(made[1]?.url).toBe("https://api.example/storage/v1/upload/resumable/sign/one");
  expect(stored).toBe("0123456789");
  expect(percents.at(-1)).toBe(100);
});

it("resumes when the browser's own retry is rejected because the first attempt sent some bytes", async () => {
  vi.useFakeTimers();
  [bites, resends] = [[4], true];
  const sending = send();
  await vi.advanceTimersByTimeAsync(5_000);
  await sending;
  expect(methods()).toEqual(["POST", "PATCH", "HEAD", "PATCH"]);
  expect(made[3]?.headers["Upload-Offset"]).toBe("4");
  expect(stored).toBe("0123456789");
});

it("resumes where a broken connection left off", async () => {
  bites = [4, 3, null];
  online = false;
  const sending = send();
  for (const _ of [1, 2]) {
    const seen = made.length;
    await vi.waitFor(() => expect(made.length).toBeGreaterThan(seen - 1));
    await vi.waitFor(() => expect(methods().filter((method) => method === "PATCH").length).toBeGreaterThan(0));
    await new Promise((done) => setTimeout(done, 20));
    page.dispatchEvent(new Event("online"));
  }
  await sending;
  expect(methods()).toEqual(["POST", "PATCH", "HEAD", "PATCH", "HEAD", "PATCH"]);
  expect(made.filter(({ method }) => method === "PATCH").map(({ body }) => body)).toEqual([
    "0123456789",
    "456789",
    "789",
  ]);
  expect(stored).toBe("0123456789");
});

it("reports a server's rejection at once with its status", async () => {
  refuse = 415;
  await expect(send()).rejects.toMatchObject({ status: 415 });
  expect(methods()).toEqual(["POST"]);
});

it("can be aborted while waiting for a connection", async () => {
  bites = [4];
  online = false;
  const stop = new AbortController();
  const sending = send({ signal: stop.signal });
  await vi.waitFor(() => expect(methods()).toEqual(["POST", "PATCH"]));
  await new Promise((done) => setTimeout(done, 20));
  stop.abort();
  await expect(sending).rejects.toThrow(/abort/i);
  expect(methods()).toEqual(["POST", "PATCH"]);
});
