//! Sign-in through external providers: `/authorize`, `/callback`, the `id_token` grant.
//!
//! A name resolves to a [`provider::Provider`]. [`authorize`] redirects the browser to it, with a stored flow state as `state`.
//! [`callback`] exchanges the returned code and loads the profile ([`profiles`], or for OpenID Connect [`id_token`], verified by
//! [`oidc`]). [`account`] finds or creates the user.
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
pub mod session;

pub use authorize::{authorize, found, link};
pub use callback::callback;
pub use claims::Profile;
pub use grant::{grant, warn_of_open_issuers};
pub use oidc::Discovery;
