// What functions use of JSR's @std/encoding.
export { decodeBase64, encodeBase64 } from "./base64.mjs";
export { decodeBase64Url, encodeBase64Url } from "./base64url.mjs";
export { decodeHex, encodeHex } from "./hex.mjs";
