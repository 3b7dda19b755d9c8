// The parts of JSR's @std/encoding that functions use.
export { decodeBase64, encodeBase64 } from "./base64.mjs";
export { decodeBase64Url, encodeBase64Url } from "./base64url.mjs";
export { decodeHex, encodeHex } from "./hex.mjs";
