//! One-time codes and their hashes. Reference: supabase/auth `internal/crypto/crypto.go`.

use chrono::{DateTime, Utc};
use hmac::{Hmac, Mac as _};
use rand::Rng as _;
use sha2::{Digest as _, Sha224};
use subtle::ConstantTimeEq as _;

use crate::auth::credentials::pkce;
use crate::auth::door::request::Request;
use crate::config::Secret;
use crate::jwt::AcceptedKeys;

/// A uniform code of `digits` decimal digits, zero-padded.
pub fn generate(digits: usize) -> String {
    let mut rng = rand::rng();
    (0..digits).map(|_| char::from(b'0' + rng.random_range(0..10_u8))).collect()
}

/// A code to be mailed to `address`. The same in every repetition of a transaction, since it may already have been
/// sent.
pub fn for_mail(request: &Request, purpose: &str, address: &str) -> String {
    let digits = request.auth.config.mailer.otp_length;
    request.once(&format!("code of {purpose} {address}"), || generate(digits))
}

/// Hashes codes.
pub struct CodeHasher {
    keyed: Hmac<Sha224>,
    /// Of former secrets and of one that comes next: codes are on their way that they have hashed.
    accepted: Vec<(Hmac<Sha224>, Option<DateTime<Utc>>)>,
}

fn keyed(secret: &Secret) -> Hmac<Sha224> {
    // HMAC takes keys of any length.
    Hmac::new_from_slice(secret.reveal().as_bytes()).unwrap_or_else(|_| Hmac::new(&Default::default()))
}

fn hashed(mut keyed: Hmac<Sha224>, address: &str, code: &str) -> String {
    keyed.update(address.as_bytes());
    keyed.update(code.as_bytes());
    hex::encode(keyed.finalize().into_bytes())
}

impl CodeHasher {
    /// `secret` is the server's, the same for all its instances.
    pub fn new(secret: &Secret) -> Self {
        Self { keyed: keyed(secret), accepted: Vec::new() }
    }

    /// The same, which knows the codes of further secrets again.
    pub fn accepting(mut self, keys: &[AcceptedKeys]) -> Self {
        self.accepted = keys.iter().map(|keys| (keyed(&keys.jwt_secret), keys.tokens_until)).collect();
        self
    }

    /// The hash that is stored and put into links: lower-case hex HMAC-SHA-224 of address and code. Upstream's hash has
    /// no key: anybody who knows an address can compute the hashes of all codes and guess through links, where tries
    /// are not counted.
    pub fn hash(&self, address: &str, code: &str) -> String {
        hashed(self.keyed.clone(), address, code)
    }

    /// What may be stored for a code: [`Self::hash`] first, then what former secrets made of it.
    pub fn hashes(&self, address: &str, code: &str) -> Vec<String> {
        let now = Utc::now();
        let accepted = self.accepted.iter().filter(|(_, until)| until.is_none_or(|until| now < until));
        let others = accepted.map(|(keyed, _)| hashed(keyed.clone(), address, code));
        std::iter::once(self.hash(address, code)).chain(others).collect()
    }
}

/// Upstream's hash of a code, as found in databases that upstream served before. Typed codes are compared with it too;
/// it is never stored.
pub fn plain_hash(address: &str, code: &str) -> String {
    hex::encode(Sha224::digest(format!("{address}{code}")))
}

/// Whether `actual` is the stored hash, with or without the prefix of PKCE, and was sent within `validity`.
pub fn is_valid(actual: &str, stored: &str, sent_at: Option<DateTime<Utc>>, validity: std::time::Duration) -> bool {
    let Some(sent_at) = sent_at else { return false };
    if stored.is_empty() || is_expired(sent_at, validity) {
        return false;
    }
    let plain = stored.strip_prefix(pkce::PREFIX).unwrap_or(stored);
    let same = |candidate: &str| bool::from(actual.as_bytes().ct_eq(candidate.as_bytes()));
    same(stored) | same(plain)
}

pub fn is_expired(sent_at: DateTime<Utc>, validity: std::time::Duration) -> bool {
    chrono::Duration::from_std(validity).is_ok_and(|validity| Utc::now() > sent_at + validity)
}

/// A random password nobody needs to know, holding one of each required character.
pub fn unknown_password(required: &[String]) -> String {
    const CHARACTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let mut rng = rand::rng();
    let mut password: Vec<char> = required
        .iter()
        .filter_map(|set| {
            let characters: Vec<char> = set.chars().collect();
            (!characters.is_empty()).then(|| characters[rng.random_range(0..characters.len())])
        })
        .collect();
    while password.len() < 40 {
        password.push(char::from(CHARACTERS[rng.random_range(0..CHARACTERS.len())]));
    }
    password.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_code_is_bound_to_its_address_and_expires() {
        let hasher = CodeHasher::new(&Secret::new("a secret"));
        let hash = |address: &str, code: &str| hasher.hash(address, code);
        let stored = hash("a@b", "123456");
        assert_ne!(stored, plain_hash("a@b", "123456"));
        assert_ne!(stored, CodeHasher::new(&Secret::new("another")).hash("a@b", "123456"));
        assert_eq!(stored.len(), 56);
        let accepted = |until: &str| {
            let text = format!(r#"[{{"jwt_secret":"a secret","tokens_until":"{until}"}}]"#);
            let keys = AcceptedKeys::parse(&text).expect("keys");
            CodeHasher::new(&Secret::new("another")).accepting(&keys).hashes("a@b", "123456")
        };
        assert!(accepted("2999-01-01T00:00:00Z").contains(&stored));
        assert!(!accepted("2001-01-01T00:00:00Z").contains(&stored));
        let now = Some(Utc::now());
        let minute = Duration::from_secs(60);
        assert!(is_valid(&hash("a@b", "123456"), &stored, now, minute));
        assert!(is_valid(&hash("a@b", "123456"), &format!("pkce_{stored}"), now, minute));
        assert!(!is_valid(&hash("c@b", "123456"), &stored, now, minute));
        assert!(!is_valid(&stored, "", now, minute));
        assert!(!is_valid(&stored, &stored, Some(Utc::now() - chrono::Duration::minutes(2)), minute));
        assert!(!is_valid(&stored, &stored, None, minute));
    }

    #[test]
    fn an_unknown_password_meets_the_required_characters() {
        let password = unknown_password(&["!".to_owned(), "7".to_owned()]);
        assert!(password.contains('!') && password.contains('7') && password.len() >= 40);
    }
}
