//! Keys that tokens are verified with: HS, RS and ES of 256, 384 and 512 bits, EdDSA (Ed25519).
//!
//! Reference: RFC 7517, RFC 7518; keys are selected as in the reference's library (Haskell package jose-jwt):
//! with a `kid` in the token only keys with that `kid`, else every key of the kind.

use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

use super::material::{Algorithm, Material};

/// Names for encryption, which JWKs and headers may contain but which is not used here.
const ENCRYPTION: [&str; 6] = ["RSA1_5", "RSA-OAEP", "RSA-OAEP-256", "A128KW", "A192KW", "A256KW"];

/// Why a key cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("the JWT secret must be at least 32 characters long")]
    TooShort,
    #[error("the JWT secret is not base64: {0}")]
    Base64(String),
    #[error("the JWT secret looks like a JWK, but {0}")]
    Jwk(String),
}

/// A set of verification keys.
#[derive(Clone, Debug, Default)]
pub struct KeySet {
    keys: Vec<Key>,
    /// Those of others, for their tokens alone.
    pub(super) others: Option<Arc<dyn OtherKeys>>,
}

/// Keys that count for the tokens of another issuer.
pub(super) trait OtherKeys: std::fmt::Debug + Send + Sync {
    /// Whether one of the keys signed the token with these claims; `None` if it is from none of these issuers.
    fn check(&self, algorithm: Algorithm, kid: Option<&str>, signed: Signed<'_>, claims: &[u8]) -> Option<Check>;

    /// Grows whenever the keys change.
    fn changes(&self) -> u64;
}

#[derive(Clone, Debug)]
struct Key {
    kid: Option<String>,
    algorithm: Option<Algorithm>,
    material: Material,
    /// Its end, in seconds since 1970; member `exp`.
    until: Option<i64>,
    /// The only tokens that it verifies, where it is not all of them; member `only`, which is ours.
    only: Option<Vec<String>>,
}

/// A token whose parts are decoded.
#[derive(Clone, Copy)]
pub(super) struct Signed<'a> {
    pub token: &'a str,
    /// Length of what is signed.
    pub message: usize,
    pub signature: &'a [u8],
}

impl KeySet {
    /// The meaning of the setting `jwt-secret`: a key set, a single JWK, or the text of an HS256 secret.
    pub fn parse(secret: &[u8]) -> Result<Self, KeyError> {
        match serde_json::from_slice::<Map<String, Value>>(secret) {
            Ok(object) if object.contains_key("keys") || object.contains_key("kty") => Self::from_jwks(&object),
            _ if secret.len() < 32 => Err(KeyError::TooShort),
            _ => Ok(Self::from_secret(secret)),
        }
    }

    /// The same for a base64 secret, standard or url-safe; `.` may replace `=`.
    pub fn parse_base64(secret: &str) -> Result<Self, KeyError> {
        let standard = GeneralPurpose::new(
            &alphabet::STANDARD,
            GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
        );
        let text: String = secret
            .trim()
            .chars()
            .map(|c| match c {
                '_' => '/',
                '-' => '+',
                '.' => '=',
                other => other,
            })
            .collect();
        let bytes = standard.decode(text).map_err(|e| KeyError::Base64(e.to_string()))?;
        Self::parse(&bytes)
    }

    /// One HS256 key without `kid`.
    pub fn from_secret(secret: &[u8]) -> Self {
        let material = Material::Symmetric(secret.to_vec());
        let key = Key { kid: None, algorithm: Some(Algorithm::HS256), material, until: None, only: None };
        Self { keys: vec![key], others: None }
    }

    /// `{"keys": […]}` or a single JWK. Keys of unknown kinds and keys for encryption are left out.
    pub fn from_jwks(object: &Map<String, Value>) -> Result<Self, KeyError> {
        let mut set = Self::default();
        match object.get("keys") {
            Some(Value::Array(keys)) => {
                for key in keys {
                    let key =
                        key.as_object().ok_or_else(|| KeyError::Jwk("one of its keys is not an object".to_owned()))?;
                    set.keys.extend(Key::from_jwk(key)?);
                }
            }
            Some(_) => return Err(KeyError::Jwk("'keys' is not a list".to_owned())),
            None => set.keys.extend(Key::from_jwk(object)?),
        }
        Ok(set)
    }

    /// These keys and those of `other`.
    pub fn and(mut self, other: Self) -> Self {
        self.keys.extend(other.keys);
        self
    }

