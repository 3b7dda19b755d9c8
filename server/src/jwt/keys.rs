//! Keys that tokens are verified with: HS, RS and ES of 256, 384 and 512 bits, EdDSA (Ed25519).
//!
//! Reference: RFC 7517, RFC 7518; which key is tried for which token is the reference's library's rule (Haskell
//! package jose-jwt): with a `kid` in the token only keys of that `kid`, else every key of the kind.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, Mac};
use jsonwebtoken::DecodingKey;
use p521::ecdsa::signature::Verifier as _;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Sha256, Sha384, Sha512};

/// base64url as tokens use it: no padding, unused bits of the last character not looked at.
pub(super) const BASE64URL: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// A signature algorithm (`alg`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[allow(clippy::upper_case_acronyms)]
pub enum Algorithm {
    HS256,
    HS384,
    HS512,
    RS256,
    RS384,
    RS512,
    ES256,
    ES384,
    ES512,
    EdDSA,
}

/// Names that JWKs and headers may give besides: of encryption, which is not used here.
const ENCRYPTION: [&str; 6] = ["RSA1_5", "RSA-OAEP", "RSA-OAEP-256", "A128KW", "A192KW", "A256KW"];

impl Algorithm {
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "HS256" => Self::HS256,
            "HS384" => Self::HS384,
            "HS512" => Self::HS512,
            "RS256" => Self::RS256,
            "RS384" => Self::RS384,
            "RS512" => Self::RS512,
            "ES256" => Self::ES256,
            "ES384" => Self::ES384,
            "ES512" => Self::ES512,
            "EdDSA" => Self::EdDSA,
            _ => return None,
        })
    }
}

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
}

#[derive(Clone, Debug)]
struct Key {
    kid: Option<String>,
    algorithm: Option<Algorithm>,
    material: Material,
}

/// Never printed: symmetric keys are secrets.
#[derive(Clone)]
enum Material {
    Symmetric(Vec<u8>),
    Rsa(DecodingKey),
    P256(DecodingKey),
    P384(DecodingKey),
    P521(p521::ecdsa::VerifyingKey),
    Ed25519(DecodingKey),
}

impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Material(…)")
    }
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

    /// The same for a secret given in base64, standard or url-safe; `.` may stand for `=`.
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
        let key = Key { kid: None, algorithm: Some(Algorithm::HS256), material: Material::Symmetric(secret.to_vec()) };
        Self { keys: vec![key] }
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

    /// Whether any key is there at all to try for such a token, and whether one of them signed `message`.
    pub(super) fn check(&self, algorithm: Algorithm, kid: Option<&str>, message: &[u8], signature: &[u8]) -> Check {
        let mut tried = false;
        for key in &self.keys {
            let suits = kid.is_none_or(|kid| key.kid.as_deref() == Some(kid))
                && key.algorithm.is_none_or(|own| own == algorithm)
                && key.material.is_for(algorithm);
            if suits {
                tried = true;
                if key.material.verifies(algorithm, message, signature) {
                    return Check::Signed;
                }
            }
        }
        if tried { Check::NotSigned } else { Check::NoKey }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    Signed,
    NotSigned,
    NoKey,
}

impl Key {
    /// None for kinds that verify nothing here. Private members are not looked at.
    fn from_jwk(jwk: &Map<String, Value>) -> Result<Option<Self>, KeyError> {
        let text = |member: &str| jwk.get(member).and_then(Value::as_str);
        let kid = text("kid").map(str::to_owned);
        let label = kid.clone().unwrap_or_else(|| "without kid".to_owned());
        let bytes = |member: &str| {
            text(member).and_then(|value| BASE64URL.decode(value.trim_end_matches('=')).ok()).ok_or_else(|| {
                KeyError::Jwk(format!("member '{member}' of the key {label} is missing or not base64url"))
            })
        };
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
        let material = match (text("kty"), text("crv")) {
            (Some("oct"), _) => Material::Symmetric(bytes("k")?),
            (Some("RSA"), _) => Material::Rsa(DecodingKey::from_rsa_raw_components(&bytes("n")?, &bytes("e")?)),
            (Some("EC"), Some("P-256")) => {
                Material::P256(DecodingKey::from_ec_der(&point(&bytes("x")?, &bytes("y")?, 32)))
            }
            (Some("EC"), Some("P-384")) => {
                Material::P384(DecodingKey::from_ec_der(&point(&bytes("x")?, &bytes("y")?, 48)))
            }
            (Some("EC"), Some("P-521")) => Material::P521(
                p521::ecdsa::VerifyingKey::from_sec1_bytes(&point(&bytes("x")?, &bytes("y")?, 66))
                    .map_err(|_| KeyError::Jwk(format!("the key {label} is not a point of its curve")))?,
            ),
            (Some("EC"), _) => return Err(KeyError::Jwk(format!("member 'crv' of the key {label} names no curve"))),
            (Some("OKP"), Some("Ed25519")) => {
                algorithm = Some(Algorithm::EdDSA);
                Material::Ed25519(DecodingKey::from_ed_der(&bytes("x")?))
            }
            _ => return Ok(None),
        };
        Ok(Some(Self { kid, algorithm, material }))
    }
}

