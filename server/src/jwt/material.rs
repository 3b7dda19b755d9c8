//! Algorithms, and the keys that JWKs describe. Reference: RFC 7517, RFC 7518.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, Mac};
use jsonwebtoken::DecodingKey;
use p521::ecdsa::signature::Verifier as _;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Sha256, Sha384, Sha512};

/// base64url as in tokens: no padding, unused bits of the last character are ignored.
pub const BASE64URL: GeneralPurpose = GeneralPurpose::new(
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
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    ES512,
    EdDSA,
}

impl Algorithm {
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "HS256" => Self::HS256,
            "HS384" => Self::HS384,
            "HS512" => Self::HS512,
            "RS256" => Self::RS256,
            "RS384" => Self::RS384,
            "RS512" => Self::RS512,
            "PS256" => Self::PS256,
            "PS384" => Self::PS384,
            "PS512" => Self::PS512,
            "ES256" => Self::ES256,
            "ES384" => Self::ES384,
            "ES512" => Self::ES512,
            "EdDSA" => Self::EdDSA,
            _ => return None,
        })
    }
}

/// Never printed: symmetric keys are secrets.
#[derive(Clone)]
pub enum Material {
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

impl Material {
    /// The verification key of a JWK, by its `kty` and `crv`; `None` for kinds that cannot verify here. Private members
    /// are ignored.
    pub fn of_jwk(jwk: &Map<String, Value>) -> Result<Option<Self>, BadKey> {
        let text = |member: &str| jwk.get(member).and_then(Value::as_str);
        let bytes = |member: &'static str| octets(jwk, member);
        Ok(Some(match (text("kty"), text("crv")) {
            (Some("oct"), _) => Self::Symmetric(bytes("k")?),
            (Some("RSA"), _) => Self::Rsa(DecodingKey::from_rsa_raw_components(&bytes("n")?, &bytes("e")?)),
            (Some("EC"), Some("P-256")) => Self::P256(DecodingKey::from_ec_der(&point(&bytes("x")?, &bytes("y")?, 32))),
            (Some("EC"), Some("P-384")) => Self::P384(DecodingKey::from_ec_der(&point(&bytes("x")?, &bytes("y")?, 48))),
            (Some("EC"), Some("P-521")) => {
                let point = point(&bytes("x")?, &bytes("y")?, 66);
                Self::P521(p521::ecdsa::VerifyingKey::from_sec1_bytes(&point).map_err(|_| BadKey::Point)?)
            }
            (Some("EC"), _) => return Err(BadKey::Curve),
            (Some("OKP"), Some("Ed25519")) => Self::Ed25519(DecodingKey::from_ed_der(&bytes("x")?)),
            _ => return Ok(None),
        }))
    }
}

/// A member of a JWK that is base64url.
pub fn octets(jwk: &Map<String, Value>, member: &'static str) -> Result<Vec<u8>, BadKey> {
    let text = jwk.get(member).and_then(Value::as_str).ok_or(BadKey::Member(member))?;
    BASE64URL.decode(text.trim_end_matches('=')).map_err(|_| BadKey::Member(member))
}

/// What is wrong with a JWK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadKey {
    /// Missing, or not base64url.
    Member(&'static str),
    Curve,
    Point,
}

impl BadKey {
    /// The problem in words, for the key named `label`.
    pub fn of(self, label: &str) -> String {
        match self {
            Self::Member(member) => format!("member '{member}' of the key {label} is missing or not base64url"),
            Self::Curve => format!("member 'crv' of the key {label} does not name a curve"),
            Self::Point => format!("the key {label} is not a point of its curve"),
        }
    }

    /// The faulty member.
    pub fn member(self) -> &'static str {
        match self {
            Self::Member(member) => member,
            Self::Curve => "crv",
            Self::Point => "x",
        }
    }
}

/// An uncompressed point (SEC 1); coordinates may come without their leading zeros.
fn point(x: &[u8], y: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = vec![4];
    for coordinate in [x, y] {
        bytes.resize(bytes.len() + size.saturating_sub(coordinate.len()), 0);
        bytes.extend_from_slice(coordinate);
    }
    bytes
}

impl Material {
    /// Whether keys of this kind belong to `algorithm`; [`Self::verifies`] distinguishes curves.
    pub fn is_for(&self, algorithm: Algorithm) -> bool {
        match algorithm {
            Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => matches!(self, Self::Symmetric(_)),
            Algorithm::RS256
            | Algorithm::RS384
            | Algorithm::RS512
            | Algorithm::PS256
            | Algorithm::PS384
            | Algorithm::PS512 => matches!(self, Self::Rsa(_)),
            Algorithm::ES256 | Algorithm::ES384 | Algorithm::ES512 => {
                matches!(self, Self::P256(_) | Self::P384(_) | Self::P521(_))
            }
            Algorithm::EdDSA => matches!(self, Self::Ed25519(_)),
        }
    }

    /// Whether `signature` is one of `message` by this key and `algorithm`.
    pub fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
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
            (Self::Rsa(key), Algorithm::PS256) => verify_with(key, jsonwebtoken::Algorithm::PS256, message, signature),
            (Self::Rsa(key), Algorithm::PS384) => verify_with(key, jsonwebtoken::Algorithm::PS384, message, signature),
            (Self::Rsa(key), Algorithm::PS512) => verify_with(key, jsonwebtoken::Algorithm::PS512, message, signature),
            (Self::P256(key), Algorithm::ES256) => verify_with(key, jsonwebtoken::Algorithm::ES256, message, signature),
            (Self::P384(key), Algorithm::ES384) => verify_with(key, jsonwebtoken::Algorithm::ES384, message, signature),
            (Self::P521(key), Algorithm::ES512) => p521::ecdsa::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify(message, &signature).is_ok()),
            (Self::Ed25519(key), Algorithm::EdDSA) => {
                verify_with(key, jsonwebtoken::Algorithm::EdDSA, message, signature)
            }
            // Not the algorithm's curve.
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
