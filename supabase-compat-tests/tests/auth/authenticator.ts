/** A security key in software (WebAuthn level 3), and the parts of a browser that supabase-js asks of one. */
import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";

const ORIGIN = "http://localhost:3000";
const RP_ID = "localhost";

const sha256 = (data: string | Buffer) => createHash("sha256").update(data).digest();
const base64url = (data: ArrayBuffer | Buffer) => Buffer.from(data as Buffer).toString("base64url");

/** The CBOR (RFC 8949) that authenticators write: maps, byte strings, texts, small integers. */
function cbor(value: unknown): Buffer {
  const head = (major: number, n: number) =>
    n < 24 ? Buffer.from([(major << 5) | n]) : n < 256 ? Buffer.from([(major << 5) | 24, n]) : Buffer.from([(major << 5) | 25, n >> 8, n & 255]);
  if (typeof value === "number") return value >= 0 ? head(0, value) : head(1, -1 - value);
  if (typeof value === "string") return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value]);
  const entries = [...(value as Map<unknown, unknown>)];
  return Buffer.concat([head(5, entries.length), ...entries.flatMap(([key, item]) => [cbor(key), cbor(item)])]);
}

/** What the key answers, as its JSON. */
export class SecurityKey {
  readonly id = randomBytes(16);
  private readonly keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
  private user = Buffer.alloc(0);
  private signatures = 0;

  create(challenge: string, user: string) {
    this.user = Buffer.from(user, "base64url");
    const jwk = this.keys.publicKey.export({ format: "jwk" });
    const coordinate = (text = "") => Buffer.from(text, "base64url");
    const cose = new Map<number, unknown>([[1, 2], [3, -7], [-1, 1], [-2, coordinate(jwk.x)], [-3, coordinate(jwk.y)]]);
    const length = Buffer.from([0, this.id.length]);
    const data = Buffer.concat([this.data(0x45), Buffer.alloc(16), length, this.id, cbor(cose)]);
    const object = cbor(new Map<string, unknown>([["fmt", "none"], ["attStmt", new Map()], ["authData", data]]));
    return this.credential({
      clientDataJSON: base64url(this.client("webauthn.create", challenge)),
      attestationObject: base64url(object),
    });
  }

  get(challenge: string) {
    const [data, client] = [this.data(0x05), this.client("webauthn.get", challenge)];
    const signature = sign("sha256", Buffer.concat([data, sha256(client)]), this.keys.privateKey);
    return this.credential({
      clientDataJSON: base64url(client),
      authenticatorData: base64url(data),
      signature: base64url(signature),
      userHandle: base64url(this.user),
    });
  }

  private data(flags: number) {
    const count = Buffer.alloc(4);
    count.writeUInt32BE(flags === 0x05 ? (this.signatures += 1) : 0);
    return Buffer.concat([sha256(RP_ID), Buffer.from([flags]), count]);
  }

  private client(type: string, challenge: string) {
    return Buffer.from(JSON.stringify({ type, challenge, origin: ORIGIN }));
  }

  private credential(response: Record<string, string>) {
    const id = base64url(this.id);
    return { id, rawId: id, type: "public-key" as const, clientExtensionResults: {}, response };
  }
}

interface Asked {
  publicKey: { challenge: BufferSource; user?: { id: BufferSource } };
}

/** Does `work` in a page of a browser that has this key. */
export async function inBrowser<T>(key: SecurityKey, work: () => Promise<T>): Promise<T> {
  class PublicKeyCredential {
    constructor(private readonly json: object) {
      Object.assign(this, json);
    }
    toJSON() {
      return this.json;
    }
  }
  const text = (source: BufferSource) => base64url(Buffer.from(source as ArrayBuffer));
  const credentials = {
    create: async ({ publicKey }: Asked) =>
      new PublicKeyCredential(key.create(text(publicKey.challenge), text(publicKey.user?.id ?? new ArrayBuffer(0)))),
    get: async ({ publicKey }: Asked) => new PublicKeyCredential(key.get(text(publicKey.challenge))),
  };
  const page = {
    PublicKeyCredential,
    document: { visibilityState: "visible", addEventListener() {}, removeEventListener() {} },
    window: { PublicKeyCredential, location: new URL(ORIGIN), addEventListener() {}, removeEventListener() {} },
    navigator: { credentials },
  };
  const before = new Map(Object.keys(page).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]));
  for (const [name, value] of Object.entries(page)) Object.defineProperty(globalThis, name, { value, configurable: true });
  try {
    return await work();
  } finally {
    for (const [name, descriptor] of before) {
      if (descriptor) Object.defineProperty(globalThis, name, descriptor);
      else delete (globalThis as Record<string, unknown>)[name];
    }
  }
}
