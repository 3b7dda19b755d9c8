//! This server as an OAuth 2.1 authorization server and OpenID provider: clients, authorization with consent,
//! tokens. Reference: supabase/auth `internal/api/oauthserver/`.

mod authorize;
mod clients;
mod grants;
mod token;
mod userinfo;

use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Code};

pub use authorize::{authorize, consent, view};
pub use clients::{create, delete, list, load, regenerate_secret, register, show, update};
pub use grants::{list as list_grants, revoke as revoke_grant};
pub use token::token;
pub use userinfo::userinfo;

/// All routes of the OAuth server answer 404 while it is off.
pub fn require_enabled(request: &Request) -> AuthResult<()> {
    if request.auth.config.oauth_server.enabled {
        return Ok(());
    }
    Err(AuthError::not_found(Code::FeatureDisabled, "OAuth server is disabled"))
}
