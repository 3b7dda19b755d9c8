// JSON Web Tokens with the API of deno.land/x/djwt, implemented with Web Crypto.
import { Buffer } from "node:buffer";

const ALGORITHMS = {
  HS256: { name: "HMAC", hash: "SHA-256" },
  HS384: { name: "HMAC", hash: "SHA-384" },
  HS512: { name: "HMAC", hash: "SHA-512" },
  RS256: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
  RS384: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-384" },
  RS512: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-512" },
  PS256: { name: "RSA-PSS", hash: "SHA-256", saltLength: 32 },
  ES256: { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" },
  ES384: { name: "ECDSA", namedCurve: "P-384", hash: "SHA-384" },
};
const algorithm = (name) => {
  const found = ALGORITHMS[name];
  if (!found) throw new Error(`The algorithm ${name} is not served`);
  return found;
};
const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const value = (text) => JSON.parse(Buffer.from(text, "base64url").toString());
const parts = (token) => {
  const found = token.split(".");
  if (found.length !== 3) throw new TypeError("The serialization of the jwt is invalid.");
  return found;
};
const key = async (given, name, use) =>
  typeof given === "string"
    ? await crypto.subtle.importKey("raw", new TextEncoder().encode(given), algorithm(name), false, [use])
    : given;

export const getNumericDate = (moment) =>
  Math.round((moment instanceof Date ? moment.getTime() : Date.now() + moment * 1000) / 1000);

export const create = async (header, payload, secret) => {
  const signed = `${part(header)}.${part(payload)}`;
  const bytes = await crypto.subtle.sign(
    algorithm(header.alg), await key(secret, header.alg, "sign"), new TextEncoder().encode(signed));
  return `${signed}.${Buffer.from(bytes).toString("base64url")}`;
};

export const decode = (token) => {
  const [header, payload, signature] = parts(token);
  return [value(header), value(payload), new Uint8Array(Buffer.from(signature, "base64url"))];
};

export const verify = async (token, secret, { expLeeway = 1, nbfLeeway = 1, ignoreExp, ignoreNbf, audience } = {}) => {
  const [header, payload, signature] = decode(token);
  // A CryptoKey states its algorithm. A string can only be an HMAC secret.
  const of = typeof secret === "string" ? header.alg : undefined;
  if (of && !of.startsWith("HS")) throw new Error(`The jwt's alg '${header.alg}' does not match the key's algorithm.`);
  const signed = new TextEncoder().encode(token.slice(0, token.lastIndexOf(".")));
  const used = await key(secret, header.alg, "verify");
  if (used.algorithm.name !== algorithm(header.alg).name) {
    throw new Error(`The jwt's alg '${header.alg}' does not match the key's algorithm.`);
  }
  if (!await crypto.subtle.verify(algorithm(header.alg), used, signature, signed)) {
    throw new Error("The jwt's signature does not match the verification signature.");
  }
  const now = Date.now() / 1000;
  if (!ignoreExp && typeof payload.exp === "number" && payload.exp + expLeeway < now) throw new RangeError("The jwt is expired.");
  if (!ignoreNbf && typeof payload.nbf === "number" && payload.nbf - nbfLeeway > now) throw new RangeError("The jwt is used too early.");
  if (audience !== undefined) {
    const wanted = [payload.aud].flat();
    const fits = (one) => wanted.some((aud) => audience instanceof RegExp ? audience.test(aud) : aud === one);
    if (![audience].flat().some(fits)) throw new Error("The identification with the value in the 'aud' claim has failed.");
  }
  return payload;
};
