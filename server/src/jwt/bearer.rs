//! From an `Authorization` header to the caller, for functions and storage.

use std::sync::Arc;

use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::caller::Caller;
use super::{Claims, ClaimsError, KeySet, verify};

/// Why a request has no caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BearerError {
    #[error("there is no bearer token")]
    Missing,
    #[error("the bearer token is not one of ours")]
    Invalid,
    #[error("the bearer token has expired")]
    Expired,
}

/// Reads callers out of requests.
#[derive(Clone)]
pub struct Bearer {
    keys: Arc<KeySet>,
}

impl Bearer {
    pub fn new(keys: Arc<KeySet>) -> Self {
        Self { keys }
    }

    /// The caller named by the request's bearer token: its `role` claim (anon without one) and all its claims.
    pub fn caller(&self, headers: &HeaderMap) -> Result<Caller, BearerError> {
        let token = token_of(headers)?;
        let claims = verify(token, &self.keys).map_err(|_| BearerError::Invalid)?;
        claims.check(chrono::Utc::now().timestamp(), None).map_err(|error| match error {
            ClaimsError::Expired => BearerError::Expired,
            _ => BearerError::Invalid,
        })?;
        // A signed URL's token is not a user's token.
        if claims.get("url").is_some() && claims.get("scope").is_some() {
            return Err(BearerError::Invalid);
        }
        let role = claims.text("role").filter(|r| !r.is_empty()).unwrap_or("anon").to_owned();
        Ok(Caller { claims: claims.to_json_as(&role), role })
    }
}

/// The request's bearer token, unverified; its scheme may be missing.
pub fn token_of(headers: &HeaderMap) -> Result<&str, BearerError> {
    let header = headers.get(AUTHORIZATION).ok_or(BearerError::Missing)?;
    let header = header.to_str().map_err(|_| BearerError::Invalid)?.trim();
    let token = match header.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        Some(_) => return Err(BearerError::Invalid),
        None if header.eq_ignore_ascii_case("bearer") => "",
        None => header,
    };
    if token.is_empty() { Err(BearerError::Missing) } else { Ok(token) }
}

/// The `sub` of an `Authorization` header's token, whether or not that is one of ours.
pub fn unverified_subject(header: &str) -> Option<String> {
    let token = header.split_once(' ').map_or(header, |(_, token)| token.trim());
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    Claims::parse(&payload)?.text("sub").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;
    use serde_json::json;

    const SECRET: &str = "a-secret-of-at-least-thirty-two-bytes";

    fn read(authorization: Option<&str>) -> Result<Caller, BearerError> {
        let mut headers = HeaderMap::new();
        if let Some(text) = authorization {
            headers.insert(AUTHORIZATION, HeaderValue::from_str(text).expect("header"));
        }
        Bearer::new(Arc::new(KeySet::from_secret(SECRET.as_bytes()))).caller(&headers)
    }

    fn token(claims: serde_json::Value, secret: &str) -> String {
        let key = jsonwebtoken::EncodingKey::from_secret(secret.as_bytes());
        jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("token")
    }

    #[test]
    fn the_role_claim_is_used_and_all_claims_are_passed_on() {
        let token = token(json!({ "role": "authenticated", "sub": "u" }), SECRET);
        let caller = read(Some(&format!("bearer {token}"))).expect("caller");
        assert_eq!((caller.role.as_str(), caller.subject().as_deref()), ("authenticated", Some("u")));
    }

    #[test]
    fn missing_forged_and_expired_tokens_get_different_errors() {
        assert_eq!(read(None), Err(BearerError::Missing));
        assert_eq!(read(Some("Bearer ")), Err(BearerError::Missing));
        assert_eq!(read(Some("Basic x")), Err(BearerError::Invalid));
        let forged = token(json!({ "role": "service_role" }), "another-secret-of-thirty-two-bytes!!");
        assert_eq!(read(Some(&format!("Bearer {forged}"))), Err(BearerError::Invalid));
        let expired = token(json!({ "role": "anon", "exp": 1 }), SECRET);
        assert_eq!(read(Some(&format!("Bearer {expired}"))), Err(BearerError::Expired));
        // {"alg":"none"}.{"role":"service_role"}.
        assert_eq!(
            read(Some("Bearer eyJhbGciOiJub25lIn0.eyJyb2xlIjoic2VydmljZV9yb2xlIn0.")),
            Err(BearerError::Invalid)
        );
    }
}
