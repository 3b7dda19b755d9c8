//! Values that dotenvx has encrypted (`encrypted:…`): ECIES on secp256k1 with HKDF-SHA256 and AES-256-GCM, as in the packages
//! `eciesjs` and `ecies/go`. Reference: supabase/cli `pkg/config/secret.go`.

use std::collections::BTreeMap;

use aes_gcm::AesGcm;
use aes_gcm::aead::consts::U16;
use aes_gcm::aead::{AeadInPlace, KeyInit};
use aes_gcm::aes::Aes256;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hkdf::Hkdf;
use k256::elliptic_curve::sec1::ToEncodedPoint;
use k256::{PublicKey, SecretKey};
use sha2::Sha256;

const PREFIX: &str = "encrypted:";

/// Lengths of the parts in front of the ciphertext: the sender's point, the nonce and the tag.
const POINT: usize = 65;
const NONCE: usize = 16;
const TAG: usize = 16;

/// The private keys in `DOTENV_PRIVATE_KEY` and `DOTENV_PRIVATE_KEY_…`, each a list separated by commas.
pub fn keys(environment: &BTreeMap<String, String>) -> Vec<String> {
    const NAME: &str = "DOTENV_PRIVATE_KEY";
    let named = environment.iter().filter(|(name, _)| *name == NAME || name.starts_with(&format!("{NAME}_")));
    let keys = named.flat_map(|(_, keys)| keys.split(','));
    keys.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()).collect()
}

/// `None`: the text is not encrypted. `Some(None)`: none of the keys opens it.
pub fn open(text: &str, keys: &[String]) -> Option<Option<String>> {
    let encoded = text.strip_prefix(PREFIX)?;
    let Ok(sealed) = STANDARD.decode(encoded.trim()) else { return Some(None) };
    Some(keys.iter().find_map(|key| decrypt(key, &sealed)))
}

fn decrypt(key: &str, sealed: &[u8]) -> Option<String> {
    let secret = SecretKey::from_slice(&hex::decode(key.trim_start_matches("0x")).ok()?).ok()?;
    let (point, rest) = sealed.split_at_checked(POINT)?;
    let (nonce, rest) = rest.split_at_checked(NONCE)?;
    let (tag, text) = rest.split_at_checked(TAG)?;
    let shared = PublicKey::from_sec1_bytes(point).ok()?.to_projective() * *secret.to_nonzero_scalar();
    let mut material = point.to_vec();
    material.extend_from_slice(shared.to_affine().to_encoded_point(false).as_bytes());
    let mut derived = [0_u8; 32];
    Hkdf::<Sha256>::new(None, &material).expand(&[], &mut derived).ok()?;
    let mut text = text.to_vec();
    let cipher = AesGcm::<Aes256, U16>::new_from_slice(&derived).ok()?;
    cipher.decrypt_in_place_detached(nonce.into(), &[], &mut text, tag.into()).ok()?;
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with the npm package `eciesjs` 0.5.0, which dotenvx uses.
    const KEY: &str = "227a95be0095ed99e82feaafd60e22ea39a250f64966999e3e80010471102e0d";
    const SEALED: &str = "encrypted:BOHzInN3Fdaw0iPHddLgJDdwY3nJxmaahinTYOy32nk6EG//l26mvUaFN5iONFsdnzIdcii1kbfv7yi+xwrENFhKVEpjLcQ/0kDKF3HXaaXQn75uVAtkfoVVw/tX6+nz7vVRhDV2oWd3xbeXqWYi+6RpPFmA4eE=";

    #[test]
    fn a_sealed_value_is_opened_by_one_of_the_keys() {
        let environment = BTreeMap::from([
            ("DOTENV_PRIVATE_KEY".to_owned(), String::new()),
            ("DOTENV_PRIVATE_KEY_LOCAL".to_owned(), format!("{}, {KEY}", "1".repeat(64))),
            ("DOTENV_PRIVATE_KEYS".to_owned(), "not one".to_owned()),
        ]);
        let keys = keys(&environment);
        assert_eq!(keys.len(), 2);
        assert_eq!(open(SEALED, &keys), Some(Some("sesame of this project".to_owned())));
        assert_eq!(open("plain", &keys), None);
        for wrong in ["encrypted:", "encrypted:invalid", "encrypted:AAAA", &SEALED[..SEALED.len() - 4]] {
            assert_eq!(open(wrong, &keys), Some(None), "{wrong}");
        }
        assert_eq!(open(SEALED, &[]), Some(None));
    }
}