/// An uncompressed point (SEC 1); coordinates may come without their leading zeros.
pub(super) fn point(x: &[u8], y: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = vec![4];
    for coordinate in [x, y] {
        bytes.resize(bytes.len() + size.saturating_sub(coordinate.len()), 0);
        bytes.extend_from_slice(coordinate);
    }
    bytes
}

impl Material {
    fn is_for(&self, algorithm: Algorithm) -> bool {
        match algorithm {
            Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => matches!(self, Self::Symmetric(_)),
            Algorithm::RS256 | Algorithm::RS384 | Algorithm::RS512 => matches!(self, Self::Rsa(_)),
            Algorithm::ES256 | Algorithm::ES384 | Algorithm::ES512 => {
                matches!(self, Self::P256(_) | Self::P384(_) | Self::P521(_))
            }
            Algorithm::EdDSA => matches!(self, Self::Ed25519(_)),
        }
    }

    fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match (self, algorithm) {
            (Self::Symmetric(secret), Algorithm::HS256) => {
                hmac_matches(Hmac::<Sha256>::new_from_slice(secret), message, signature)
            }
            (Self::Symmetric(secret), Algorithm::HS384) => {
                hmac_matches(Hmac::<Sha384>::new_from_slice(secret), message, signature)
            }
            (Self::Symmetric(secret), Algorithm::HS512) => {
                hmac_matches(Hmac::<Sha512>::new_from_slice(secret), message, signature)
            }
            (Self::Rsa(key), Algorithm::RS256) => verify_with(key, jsonwebtoken::Algorithm::RS256, message, signature),
            (Self::Rsa(key), Algorithm::RS384) => verify_with(key, jsonwebtoken::Algorithm::RS384, message, signature),
            (Self::Rsa(key), Algorithm::RS512) => verify_with(key, jsonwebtoken::Algorithm::RS512, message, signature),
            (Self::P256(key), Algorithm::ES256) => verify_with(key, jsonwebtoken::Algorithm::ES256, message, signature),
            (Self::P384(key), Algorithm::ES384) => verify_with(key, jsonwebtoken::Algorithm::ES384, message, signature),
            (Self::P521(key), Algorithm::ES512) => p521::ecdsa::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify(message, &signature).is_ok()),
            (Self::Ed25519(key), Algorithm::EdDSA) => {
                verify_with(key, jsonwebtoken::Algorithm::EdDSA, message, signature)
            }
            // A curve that is not the algorithm's.
            _ => false,
        }
    }
}

fn hmac_matches<M: Mac, E>(mac: Result<M, E>, message: &[u8], signature: &[u8]) -> bool {
    mac.is_ok_and(|mac| mac.chain_update(message).verify_slice(signature).is_ok())
}

fn verify_with(key: &DecodingKey, algorithm: jsonwebtoken::Algorithm, message: &[u8], signature: &[u8]) -> bool {
    let signature = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(signature);
    jsonwebtoken::crypto::verify(&signature, message, key, algorithm).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_secret_is_refused_and_a_json_text_that_is_no_key_is_a_secret() {
        assert_eq!(KeySet::parse(b"short").err(), Some(KeyError::TooShort));
        assert!(KeySet::parse(br#"{"a": "text of more than thirty-two characters"}"#).is_ok());
    }

    #[test]
    fn a_broken_key_is_named() {
        let error = KeySet::parse(br#"{"kty":"EC","kid":"k7","crv":"P-256","x":"AA"}"#).err();
        assert!(matches!(error, Some(KeyError::Jwk(text)) if text.contains("'y'") && text.contains("k7")));
    }

    #[test]
    fn base64_secrets_come_in_either_alphabet() {
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
