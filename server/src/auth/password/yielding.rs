//! bcrypt that gives way: between its rounds it lets the scheduler run whatever else is ready on its core.
//!
//! A hash takes tens of milliseconds. A thread that woke up on the same core would wait for the whole time slice
//! of the one that hashes, a few milliseconds, which is many times what a read takes from request to answer. Where
//! somebody else runs on and on, it gives way once and then takes its share: a hash ends on a busy machine, too.
//! The construction is that of Provos and Mazières, "A Future-Adaptable Password Scheme", over the cipher of
//! the crate `blowfish`; texts are read and written by the crate `bcrypt`, whose own loop cannot be interrupted.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::alphabet::BCRYPT;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use bcrypt::{HashParts, Version};
use blowfish::Blowfish;
use rand::RngCore as _;
use subtle::ConstantTimeEq as _;

/// Rounds between two yields: at the usual speed about a tenth of a millisecond.
const ROUNDS_AT_ONCE: u32 = 2;
/// Who takes longer than this has not just woken up to do a little.
const LONGEST_TURN: Duration = Duration::from_millis(1);
/// Costs of hashes that are computed at all.
const COSTS: std::ops::RangeInclusive<u32> = 4..=31;
/// Bytes of a password that count, the closing NUL among them.
const KEY_LIMIT: usize = 72;
const BASE64: GeneralPurpose = GeneralPurpose::new(&BCRYPT, NO_PAD);

/// A new hash, `$2a$…`.
pub fn hash(password: &str, cost: u32) -> String {
    let mut salt = [0; 16];
    rand::rng().fill_bytes(&mut salt);
    text(Version::TwoA, cost, salt, &digest(password, cost, salt))
}

/// Whether `password` is the one of `hash`, of whichever version; a text that is no hash matches nothing.
pub fn verify(password: &str, hash: &str) -> bool {
    let Ok(parts) = hash.parse::<HashParts>() else { return false };
    let (cost, salt) = (parts.get_cost(), parts.get_salt_raw());
    if !COSTS.contains(&cost) {
        return false;
    }
    let own = text(Version::TwoB, cost, salt, &digest(password, cost, salt));
    own.as_bytes().ct_eq(parts.format_for_version(Version::TwoB).as_bytes()).into()
}

fn text(version: Version, cost: u32, salt: [u8; 16], digest: &[u8; 24]) -> String {
    // The last byte of the digest is in no hash.
    format!("${version}${cost:02}${}{}", BASE64.encode(salt), BASE64.encode(&digest[..23]))
}

fn digest(password: &str, cost: u32, salt: [u8; 16]) -> [u8; 24] {
    let mut key = [password.as_bytes(), &[0]].concat();
    key.truncate(KEY_LIMIT);
    let mut cipher: Blowfish = Blowfish::bc_init_state();
    cipher.salted_expand_key(&salt, &key);
    let mut gives_way = true;
    for round in 1..=1_u32 << cost {
        cipher.bc_expand_key(&key);
        cipher.bc_expand_key(&salt);
        if gives_way && round % ROUNDS_AT_ONCE == 0 {
            let before = Instant::now();
            std::thread::yield_now();
            gives_way = before.elapsed() < LONGEST_TURN;
        }
    }
    let mut digest = *b"OrpheanBeholderScryDoubt";
    for block in digest.chunks_exact_mut(8) {
        let half = |bytes: &[u8]| bytes.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        let (mut left, mut right) = (half(&block[..4]), half(&block[4..]));
        for _ in 0..64 {
            [left, right] = cipher.bc_encrypt([left, right]);
        }
        block[..4].copy_from_slice(&left.to_be_bytes());
        block[4..].copy_from_slice(&right.to_be_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWORDS: [&str; 5] = ["", "a", "correct-Horse-7", "ünï¢ødé", "with\0nul"];

    #[test]
    fn hashes_are_those_of_the_crate_in_both_directions() {
        let longest = "0123456789ab".repeat(6);
        for password in PASSWORDS.into_iter().chain([longest.as_str()]) {
            let theirs = bcrypt::hash(password, 4).expect("hash");
            assert!(verify(password, &theirs), "{password:?}");
            assert!(!verify(&format!("x{password}"), &theirs), "{password:?}");
            let ours = hash(password, 5);
            assert!(ours.starts_with("$2a$05$") && ours.len() == 60, "{ours}");
            assert!(bcrypt::verify(password, &ours).expect("a hash"), "{password:?}");
        }
    }

    #[test]
    fn published_vectors_match() {
        // Of jBCrypt's tests.
        for (password, hash) in [
            ("", "$2a$06$DCq7YPn5Rq63x1Lad4cll.TV4S6ytwfsfvkgY8jIucDrjc8deX1s."),
            ("a", "$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe"),
            ("abcdefghijklmnopqrstuvwxyz", "$2a$08$aTsUwsyowQuzRrDqFflhgekJ8d9/7Z3GV3UcgvzQW3J5zMyrTvlz."),
        ] {
            assert!(verify(password, hash), "{password:?}");
        }
    }

    #[test]
    fn what_is_no_hash_matches_nothing() {
        let good = hash("a", 4);
        let cost = |cost: &str| good.replacen("$04$", cost, 1);
        for bad in ["", "plain", &good[..59], &cost("$03$"), &cost("$99$"), &good.replacen("$2a$", "$3a$", 1)] {
            assert!(!verify("a", bad), "{bad}");
        }
    }
}
