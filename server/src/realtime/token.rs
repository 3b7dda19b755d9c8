//! Tokens of sockets and channels: identity and expiry.

use std::sync::Arc;

use serde_json::Value;

use crate::jwt::caller::Caller;
use crate::jwt::{DecodeError, JwtError, KeySet, verify};

/// How far the clock of who signed a token may be ahead, seconds.
const SKEW: i64 = 30;

/// The identity of a channel.
#[derive(Debug, PartialEq, Eq)]
pub struct Identity {
    pub caller: Caller,
    /// Seconds since 1970.
    pub expires: i64,
}

impl std::hash::Hash for Identity {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.caller.role.hash(state);
        self.caller.claims.hash(state);
    }
}

/// Why a token is refused. Texts are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("Token has expired {0} seconds ago")]
    Expired(i64),
    #[error("Fields `role` and `exp` are required in JWT")]
    Fields,
    #[error("The token provided is not a valid JWT")]
    Malformed,
    #[error("Failed to validate JWT signature")]
    Signature,
    #[error("Failed to generate JWT signer, check your JWT secret or JWKS configuration")]
    Signer,
}

impl TokenError {
    /// What stands before the text in a join's refusal.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Expired(_) | Self::Fields => "InvalidJWTToken",
            Self::Malformed => "MalformedJWT",
            Self::Signature => "JwtSignatureError",
            Self::Signer => "JwtSignerError",
        }
    }
}

/// Verifies `token`: signature, `role`, `exp` at `now` (seconds since 1970, no grace, as upstream), `nbf`.
pub fn identify(token: &str, keys: &KeySet, now: i64) -> Result<Arc<Identity>, TokenError> {
    let claims = verify(token, keys).map_err(|error| match error {
        JwtError::Decode(DecodeError::NoSuitableKey) => TokenError::Signer,
        JwtError::Decode(DecodeError::NoKeyFits) => TokenError::Signature,
        _ => TokenError::Malformed,
    })?;
    let role = claims.text("role").filter(|role| !role.is_empty()).ok_or(TokenError::Fields)?;
    let expires = match claims.get("exp") {
        Some(Value::Number(exp)) => exp.as_i64().or_else(|| exp.as_f64().map(|exp| exp as i64)),
        _ => None,
    };
    let expires = expires.ok_or(TokenError::Fields)?;
    let expires = claims.key_ends().map_or(expires, |ends| expires.min(ends));
    if expires <= now {
        return Err(TokenError::Expired(now.saturating_sub(expires)));
    }
    // Upstream does not look at it; the other APIs do.
    let begins = claims.get("nbf").and_then(Value::as_f64);
    if begins.is_some_and(|begins| begins > now.saturating_add(SKEW) as f64) {
        return Err(TokenError::Malformed);
    }
    let caller = Caller { claims: claims.to_json_as(role), role: role.to_owned() };
    Ok(Arc::new(Identity { caller, expires }))
}

/// Seconds since 1970.
pub fn now() -> i64 {
    chrono::Utc::now().timestamp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SECRET: &str = "a-secret-of-at-least-thirty-two-bytes";

    fn check(claims: Value, secret: &str) -> Result<Arc<Identity>, TokenError> {
        let key = jsonwebtoken::EncodingKey::from_secret(secret.as_bytes());
        let token = jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("token");
        identify(&token, &KeySet::from_secret(SECRET.as_bytes()), 1000)
    }

    #[test]
    fn role_and_expiry_are_required() {
        let identity = check(json!({ "role": "anon", "exp": 1001 }), SECRET).expect("valid");
        assert_eq!((identity.caller.role.as_str(), identity.expires), ("anon", 1001));
        for claims in [json!({ "role": "anon" }), json!({ "exp": 2000 }), json!({ "role": "", "exp": 2000 })] {
            assert_eq!(check(claims, SECRET), Err(TokenError::Fields));
        }
        assert!(check(json!({ "role": "anon", "exp": 2000, "nbf": 1030 }), SECRET).is_ok());
        assert_eq!(check(json!({ "role": "anon", "exp": 2000, "nbf": 1031 }), SECRET), Err(TokenError::Malformed));
    }

    #[test]
    fn errors_have_upstreams_messages() {
        let expired = check(json!({ "role": "anon", "exp": 990 }), SECRET).expect_err("expired");
        assert_eq!(expired.to_string(), "Token has expired 10 seconds ago");
        let forged = check(json!({ "role": "anon", "exp": 2000 }), "another-secret-of-thirty-two-bytes!!");
        assert_eq!(forged, Err(TokenError::Signature));
        let keys = KeySet::from_secret(SECRET.as_bytes());
        for token in ["", "x", "a.b.c", "eyJhbGciOiJub25lIn0.eyJyb2xlIjoiYW5vbiIsImV4cCI6OTk5OX0."] {
            assert_eq!(identify(token, &keys, 0), Err(TokenError::Malformed), "{token}");
        }
    }
}
