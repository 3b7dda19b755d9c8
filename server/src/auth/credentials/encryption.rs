//! Columns encrypted at rest: `{"key_id","alg":"aes-gcm-hkdf","data","nonce"}`.
//!
//! The key of a value is derived from the configured key and the id of its row, so that a value cannot be
//! copied to another row. Reference: supabase/auth `internal/crypto/crypto.go`.

use aes_gcm::aead::Aead as _;
use aes_gcm::{Aes256Gcm, KeyInit as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hkdf::Hkdf;
use rand::RngCore as _;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::auth::credentials::lenient_base64;
use crate::auth::error::{AuthResult, Fault};
use crate::config::{EncryptionConfig, Secret};

const ALGORITHM: &str = "aes-gcm-hkdf";

#[derive(Serialize, Deserialize)]
struct Sealed {
    key_id: String,
    alg: String,
    data: String,
    nonce: String,
}

impl Sealed {
    fn parse(stored: &str) -> Option<Self> {
        let sealed: Self = stored.starts_with('{').then(|| serde_json::from_str(stored).ok()).flatten()?;
        (sealed.alg == ALGORITHM && !sealed.key_id.is_empty() && !sealed.data.is_empty()).then_some(sealed)
    }
}

/// The text to store for `value` of the row `id`: encrypted if encryption is on, else unchanged.
pub fn seal(config: &EncryptionConfig, id: &str, value: &str) -> AuthResult<String> {
    let Some(key) = config.key.as_ref().filter(|_| config.encrypt) else { return Ok(value.to_owned()) };
    let mut nonce = [0_u8; 12];
    rand::rng().fill_bytes(&mut nonce);
    let data = cipher(key, id)?
        .encrypt(&nonce.into(), value.as_bytes())
        .map_err(|_| Fault::new("a value could not be encrypted"))?;
    let sealed = Sealed {
        key_id: config.key_id.clone(),
        alg: ALGORITHM.to_owned(),
        data: STANDARD.encode(data),
        nonce: STANDARD.encode(nonce),
    };
    Ok(serde_json::to_string(&sealed).map_err(|error| Fault::new(error.to_string()))?)
}

/// Whether a stored text must be sealed again: encryption is on, and it is not sealed with the current key.
pub fn is_outdated(config: &EncryptionConfig, stored: &str) -> bool {
    config.encrypt && Sealed::parse(stored).is_none_or(|sealed| sealed.key_id != config.key_id)
}

/// The value behind a stored text, encrypted or not.
pub fn open(config: &EncryptionConfig, id: &str, stored: &str) -> AuthResult<String> {
    let Some(sealed) = Sealed::parse(stored) else { return Ok(stored.to_owned()) };
    let key = config
        .decryption_keys
        .get(&sealed.key_id)
        .ok_or_else(|| Fault::new(format!("there is no decryption key '{}'", sealed.key_id)))?;
    let bad = || Fault::new("a stored value cannot be decrypted");
    let data = lenient_base64::standard(&sealed.data).ok_or_else(bad)?;
    let nonce: [u8; 12] = lenient_base64::standard(&sealed.nonce).and_then(|n| n.try_into().ok()).ok_or_else(bad)?;
    let plain = cipher(key, id)?.decrypt(&nonce.into(), data.as_slice()).map_err(|_| bad())?;
    Ok(String::from_utf8(plain).map_err(|_| bad())?)
}

fn cipher(key: &Secret, id: &str) -> Result<Aes256Gcm, Fault> {
    let bad = || Fault::new("an encryption key is not base64url of 32 bytes");
    let root = lenient_base64::url_safe_no_pad(key.reveal()).filter(|key| key.len() == 32).ok_or_else(bad)?;
    let mut derived = [0_u8; 32];
    Hkdf::<Sha256>::new(None, &root).expand(id.as_bytes(), &mut derived).map_err(|_| bad())?;
    Aes256Gcm::new_from_slice(&derived).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    #[test]
    fn a_value_can_be_decrypted_only_in_its_own_row() {
        let key = Secret::new(URL_SAFE_NO_PAD.encode([7; 32]));
        let config = EncryptionConfig {
            encrypt: true,
            key_id: "k".to_owned(),
            key: Some(key.clone()),
            decryption_keys: [("k".to_owned(), key)].into(),
        };
        let stored = seal(&config, "row", "secret").expect("sealed");
        assert!(!stored.contains("secret"));
        assert_eq!(open(&config, "row", &stored).expect("opened"), "secret");
        assert!(open(&config, "other", &stored).is_err());
        assert_eq!(open(&config, "row", "$2a$10$plain").expect("plain"), "$2a$10$plain");
    }

    #[test]
    fn a_key_with_stray_bits_is_the_same_key() {
        let of = |text: String| {
            let key = Secret::new(text);
            let decryption_keys = [("k".to_owned(), key.clone())].into();
            EncryptionConfig { encrypt: true, key_id: "k".to_owned(), key: Some(key), decryption_keys }
        };
        let canonical = URL_SAFE_NO_PAD.encode([7; 32]);
        // 32 bytes leave two unused bits in the last character: `c` with one of them set is `d`.
        let stray = format!("{}d", canonical.strip_suffix('c').expect("ends so"));
        let stored = seal(&of(canonical), "row", "secret").expect("sealed");
        assert_eq!(open(&of(stray), "row", &stored).expect("opened"), "secret");
    }
}
