//! `POST /token`: the grants.

mod found;
mod password;
mod pkce;
mod refresh;
mod rotations;

use actix_web::HttpResponse;

use super::captcha;
use super::error::{AuthError, AuthResult, Code};
use super::limits::Bucket;
use super::request::Request;

pub use refresh::{RefreshOf, Turns, refresh};
pub use rotations::Rotations;

/// Chooses the grant by `grant_type` of the query, or of a form, which then is no body that a grant could read.
///
/// Errors: 400 `invalid_credentials` for other grants, 429 `over_request_rate_limit`.
/// Reference: supabase/auth `internal/api/token.go`.
pub async fn token(request: &Request) -> AuthResult<HttpResponse> {
    let grant = request.form_or_query("grant_type").unwrap_or_default();
    let grant = grant.as_str();
    if !matches!(grant, "pkce" | "refresh_token" | "id_token") {
        captcha::check(request).await?;
    }
    // Unknown grants are counted as well: upstream lets them through uncounted.
    let bucket = if grant == "web3" { Bucket::Web3 } else { Bucket::Token };
    request.auth.limits.check(bucket, request)?;
    match grant {
        "password" => password::grant(request).await,
        "refresh_token" => refresh::grant(request).await,
        "pkce" => pkce::grant(request).await,
        "id_token" => super::oauth::grant(request).await,
        "web3" => super::web3::grant(request).await,
        _ => Err(AuthError::bad_request(Code::InvalidCredentials, "unsupported_grant_type")),
    }
}
