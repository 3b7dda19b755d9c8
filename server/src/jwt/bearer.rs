//! From an `Authorization` header to the caller who acts: for functions and storage.

use actix_web::http::header::{AUTHORIZATION, HeaderMap};

use super::caller::Caller;
use crate::config::Secret;

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
    secret: Secret,
}

impl Bearer {
    /// Tokens signed HS256 with `secret`.
    pub fn new(secret: &Secret) -> Self {
        Self { secret: secret.clone() }
    }

    /// The caller named by the request's bearer token: its `role` claim (anon without one) and all its claims.
    pub fn caller(&self, headers: &HeaderMap) -> Result<Caller, BearerError> {
        let header = headers.get(AUTHORIZATION).ok_or(BearerError::Missing)?;
        let header = header.to_str().map_err(|_| BearerError::Invalid)?.trim();
        let token = match header.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
            Some(_) => return Err(BearerError::Invalid),
            None => header,
        };
        if token.is_empty() {
            return Err(BearerError::Missing);
        }
        let mut rules = jsonwebtoken::Validation::new(jsonwebtoken::Algorithm::HS256);
        rules.required_spec_claims.clear();
        rules.validate_aud = false;
        rules.validate_nbf = true;
        rules.leeway = 0;
        let key = jsonwebtoken::DecodingKey::from_secret(self.secret.reveal().as_bytes());
        let claims = jsonwebtoken::decode::<serde_json::Map<String, serde_json::Value>>(token, &key, &rules)
            .map_err(|error| match error.kind() {
                jsonwebtoken::errors::ErrorKind::ExpiredSignature => BearerError::Expired,
                _ => BearerError::Invalid,
            })?
            .claims;
        // A signed URL's token is nobody's token.
        if claims.contains_key("url") && claims.contains_key("scope") {
            return Err(BearerError::Invalid);
        }
        let role = claims.get("role").and_then(|r| r.as_str()).filter(|r| !r.is_empty()).unwrap_or("anon").to_owned();
        Ok(Caller { role, claims: serde_json::Value::Object(claims).to_string() })
    }
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
        Bearer::new(&Secret::new(SECRET)).caller(&headers)
    }

    fn token(claims: serde_json::Value, secret: &str) -> String {
        let key = jsonwebtoken::EncodingKey::from_secret(secret.as_bytes());
        jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("token")
    }

    #[test]
    fn the_role_claim_acts_and_the_claims_travel() {
        let token = token(json!({ "role": "authenticated", "sub": "u" }), SECRET);
        let caller = read(Some(&format!("bearer {token}"))).expect("caller");
        assert_eq!((caller.role.as_str(), caller.subject().as_deref()), ("authenticated", Some("u")));
    }

    #[test]
    fn missing_forged_and_expired_tokens_are_told_apart() {
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