    /// Grows whenever keys that are not of this set change: what is remembered of verified tokens may be outdated then.
    pub fn changes(&self) -> u64 {
        self.others.as_ref().map_or(0, |others| others.changes())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether one of the keys has this name.
    pub(super) fn names(&self, kid: &str) -> bool {
        self.keys.iter().any(|key| key.kid.as_deref() == Some(kid))
    }

    /// Whether one of the keys could also sign.
    pub(super) fn has_secrets(&self) -> bool {
        self.keys.iter().any(|key| matches!(key.material, Material::Symmetric(_)))
    }

    /// Whether there is any key for such a token, and whether one of them signed it.
    pub(super) fn check(&self, algorithm: Algorithm, kid: Option<&str>, signed: Signed<'_>) -> Check {
        let mut tried = false;
        let message = &signed.token.as_bytes()[..signed.message];
        for key in &self.keys {
            let suits = kid.is_none_or(|kid| key.kid.as_deref() == Some(kid))
                && key.algorithm.is_none_or(|own| own == algorithm)
                && key.material.is_for(algorithm)
                && !key.until.is_some_and(has_come);
            if suits {
                tried = true;
                let is_meant = key.only.as_ref().is_none_or(|only| only.iter().any(|token| token == signed.token));
                if is_meant && key.material.verifies(algorithm, message, signed.signature) {
                    return Check::Signed { until: key.until };
                }
            }
        }
        if tried { Check::NotSigned } else { Check::NoKey }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// By a key that ends then, if it ends.
    Signed {
        until: Option<i64>,
    },
    NotSigned,
    NoKey,
}

/// Whether a moment, in seconds since 1970, is over.
pub(super) fn has_come(moment: i64) -> bool {
    chrono::Utc::now().timestamp() >= moment
}

/// The member `exp` of a JWK: when it ends.
pub(super) fn end_of(jwk: &Map<String, Value>) -> Result<Option<i64>, ()> {
    jwk.get("exp").map(|exp| exp.as_i64().ok_or(())).transpose()
}

impl Key {
    /// `None` for kinds that cannot verify here. Private members are ignored.
    fn from_jwk(jwk: &Map<String, Value>) -> Result<Option<Self>, KeyError> {
        let text = |member: &str| jwk.get(member).and_then(Value::as_str);
        let kid = text("kid").map(str::to_owned);
        let label = kid.clone().unwrap_or_else(|| "without kid".to_owned());
        match text("use") {
            Some("enc") => return Ok(None),
            None | Some("sig") => {}
            Some(_) => {
                return Err(KeyError::Jwk(format!("member 'use' of the key {label} is neither 'sig' nor 'enc'")));
            }
        }
        let mut algorithm = match text("alg") {
            None => None,
            Some(name) if ENCRYPTION.contains(&name) => return Ok(None),
            Some(name) => match Algorithm::by_name(name) {
                Some(algorithm) => Some(algorithm),
                None => return Ok(None),
            },
        };
        let material = match Material::of_jwk(jwk) {
            Ok(Some(material)) => material,
            Ok(None) => return Ok(None),
            Err(bad) => return Err(KeyError::Jwk(bad.of(&label))),
        };
        // A key on this curve has one algorithm.
        if matches!(material, Material::Ed25519(_)) {
            algorithm = Some(Algorithm::EdDSA);
        }
        let until =
            end_of(jwk).map_err(|()| KeyError::Jwk(format!("member 'exp' of the key {label} is not a time")))?;
        let only = match jwk.get("only") {
            None => None,
            Some(only) => Some(
                serde_json::from_value(only.clone())
                    .map_err(|_| KeyError::Jwk(format!("member 'only' of the key {label} is not a list of tokens")))?,
            ),
        };
        Ok(Some(Self { kid, algorithm, material, until, only }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_secret_is_refused_and_json_without_a_key_is_a_secret() {
        assert_eq!(KeySet::parse(b"short").err(), Some(KeyError::TooShort));
        assert!(KeySet::parse(br#"{"a": "text of more than thirty-two characters"}"#).is_ok());
    }

    #[test]
    fn an_invalid_key_is_reported() {
        let error = KeySet::parse(br#"{"kty":"EC","kid":"k7","crv":"P-256","x":"AA"}"#).err();
        assert!(matches!(error, Some(KeyError::Jwk(text)) if text.contains("'y'") && text.contains("k7")));
    }

    #[test]
    fn base64_secrets_may_use_either_alphabet() {
        let secret = [0xffu8; 33];
        let standard = base64::engine::general_purpose::STANDARD.encode(secret);
        for text in [standard.clone(), standard.replace('/', "_"), format!(" {standard}\n")] {
            assert!(KeySet::parse_base64(&text).is_ok(), "{text}");
        }
        assert!(matches!(KeySet::parse_base64("***"), Err(KeyError::Base64(_))));
    }

    #[test]
    fn keys_do_not_print() {
        assert!(!format!("{:?}", KeySet::from_secret(b"the secret text")).contains("116"));
    }
}
