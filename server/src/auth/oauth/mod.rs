//! Signing in through others: `/authorize`, `/callback`, the `id_token` grant.
//!
//! A name becomes a [`provider::Provider`]; [`authorize`] sends the browser there with a stored flow state as
//! `state`; [`callback`] exchanges the code it brings back and asks who that is ([`profiles`], or [`id_token`]
//! for those who speak OpenID Connect, verified by [`oidc`]); [`account`] finds or makes the user.
//! Reference: supabase/auth `internal/api/external.go`, `external_oauth.go`, `token_oidc.go`, `provider/`.

pub mod account;
mod authorize;
mod azure;
mod callback;
mod claims;
mod custom;
mod exchange;
mod grant;
mod id_token;
pub mod oidc;
mod profiles;
mod provider;

pub use authorize::{authorize, found, link};
pub use callback::callback;
pub use claims::Profile;
pub use grant::grant;
pub use oidc::Discovery;
