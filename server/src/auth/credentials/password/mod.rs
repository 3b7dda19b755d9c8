//! Passwords: hashing on a bounded pool, the rules for new ones, and the check for leaked ones.

mod hash;
mod leaked;
mod queue;
mod rules;
mod schedule;

pub use hash::Hasher;
pub use rules::PasswordRules;

use crate::auth::error::AuthResult;
use crate::auth::outside::OutboundContext;

/// A new hash of `password`. `client` waits for its turn; no connection is held while waiting and hashing.
pub async fn hash(away: &OutboundContext, client: &str, password: &str) -> AuthResult<String> {
    away.leave()?;
    away.auth().hasher.hash(client, password).await
}

/// Whether `password` matches `hash`; without a hash a dummy is compared. No connection is held while waiting and
/// hashing.
pub async fn verify(away: &OutboundContext, client: &str, password: &str, hash: Option<&str>) -> AuthResult<bool> {
    away.leave()?;
    away.auth().hasher.verify(client, password, hash).await
}

/// Hashes of recovery codes. No connection is held while waiting and hashing.
pub async fn hash_codes(away: &OutboundContext, client: &str, codes: &[String]) -> AuthResult<Vec<String>> {
    away.leave()?;
    away.auth().hasher.hash_codes(client, codes).await
}

/// The place of the hash that a recovery code matches; all of them are compared. No connection is held while waiting and hashing.
pub async fn find_code(
    away: &OutboundContext,
    client: &str,
    code: &str,
    hashes: Vec<String>,
) -> AuthResult<Option<usize>> {
    away.leave()?;
    away.auth().hasher.find_code(client, code, hashes).await
}
