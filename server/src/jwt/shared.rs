//! Makes every API of the full server accept the same tokens, whichever key the authentication API signs with.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::AcceptedKeys;
use crate::secret::Secret;

/// The setting `jwt-secret` with which the other APIs accept the authentication API's tokens: `private_keys` (the
/// JSON array of `GOTRUE_JWT_KEYS`) without their private members, and `secret`, also under the `kid` that
/// `GOTRUE_JWT_KEY_ID` gives its tokens (may be empty). The secret always counts: the API keys are signed with it.
///
/// `accepted` count besides: their secrets until the last token of theirs has expired, their API keys for longer.
///
/// Keys that cannot be read are left out here; the authentication API refuses to start with them.
pub fn jwt_secret(secret: &str, key_id: &str, private_keys: Option<&str>, accepted: &[AcceptedKeys]) -> String {
    if private_keys.is_none() && key_id.is_empty() && accepted.is_empty() {
        return secret.to_owned();
    }
    let private_keys: Vec<Map<String, Value>> =
        private_keys.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut keys: Vec<Value> = private_keys.into_iter().map(|jwk| Value::Object(verifying(jwk))).collect();
    let octets = URL_SAFE_NO_PAD.encode(secret);
    keys.push(json!({ "kty": "oct", "alg": "HS256", "k": octets }));
    if !key_id.is_empty() && !keys.iter().any(|key| key["kid"] == key_id) {
        keys.push(json!({ "kty": "oct", "alg": "HS256", "kid": key_id, "k": octets }));
    }
    keys.extend(accepted.iter().flat_map(of_accepted));
    json!({ "keys": keys }).to_string()
}

/// The keys under which `accepted` count.
fn of_accepted(accepted: &AcceptedKeys) -> Vec<Value> {
    let octets = URL_SAFE_NO_PAD.encode(accepted.jwt_secret.reveal());
    let ending = |mut key: Value, until: Option<DateTime<Utc>>| {
        if let Some(until) = until {
            key["exp"] = json!(until.timestamp());
        }
        key
    };
    let all = json!({ "kty": "oct", "alg": "HS256", "k": octets });
    let mut keys = vec![ending(all.clone(), accepted.tokens_until)];
    if let Some(key_id) = &accepted.jwt_key_id {
        keys.push(ending(json!({ "kty": "oct", "alg": "HS256", "kid": key_id, "k": octets }), accepted.tokens_until));
    }
    let only: Vec<&str> = accepted.tokens().map(Secret::reveal).collect();
    if !only.is_empty() {
        let mut key = ending(all, accepted.keys_until);
        key["only"] = json!(only);
        keys.push(key);
    }
    keys
}

/// The public halves of `private_keys` (the JSON array of `GOTRUE_JWT_KEYS`) as a JWK set; secrets are left out.
pub fn public_keys(private_keys: Option<&str>) -> String {
    let keys: Vec<Map<String, Value>> =
        private_keys.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let public: Vec<Value> = keys
        .into_iter()
        .filter(|jwk| jwk.get("kty").is_none_or(|kty| kty != "oct"))
        .map(verifying)
        .map(Value::Object)
        .collect();
    json!({ "keys": public }).to_string()
}

/// Settings of `GOTRUE_JWT_KEYS` under which the secret continues to sign, and the public half of `private_key` (a JWK) verifies.
pub fn beside_secret(secret: &str, private_key: &str) -> String {
    let mut keys = vec![json!({
        "kty": "oct", "alg": "HS256", "k": URL_SAFE_NO_PAD.encode(secret), "key_ops": ["sign", "verify"],
    })];
    keys.extend(serde_json::from_str(private_key).ok().map(|jwk| Value::Object(verifying(jwk))));
    Value::Array(keys).to_string()
}

/// The verifying part of `jwk`, without the private members of an RSA or elliptic key (RFC 7518, 6.2.2 and 6.3.2).
fn verifying(mut jwk: Map<String, Value>) -> Map<String, Value> {
    for member in ["d", "p", "q", "dp", "dq", "qi", "oth", "key_ops"] {
        jwk.remove(member);
    }
    jwk
}

#[cfg(test)]
mod tests {
    use super::super::KeySet;
    use super::*;

    const SECRET: &str = "a-secret-of-at-least-thirty-two-bytes";

    fn kids(setting: &str) -> Vec<Value> {
        let set: Value = serde_json::from_str(setting).expect("a key set");
        set["keys"].as_array().expect("keys").iter().map(|key| key["kid"].clone()).collect()
    }

    #[test]
    fn a_lone_secret_is_unchanged() {
        assert_eq!(jwt_secret(SECRET, "", None, &[]), SECRET);
    }

    #[test]
    fn all_keys_verify_and_none_can_sign() {
        let private = json!([
            { "kty": "EC", "kid": "new", "alg": "ES256", "crv": "P-256", "key_ops": ["sign"], "x": "eA", "y": "eQ", "d": "ZA" },
            { "kty": "oct", "kid": "old", "alg": "HS256", "k": "b2xk" },
        ]);
        let setting = jwt_secret(SECRET, "named", Some(&private.to_string()), &[]);
        assert_eq!(kids(&setting), [json!("new"), json!("old"), json!(null), json!("named")]);
        assert!(!setting.contains("\"d\"") && setting.contains("b2xk"));
        assert_eq!(kids(&jwt_secret(SECRET, "old", Some(&private.to_string()), &[])).len(), 3, "a kid is one key's");
    }

    #[test]
    fn with_unreadable_keys_the_secret_remains() {
        assert!(KeySet::parse(jwt_secret(SECRET, "", Some("{"), &[]).as_bytes()).is_ok());
    }
}
