//! Tokens of one secret, signed and checked with HS256: the project's API keys, and signed URLs.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::Sha256;

use super::material::{Algorithm, Material};

/// The header of every token.
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

/// Why a token was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the token cannot be read")]
    Malformed,
    #[error("the token is signed otherwise")]
    Signature,
    #[error("the token has expired")]
    Expired,
}

/// Signs and checks. Cheap to clone where secrets are.
#[derive(Clone)]
pub struct SecretKey {
    secret: Vec<u8>,
}

impl SecretKey {
    pub fn new(secret: &str) -> Self {
        Self { secret: secret.as_bytes().to_vec() }
    }

    /// A secret derived for `purpose`, so that tokens of one purpose are not valid for another.
    pub fn derived(secret: &str, purpose: &str) -> Self {
        Self::new(&hex::encode(hmac(secret.as_bytes(), purpose.as_bytes())))
    }

    /// A token over `claims`.
    pub fn sign(&self, claims: &impl Serialize) -> Result<String, serde_json::Error> {
        Ok(self.sign_text(&serde_json::to_string(claims)?))
    }

    /// The same for claims that are already JSON text, which is kept unchanged.
    pub fn sign_text(&self, claims: &str) -> String {
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(HEADER), URL_SAFE_NO_PAD.encode(claims));
        let signature = URL_SAFE_NO_PAD.encode(hmac(&self.secret, signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    /// The claims of `token`, if this secret signed it. Does not check times.
    pub fn verify<T: DeserializeOwned>(&self, token: &str) -> Result<T, Refusal> {
        let (header, claims) = unverified(token).ok_or(Refusal::Malformed)?;
        if header["alg"] != "HS256" || header.get("crit").is_some() {
            return Err(Refusal::Malformed);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(Refusal::Malformed)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| Refusal::Malformed)?;
        let key = Material::Symmetric(self.secret.clone());
        if !key.verifies(Algorithm::HS256, message.as_bytes(), &signature) {
            return Err(Refusal::Signature);
        }
        serde_json::from_value(claims).map_err(|_| Refusal::Malformed)
    }

    /// The same, if it has not expired; `exp` is required, without leeway.
    pub fn verify_in_time<T: DeserializeOwned>(&self, token: &str, now: i64) -> Result<T, Refusal> {
        let claims: Value = self.verify(token)?;
        let exp = claims.get("exp").and_then(Value::as_f64).ok_or(Refusal::Malformed)?;
        if exp.trunc() < now as f64 {
            return Err(Refusal::Expired);
        }
        serde_json::from_value(claims).map_err(|_| Refusal::Malformed)
    }
}

/// Header and claims of an unverified token.
pub fn unverified(token: &str) -> Option<(Value, Value)> {
    let mut parts = token.split('.').map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok());
    Some((parts.next()??, parts.next()??))
}

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    // HMAC takes a key of any length.
    Hmac::<Sha256>::new_from_slice(key)
        .map(|mac| mac.chain_update(message).finalize().into_bytes().to_vec())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_is_valid_only_for_its_secret_and_purpose() {
        let key = SecretKey::new("a secret");
        let token = key.sign(&json!({ "a": 1, "exp": 10 })).expect("a token");
        assert_eq!(key.verify::<Value>(&token), Ok(json!({ "a": 1, "exp": 10 })));
        assert_eq!(SecretKey::new("another").verify::<Value>(&token), Err(Refusal::Signature));
        assert_eq!(SecretKey::derived("a secret", "a purpose").verify::<Value>(&token), Err(Refusal::Signature));
        assert_eq!(key.verify_in_time::<Value>(&token, 10).map(drop), Ok(()));
        assert_eq!(key.verify_in_time::<Value>(&token, 11), Err(Refusal::Expired));
        let endless = key.sign(&json!({ "a": 1 })).expect("a token");
        assert_eq!(key.verify_in_time::<Value>(&endless, 0), Err(Refusal::Malformed));
    }

    #[test]
    fn malformed_and_foreign_tokens_are_refused_whoever_signed_them() {
        let key = SecretKey::new("a secret");
        let (_, rest) = key.sign_text("{}").split_once('.').map(|(a, b)| (a.to_owned(), b.to_owned())).expect("parts");
        for header in [r#"{"alg":"none"}"#, r#"{"alg":"HS512"}"#, r#"{"alg":"HS256","crit":["b64"]}"#, "text"] {
            let token = format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header));
            assert_eq!(key.verify::<Value>(&token), Err(Refusal::Malformed), "{header}");
        }
        for token in ["", "a", "a.b", "a.b.c"] {
            assert_eq!(key.verify::<Value>(token), Err(Refusal::Malformed), "{token}");
        }
    }
}
