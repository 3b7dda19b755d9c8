//! Tokens of signed URLs: what may be done with which object, until when.

use serde::{Deserialize, Serialize};

use super::error::StorageError;
use crate::config::Secret;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Download,
    Upload,
}

/// Claims of a signed URL. They never carry `role`, so that such a token is no user's token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignedUrl {
    /// `bucket/key`.
    pub url: String,
    pub scope: Scope,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub owner: Option<String>,
    #[serde(default)]
    pub upsert: bool,
    pub iat: i64,
    pub exp: i64,
}

/// Signs and checks the tokens.
#[derive(Clone)]
pub struct UrlSigner {
    secret: Secret,
}

impl UrlSigner {
    /// `secret` is the project's; the key is derived, so that a user's token never verifies here.
    pub fn new(secret: &Secret) -> Self {
        use hmac::{Hmac, Mac};
        let derived = Hmac::<sha2::Sha256>::new_from_slice(secret.reveal().as_bytes())
            .map(|mut mac| {
                mac.update(b"storage signed url");
                hex::encode(mac.finalize().into_bytes())
            })
            .unwrap_or_default();
        Self { secret: Secret::new(derived) }
    }

    pub fn sign(&self, claims: &SignedUrl) -> Result<String, StorageError> {
        let key = jsonwebtoken::EncodingKey::from_secret(self.secret.reveal().as_bytes());
        jsonwebtoken::encode(&jsonwebtoken::Header::default(), claims, &key)
            .map_err(|e| StorageError::InvalidToken(e.to_string()))
    }

    /// The claims of `token` if it is ours, in time, scoped for `scope` and made for exactly `url`.
    pub fn verify(&self, token: &str, scope: Scope, url: &str) -> Result<SignedUrl, StorageError> {
        let key = jsonwebtoken::DecodingKey::from_secret(self.secret.reveal().as_bytes());
        let mut rules = jsonwebtoken::Validation::new(jsonwebtoken::Algorithm::HS256);
        rules.leeway = 0;
        let claims = jsonwebtoken::decode::<SignedUrl>(token, &key, &rules)
            .map_err(|e| {
                StorageError::InvalidToken(match e.kind() {
                    jsonwebtoken::errors::ErrorKind::ExpiredSignature => {
                        "\"exp\" claim timestamp check failed".to_owned()
                    }
                    jsonwebtoken::errors::ErrorKind::InvalidSignature => "signature verification failed".to_owned(),
                    _ => "Invalid Compact JWS".to_owned(),
                })
            })?
            .claims;
        match (claims.scope == scope, claims.url == url) {
            (false, _) if scope == Scope::Download => {
                Err(StorageError::InvalidSignature("Token is not scoped for download"))
            }
            (false, _) => Err(StorageError::InvalidSignature("Token is not scoped for upload")),
            (true, false) => Err(StorageError::InvalidSignature("Invalid signature")),
            (true, true) => Ok(claims),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(scope: Scope, exp: i64) -> SignedUrl {
        SignedUrl { url: "b/k".into(), scope, owner: None, upsert: false, iat: 0, exp }
    }

    #[test]
    fn a_token_opens_only_its_object_for_its_purpose_until_its_time() {
        let signer = UrlSigner::new(&Secret::new("s".repeat(32)));
        let far = 4_000_000_000;
        let token = signer.sign(&claims(Scope::Download, far)).expect("token");
        assert!(signer.verify(&token, Scope::Download, "b/k").is_ok());
        let cases = [
            (signer.verify(&token, Scope::Download, "b/other"), "Invalid signature"),
            (signer.verify(&token, Scope::Upload, "b/k"), "Token is not scoped for upload"),
            (
                signer.verify(&signer.sign(&claims(Scope::Download, 1)).expect("token"), Scope::Download, "b/k"),
                "\"exp\" claim timestamp check failed",
            ),
            (
                UrlSigner::new(&Secret::new("t".repeat(32))).verify(&token, Scope::Download, "b/k"),
                "signature verification failed",
            ),
        ];
        for (outcome, message) in cases {
            assert_eq!(outcome.expect_err("refused").to_string(), message);
        }
    }
}
