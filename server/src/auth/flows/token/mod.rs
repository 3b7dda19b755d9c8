//! `POST /token`: the grants.

mod found;
mod password;
mod pkce;
mod refresh;
mod rotation;
mod rotations;

use actix_web::HttpResponse;

use crate::auth::door::limits::Bucket;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Code};
use crate::auth::outside::captcha;

pub use password::is_right;
pub use refresh::{RefreshOf, Turns, refresh};
pub use rotations::Rotations;

/// Chooses the grant by `grant_type` in the query, or in a form body, which a grant then cannot read as JSON.
///
/// Errors: 400 `invalid_credentials` for other grants, 429 `over_request_rate_limit`.
/// Reference: supabase/auth `internal/api/token.go`.
pub async fn token(request: &Request) -> AuthResult<HttpResponse> {
    let grant = request.form_or_query("grant_type").unwrap_or_default();
    let grant = grant.as_str();
    if !matches!(grant, "pkce" | "refresh_token" | "id_token") {
        captcha::check(request).await?;
    }
    // Unknown grants count towards the rate limit too. Upstream does not count them.
    let bucket = if grant == "web3" { Bucket::Web3 } else { Bucket::Token };
    request.auth.limits.check(bucket, request)?;
    match grant {
        "password" => password::grant(request).await,
        "refresh_token" => refresh::grant(request).await,
        "pkce" => pkce::grant(request).await,
        "id_token" => crate::auth::flows::oauth::grant(request).await,
        "web3" => crate::auth::flows::web3::grant(request).await,
        _ => Err(AuthError::bad_request(Code::InvalidCredentials, "unsupported_grant_type")),
    }
}
