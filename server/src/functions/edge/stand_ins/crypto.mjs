// The parts of the standard library's crypto that functions use: Web Crypto, plus Node's digests such as MD5.
import { Buffer } from "node:buffer";
import { createHash, timingSafeEqual as equal } from "node:crypto";

const view = (data) => ArrayBuffer.isView(data)
  ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  : new Uint8Array(data);
const hash = (algorithm, data) => {
  const name = (typeof algorithm === "string" ? algorithm : algorithm.name).toLowerCase().replace(/^sha-/, "sha");
  return new Uint8Array(createHash(name).update(Buffer.from(view(data))).digest()).buffer;
};
export const timingSafeEqual = (a, b) => {
  const [left, right] = [view(a), view(b)];
  return left.byteLength === right.byteLength && equal(left, right);
};
const web = globalThis.crypto;
const subtle = new Proxy(web.subtle, {
  get(target, name) {
    if (name === "digest") return async (algorithm, data) => hash(algorithm, data);
    if (name === "digestSync") return hash;
    if (name === "timingSafeEqual") return timingSafeEqual;
    const value = target[name];
    return typeof value === "function" ? value.bind(target) : value;
  },
});
export const crypto = {
  getRandomValues: web.getRandomValues.bind(web),
  randomUUID: web.randomUUID.bind(web),
  subtle,
};
