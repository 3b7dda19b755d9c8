//! JSON Web Tokens: keys, claims, verification, signing.
//!
//! [`verify`] turns a compact token into [`Claims`] with a [`KeySet`]. [`Claims::check`] checks times and audience. [`RolePath`] finds
//! the role.
//! Reference: RFC 7519; behaviour in detail: PostgREST `Auth/Jwt.hs`.

mod accepted;
pub mod bearer;
pub mod caller;
mod claims;
mod error;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzed;
mod issuers;
mod keys;
mod material;
mod role_path;
pub mod secret;
pub mod shared;
pub mod sign;
mod verify;

pub use accepted::{ACCEPTED_KEYS, AcceptedKeys};
pub use claims::Claims;
pub use error::{ClaimsError, DecodeError, JwtError};
pub use issuers::{IssuerSetting, Issuers, THIRD_PARTY_ISSUERS};
pub use keys::{KeyError, KeySet};
pub use material::Algorithm;
pub use role_path::RolePath;
pub use verify::verify;
