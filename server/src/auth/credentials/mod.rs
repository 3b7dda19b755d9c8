//! Credentials: passwords, codes, keys, tokens.

pub mod encryption;
pub mod lenient_base64;
pub mod otp;
pub mod password;
pub mod pkce;
pub mod recovery_codes;
pub mod refresh_format;
pub mod tokens;
pub mod webauthn;
