//! Signatures of Solana wallets: Ed25519 over the text, or over the envelope of hardware wallets.

use ed25519_dalek::{Signature, VerifyingKey};

use super::message::SignedMessage;
use crate::auth::credentials::lenient_base64;
use crate::auth::error::{AuthError, AuthResult};

/// 64 bytes of base64 in either alphabet, padded or not.
pub fn read_signature(text: &str) -> AuthResult<Option<Vec<u8>>> {
    if !matches!(text.len(), 86 | 88) {
        return Err(AuthError::invalid("signature must be 64 bytes encoded as base64 with or without padding"));
    }
    let text = text.trim_end_matches('=').replace('+', "-").replace('/', "_");
    lenient_base64::url_safe_no_pad(&text)
        .map(Some)
        .ok_or_else(|| AuthError::invalid("signature does not contain valid base64 characters"))
}

/// Whether the wallet of the message's address made `signature`.
pub fn verify(message: &SignedMessage, signature: &[u8]) -> bool {
    let Some((key, signature)) = key_and_signature(message, signature) else { return false };
    if key.verify_strict(message.raw.as_bytes(), &signature).is_ok() {
        return true;
    }
    envelope(message, &key).is_some_and(|envelope| key.verify_strict(&envelope, &signature).is_ok())
}

fn key_and_signature(message: &SignedMessage, signature: &[u8]) -> Option<(VerifyingKey, Signature)> {
    let bytes: [u8; 32] = bs58::decode(&message.address).into_vec().ok()?.try_into().ok()?;
    Some((VerifyingKey::from_bytes(&bytes).ok()?, Signature::from_slice(signature).ok()?))
}

/// The off-chain message format, version 0: <https://docs.anza.xyz/proposals/off-chain-message-signing>.
fn envelope(message: &SignedMessage, key: &VerifyingKey) -> Option<Vec<u8>> {
    let length = u16::try_from(message.raw.len()).ok()?;
    let mut domain = [0_u8; 32];
    for (slot, byte) in domain.iter_mut().zip(message.domain.bytes()) {
        *slot = byte;
    }
    let mut envelope = b"\xffsolana offchain\x00".to_vec();
    envelope.extend_from_slice(&domain);
    // ASCII text, one signer.
    envelope.extend_from_slice(&[0, 1]);
    envelope.extend_from_slice(key.as_bytes());
    envelope.extend_from_slice(&length.to_le_bytes());
    envelope.extend_from_slice(message.raw.as_bytes());
    Some(envelope)
}
