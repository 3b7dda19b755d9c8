/** The identity providers of the outside world, played on OUTSIDE_PORT: GitHub, and a Keycloak realm with a key of its own. */
import { createServer, type Server } from "node:http";
import { generateKeyPairSync, sign } from "node:crypto";
import { need } from "../needs";

const port = Number(process.env.OUTSIDE_PORT ?? 54399);
export const outsideOrigin = `http://127.0.0.1:${port}`;
const realm = `${outsideOrigin}/realms/x`;
const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });

/** Whom GitHub knows at the moment. */
let github = { id: 0, email: "" };

export function signedInAtGitHub(email: string) {
  need("outside");
  github = { id: Math.floor(Math.random() * 2 ** 40), email };
}

/** An ID token of the realm for this address. */
export function idToken(email: string, changes: Record<string, unknown> = {}): string {
  need("outside");
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: realm, sub: `k-${email}`, aud: "client", email, email_verified: true, iat: now, exp: now + 600, ...changes };
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const signed = `${encode({ alg: "ES256", kid: "outside", typ: "JWT" })}.${encode(claims)}`;
  const signature = sign("sha256", Buffer.from(signed), { key: keys.privateKey, dsaEncoding: "ieee-p1363" });
  return `${signed}.${signature.toString("base64url")}`;
}

function answer(path: string): unknown {
  switch (path) {
    case "/login/oauth/access_token":
      return { access_token: "hub", token_type: "bearer" };
    case "/api/v3/user":
      return { id: github.id, login: "ada", name: "Ada" };
    case "/api/v3/user/emails":
      return [{ email: github.email, primary: true, verified: true }];
    case "/realms/x/.well-known/openid-configuration":
      return {
        issuer: realm,
        authorization_endpoint: `${realm}/auth`,
        token_endpoint: `${realm}/token`,
        jwks_uri: `${realm}/certs`,
        id_token_signing_alg_values_supported: ["ES256"],
      };
    case "/realms/x/certs":
      return { keys: [{ ...keys.publicKey.export({ format: "jwk" }), kid: "outside", alg: "ES256", use: "sig" }] };
    default:
      return undefined;
  }
}

let server: Server | undefined;

export function startOutside(): Promise<void> {
  server = createServer((request, response) => {
    const body = answer(new URL(request.url ?? "/", "http://outside").pathname);
    response.writeHead(body === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(body ?? {}));
  });
  return new Promise((resolve, reject) => {
    server?.once("error", reject).listen(port, "127.0.0.1", resolve);
  });
}

export function stopOutside() {
  server?.close();
}
