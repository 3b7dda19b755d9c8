// Hexadecimal with the APIs of deno.land/std, whose older versions take and return bytes, and of JSR's @std/encoding.
import { Buffer } from "node:buffer";

const text = (data) => typeof data === "string" ? data : new TextDecoder().decode(data);
export const encodeHex = (data) => Buffer.from(typeof data === "string" ? new TextEncoder().encode(data) : data).toString("hex");
export const decodeHex = (hex) => new Uint8Array(Buffer.from(hex, "hex"));
export const encode = (data) => new TextEncoder().encode(encodeHex(data));
export const decode = (data) => decodeHex(text(data));
