//! Signatures of Ethereum wallets: secp256k1 over the text as EIP-191 wraps it; the key is recovered.

use k256::ecdsa::{RecoveryId, Signature, VerifyingKey};
use sha3::{Digest as _, Keccak256};

use super::message::SignedMessage;
use crate::auth::error::{AuthError, AuthResult};

/// 65 bytes of hex. `None` if it has the length but is not hex; it then matches no address.
pub fn read_signature(text: &str) -> AuthResult<Option<Vec<u8>>> {
    if text.strip_prefix("0x").unwrap_or(text).len() != 130 {
        return Err(AuthError::invalid(
            "signature must be 65 bytes long, encoded as a 130 character-long hexadecimal string",
        ));
    }
    Ok(text.strip_prefix("0x").and_then(|digits| hex::decode(digits).ok()))
}

/// Whether the wallet of the message's address made `signature`.
pub fn verify(message: &SignedMessage, signature: &[u8]) -> bool {
    recover(message.raw.as_bytes(), signature)
        .is_some_and(|address| message.address.eq_ignore_ascii_case(&format!("0x{}", hex::encode(address))))
}

/// The address whose key signed `text`.
fn recover(text: &[u8], signature: &[u8]) -> Option<[u8; 20]> {
    let (v, rs) = signature.split_last()?;
    let recovery = RecoveryId::from_byte(if *v >= 27 { v - 27 } else { *v })?;
    let mut signature = Signature::from_slice(rs).ok()?;
    let mut recovery = recovery;
    // The lower half of s is canonical; the upper one is the same signature with the mirrored point.
    if let Some(normal) = signature.normalize_s() {
        signature = normal;
        recovery = RecoveryId::new(!recovery.is_y_odd(), recovery.is_x_reduced());
    }
    let mut wrapped = format!("\x19Ethereum Signed Message:\n{}", text.len()).into_bytes();
    wrapped.extend_from_slice(text);
    let key = VerifyingKey::recover_from_prehash(&Keccak256::digest(&wrapped), &signature, recovery).ok()?;
    let point = key.to_encoded_point(false);
    let digest = Keccak256::digest(point.as_bytes().get(1..)?);
    digest.get(12..)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k256::ecdsa::SigningKey;

    #[test]
    fn the_signers_address_is_recovered() {
        let key = SigningKey::from_slice(&[5; 32]).expect("key");
        let text = b"hello";
        let digest = Keccak256::digest(b"\x19Ethereum Signed Message:\n5hello");
        let (signature, recovery) = key.sign_prehash_recoverable(&digest).expect("signed");
        let mut bytes = signature.to_vec();
        bytes.push(27 + recovery.to_byte());
        let point = key.verifying_key().to_encoded_point(false);
        let address: [u8; 20] = Keccak256::digest(&point.as_bytes()[1..])[12..].try_into().expect("address");
        assert_eq!(recover(text, &bytes), Some(address));
        assert_ne!(recover(b"other", &bytes), Some(address));
        assert_eq!(recover(text, &[0; 65]), None);
        assert_eq!(recover(text, &[]), None);
    }
}
