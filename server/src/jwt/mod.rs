//! JSON Web Tokens: keys, claims, verification, signing.
//!
//! [`verify`] takes a compact token to [`Claims`] under a [`KeySet`]; [`Claims::check`] judges times and audience,
//! [`RolePath`] finds the role. Reference: RFC 7519; behaviour in detail: PostgREST `Auth/Jwt.hs`.

pub mod bearer;
pub mod caller;
mod claims;
mod error;
mod keys;
mod role_path;
pub mod shared;
pub mod sign;
mod verify;

pub use claims::Claims;
pub use error::{ClaimsError, DecodeError, JwtError};
pub use keys::{Algorithm, KeyError, KeySet};
pub use role_path::RolePath;
pub use verify::verify;
