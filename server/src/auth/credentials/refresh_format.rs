//! Refresh tokens of the second format. They contain the session's id and a counter; the tokens themselves
//! are not stored. Reference: supabase/auth `internal/crypto/refresh_tokens.go`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use rand::RngCore as _;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use crate::auth::credentials::lenient_base64;

const SIGNATURE: usize = 16;
const CHECKSUM: usize = 4;

/// A token with a valid checksum: `0 ‖ session ‖ varint counter ‖ HMAC-SHA-256[..16] ‖ SHA-256[..4]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterToken {
    pub session_id: Uuid,
    pub counter: i64,
    signed: Vec<u8>,
    signature: [u8; SIGNATURE],
}

impl CounterToken {
    /// `None` if it is not such a token. The checksum keeps forged tokens away from the database.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = lenient_base64::url_safe_no_pad(text)?;
        let (rest, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM)?)?;
        if rest.first() != Some(&0) || !bool::from(Sha256::digest(rest)[..CHECKSUM].ct_eq(checksum)) {
            return None;
        }
        let (signed, signature) = rest.split_at_checked(rest.len().checked_sub(SIGNATURE)?)?;
        let session_id = Uuid::from_slice(signed.get(1..17)?).ok()?;
        let mut counter = 0_u64;
        let varint = signed.get(17..)?;
        if varint.is_empty() || varint.len() > 10 {
            return None;
        }
        for (index, byte) in varint.iter().enumerate() {
            let last = index + 1 == varint.len();
            if (byte & 0x80 == 0) != last {
                return None;
            }
            counter |= u64::from(byte & 0x7f).checked_shl(u32::try_from(index * 7).ok()?)?;
        }
        Some(Self {
            session_id,
            counter: i64::try_from(counter).unwrap_or(i64::MAX),
            signed: signed.to_vec(),
            signature: signature.try_into().ok()?,
        })
    }

    /// Whether `key` signed it.
    pub fn is_signed_by(&self, key: &[u8]) -> bool {
        sign(key, &self.signed).is_some_and(|signature| bool::from(signature[..].ct_eq(&self.signature[..])))
    }

    /// The text of the token of `counter`.
    pub fn encode(session_id: Uuid, counter: i64, key: &[u8]) -> Option<String> {
        let mut bytes = vec![0];
        bytes.extend(session_id.as_bytes());
        let mut rest = u64::try_from(counter).unwrap_or(0);
        while rest >= 0x80 {
            bytes.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        let signature = sign(key, &bytes)?;
        bytes.extend(signature);
        let checksum = Sha256::digest(&bytes);
        bytes.extend(&checksum[..CHECKSUM]);
        Some(URL_SAFE_NO_PAD.encode(bytes))
    }
}

fn sign(key: &[u8], message: &[u8]) -> Option<[u8; SIGNATURE]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(message);
    mac.finalize().into_bytes()[..SIGNATURE].try_into().ok()
}

/// A new session key, as the database keeps it.
pub fn new_key() -> String {
    let mut key = [0_u8; 32];
    rand::rng().fill_bytes(&mut key);
    URL_SAFE_NO_PAD.encode(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_a_round_trip() {
        for counter in [0, 1, 127, 128, 300, i64::MAX] {
            let session = Uuid::new_v4();
            let text = CounterToken::encode(session, counter, b"key").expect("text");
            let token = CounterToken::parse(&text).expect("token");
            assert_eq!((token.session_id, token.counter), (session, counter));
            assert!(token.is_signed_by(b"key") && !token.is_signed_by(b"other"));
        }
    }

    #[test]
    fn a_changed_token_is_invalid() {
        let text = CounterToken::encode(Uuid::new_v4(), 5, b"key").expect("text");
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            // Far enough from the end that more than the last character's unused bits differ.
            changed[at] = if changed[at].is_ascii_lowercase() { b'A' } else { b'z' };
            let changed = String::from_utf8(changed).expect("ascii");
            assert_eq!(CounterToken::parse(&changed), None, "{at}");
        }
        for text in ["", "AAAA", "short", "!!!"] {
            assert_eq!(CounterToken::parse(text), None);
        }
    }

    #[test]
    fn unused_bits_are_ignored() {
        let session = Uuid::new_v4();
        let text = CounterToken::encode(session, 5, b"key").expect("text");
        // 38 bytes are 51 characters, the last of which has two unused bits.
        assert_eq!(text.len(), 51);
        let last = text.chars().next_back().expect("a character");
        let place = ALPHABET.find(last).expect("base64url");
        for stray in 1..4 {
            let stray = ALPHABET.chars().nth(place + stray).expect("base64url");
            let token = CounterToken::parse(&format!("{}{stray}", &text[..50])).expect("token");
            assert!(token.session_id == session && token.counter == 5 && token.is_signed_by(b"key"));
        }
    }

    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
}
