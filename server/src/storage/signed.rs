//! Tokens of signed URLs: the object, what may be done with it, and until when.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::error::StorageError;
use crate::config::Secret;
use crate::jwt::AcceptedKeys;
use crate::jwt::secret::{Refusal, SecretKey};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Download,
    Upload,
}

/// Claims of a signed URL. They never contain `role`, so the token cannot pass as a user's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignedUrl {
    /// `bucket/key`.
    pub url: String,
    pub scope: Scope,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub owner: Option<String>,
    #[serde(default)]
    pub upsert: bool,
    /// The image transformations fixed when the URL was signed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub transformations: Option<String>,
    /// The version that the link opens; any if absent.
    #[serde(rename = "versionId", skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
    pub iat: i64,
    pub exp: i64,
}

impl SignedUrl {
    /// A token for downloads; `None` if its expiry is out of range.
    pub fn download(url: &str, seconds: i64, transformations: Option<String>, version: Option<String>) -> Option<Self> {
        let iat = Utc::now().timestamp();
        // 2^53 milliseconds, the last instant that JavaScript can represent.
        let exp = iat.checked_add(seconds).filter(|exp| *exp <= 9_007_199_254_740)?;
        Some(Self {
            url: url.to_owned(),
            scope: Scope::Download,
            owner: None,
            upsert: false,
            transformations,
            version,
            iat,
            exp,
        })
    }

    /// A token for one upload on behalf of `owner`.
    pub fn upload(url: &str, life: std::time::Duration, owner: Option<String>, upsert: bool) -> Self {
        let iat = Utc::now().timestamp();
        let seconds = i64::try_from(life.as_secs()).unwrap_or(i64::MAX);
        Self {
            url: url.to_owned(),
            scope: Scope::Upload,
            owner,
            upsert,
            transformations: None,
            version: None,
            iat,
            exp: iat.saturating_add(seconds),
        }
    }
}

/// Signs and verifies the tokens.
#[derive(Clone)]
pub struct UrlSigner {
    key: SecretKey,
    /// Former keys, and when they expire.
    accepted: Vec<(SecretKey, Option<DateTime<Utc>>)>,
}

/// A separate key, so that a user's token never verifies here.
fn key_of(secret: &Secret) -> SecretKey {
    SecretKey::derived(secret.reveal(), "storage signed url")
}

impl UrlSigner {
    /// `secret` is the project's JWT secret.
    pub fn new(secret: &Secret) -> Self {
        Self { key: key_of(secret), accepted: Vec::new() }
    }

    /// The same signer, which also accepts links signed with these keys.
    pub fn accepting(mut self, keys: &[AcceptedKeys]) -> Self {
        self.accepted = keys.iter().map(|keys| (key_of(&keys.jwt_secret), keys.keys_until)).collect();
        self
    }

    pub fn sign(&self, claims: &SignedUrl) -> Result<String, StorageError> {
        self.key.sign(claims).map_err(|e| StorageError::Internal(e.to_string()))
    }

    /// The claims of `token` if its signature, expiry and scope are valid and it was made for exactly `url`.
    pub fn verify(&self, token: &str, scope: Scope, url: &str) -> Result<SignedUrl, StorageError> {
        let now = Utc::now();
        let mut claims = self.key.verify_in_time::<SignedUrl>(token, now.timestamp());
        for (key, until) in &self.accepted {
            if claims.as_ref().is_err_and(|refusal| *refusal == Refusal::Signature)
                && until.is_none_or(|until| now < until)
            {
                claims = key.verify_in_time(token, now.timestamp());
            }
        }
        let claims = claims.map_err(|refusal| {
            StorageError::InvalidToken(match refusal {
                Refusal::Expired => "\"exp\" claim timestamp check failed".to_owned(),
                Refusal::Signature => "signature verification failed".to_owned(),
                Refusal::Malformed => "Invalid Compact JWS".to_owned(),
            })
        })?;
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
        SignedUrl {
            url: "b/k".into(),
            scope,
            owner: None,
            upsert: false,
            transformations: None,
            version: None,
            iat: 0,
            exp,
        }
    }

    #[test]
    fn a_token_is_valid_only_for_its_object_and_scope_until_it_expires() {
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

    #[test]
    fn links_of_a_former_secret_are_valid_until_its_keys_expire() {
        let former = UrlSigner::new(&Secret::new("s".repeat(32)));
        let token = former.sign(&claims(Scope::Download, 4_000_000_000)).expect("token");
        for (until, counts) in [("2999-01-01T00:00:00Z", true), ("2001-01-01T00:00:00Z", false)] {
            let text = format!(r#"[{{"jwt_secret":"{}","keys_until":"{until}"}}]"#, "s".repeat(32));
            let accepted = AcceptedKeys::parse(&text).expect("keys");
            let signer = UrlSigner::new(&Secret::new("t".repeat(32))).accepting(&accepted);
            assert_eq!(signer.verify(&token, Scope::Download, "b/k").is_ok(), counts, "{until}");
        }
    }

    #[test]
    fn no_url_expires_after_the_last_valid_date() {
        assert!(SignedUrl::download("b/k", 60, None, None).is_some());
        assert!(SignedUrl::download("b/k", 9_007_199_254_740, None, None).is_none());
    }
}
