//! JSON Web Tokens: keys, claims, verification, signing.

pub mod bearer;
pub mod caller;
