/** The link of a recovery mail: tokens in the query (spec), in the fragment, a `code` or a `token_hash`. */

export type RecoveryLink =
  | { kind: "tokens"; accessToken: string; refreshToken: string }
  | { kind: "code"; code: string }
  | { kind: "token_hash"; tokenHash: string }
  | { kind: "invalid" };

/** Reads the link out of an address; anything but a recovery link is `invalid`. */
export function readRecoveryLink(url: Pick<Location, "search" | "hash">): RecoveryLink {
  const query = new URLSearchParams(url.search);
  const fragment = new URLSearchParams(url.hash.replace(/^#/, ""));
  for (const params of [query, fragment]) {
    const accessToken = params.get("access_token");
    if (accessToken && params.get("type") === "recovery") {
      return { kind: "tokens", accessToken, refreshToken: params.get("refresh_token") ?? "" };
    }
  }
  const tokenHash = query.get("token_hash");
  if (tokenHash && query.get("type") === "recovery") return { kind: "token_hash", tokenHash };
  const code = query.get("code");
  if (code) return { kind: "code", code };
  return { kind: "invalid" };
}
