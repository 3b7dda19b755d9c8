//! Passwords: hashing on a bounded pool, the rules for new ones, and the check for leaked ones.

mod hash;
mod leaked;
mod rules;
mod schedule;

pub use hash::Hasher;
pub use rules::PasswordRules;
