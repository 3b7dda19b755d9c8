// Base64 with the APIs of deno.land/std, of JSR's @std/encoding and of deno.land/x/base64.
import { Buffer } from "node:buffer";

const bytes = (data) => typeof data === "string" ? Buffer.from(data, "utf8") : Buffer.from(data);
export const encodeBase64 = (data) => bytes(data).toString("base64");
export const decodeBase64 = (text) => new Uint8Array(Buffer.from(text, "base64"));
export { decodeBase64 as decode, decodeBase64 as toUint8Array, encodeBase64 as encode, encodeBase64 as fromUint8Array };
