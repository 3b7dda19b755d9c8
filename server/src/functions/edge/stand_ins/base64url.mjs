// URL-safe Base64 with the APIs of deno.land/std and of JSR's @std/encoding.
import { Buffer } from "node:buffer";

const bytes = (data) => typeof data === "string" ? Buffer.from(data, "utf8") : Buffer.from(data);
export const encodeBase64Url = (data) => bytes(data).toString("base64url");
export const decodeBase64Url = (text) => new Uint8Array(Buffer.from(text, "base64url"));
export { decodeBase64Url as decode, encodeBase64Url as encode };
