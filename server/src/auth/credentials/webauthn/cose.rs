//! Authenticators' public keys and signatures. Reference: RFC 9052, RFC 9053, RFC 8812.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey};
use p521::ecdsa::signature::Verifier as _;

/// A COSE key of a type and algorithm that is supported.
pub struct PublicKey {
    algorithm: i64,
    material: Material,
}

enum Material {
    /// A key with the JOSE name of its algorithm.
    Jose(Algorithm, DecodingKey),
    P521(Box<p521::ecdsa::VerifyingKey>),
}

impl PublicKey {
    /// `None` if it is not a key or not of a supported kind.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let value: ciborium::Value = ciborium::from_reader(bytes).ok()?;
        let map = value.as_map()?;
        let member = |label: i64| {
            map.iter()
                .find(|(key, _)| key.as_integer().is_some_and(|key| i128::from(key) == i128::from(label)))
                .map(|(_, value)| value)
        };
        let integer = |label: i64| i64::try_from(i128::from(member(label)?.as_integer()?)).ok();
        let octets = |label: i64| member(label)?.as_bytes();
        let encoded = |label: i64| Some(URL_SAFE_NO_PAD.encode(octets(label)?));
        let algorithm = integer(3)?;
        let (key_type, curve) = (integer(1)?, || integer(-1));
        let ec = |jose: Algorithm, size: usize| {
            let fits = octets(-2)?.len() == size && octets(-3)?.len() == size;
            let key = DecodingKey::from_ec_components(&encoded(-2)?, &encoded(-3)?).ok()?;
            fits.then_some(Material::Jose(jose, key))
        };
        let rsa = |jose: Algorithm| {
            let key = DecodingKey::from_rsa_components(&encoded(-1)?, &encoded(-2)?).ok()?;
            Some(Material::Jose(jose, key))
        };
        let material = match (key_type, algorithm) {
            (2, -7) if curve() == Some(1) => ec(Algorithm::ES256, 32)?,
            (2, -35) if curve() == Some(2) => ec(Algorithm::ES384, 48)?,
            (2, -36) if curve() == Some(3) => {
                let mut point = vec![4];
                point.extend_from_slice(octets(-2)?);
                point.extend_from_slice(octets(-3)?);
                Material::P521(Box::new(p521::ecdsa::VerifyingKey::from_sec1_bytes(&point).ok()?))
            }
            (3, -257) => rsa(Algorithm::RS256)?,
            (3, -258) => rsa(Algorithm::RS384)?,
            (3, -259) => rsa(Algorithm::RS512)?,
            (3, -37) => rsa(Algorithm::PS256)?,
            (3, -38) => rsa(Algorithm::PS384)?,
            (3, -39) => rsa(Algorithm::PS512)?,
            (1, -8) if curve() == Some(6) => {
                Material::Jose(Algorithm::EdDSA, DecodingKey::from_ed_components(&encoded(-2)?).ok()?)
            }
            _ => return None,
        };
        Some(Self { algorithm, material })
    }

    /// The COSE identifier of its algorithm.
    pub fn algorithm(&self) -> i64 {
        self.algorithm
    }

    /// Whether this key made `signature` (ECDSA: DER) of `message`.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.material {
            Material::Jose(algorithm, key) => {
                // JOSE needs both integers in the length of a coordinate.
                let raw = match algorithm {
                    Algorithm::ES256 => {
                        p256::ecdsa::Signature::from_der(signature).map(|found| found.to_bytes().to_vec())
                    }
                    Algorithm::ES384 => {
                        p384::ecdsa::Signature::from_der(signature).map(|found| found.to_bytes().to_vec())
                    }
                    _ => Ok(signature.to_vec()),
                };
                raw.is_ok_and(|raw| {
                    let encoded = URL_SAFE_NO_PAD.encode(raw);
                    jsonwebtoken::crypto::verify(&encoded, message, key, *algorithm).unwrap_or(false)
                })
            }
            Material::P521(key) => p521::ecdsa::Signature::from_der(signature)
                .is_ok_and(|signature| key.verify(message, &signature).is_ok()),
        }
    }
}
