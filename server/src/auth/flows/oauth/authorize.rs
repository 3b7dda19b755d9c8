//! `GET /authorize` and `GET /user/identities/authorize`: redirect the browser to the provider.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::RngCore as _;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::provider;
use crate::auth::credentials::pkce::Challenge;
use crate::auth::door::bearer::Caller;
use crate::auth::door::limits::Bucket;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::flows::user::insufficient_aal;
use crate::auth::models::flow_state::FlowState;
use crate::auth::models::one_time_token::Purpose;
use crate::auth::models::{oauth_client_state, user};

/// Query keys that only the server sets; clients cannot override them.
const RESERVED: [&str; 8] = [
    "client_id",
    "client_secret",
    "redirect_uri",
    "response_type",
    "state",
    "code_challenge",
    "code_challenge_method",
    "code_verifier",
];

/// 302 to the provider.
///
/// Errors: 400 `validation_failed` for providers that cannot be used and for bad challenges, 404
/// `user_not_found` for an unknown invitation, 429 `over_request_rate_limit`.
pub async fn authorize(request: &Request) -> AuthResult<HttpResponse> {
    Ok(found(&begin(request, None).await?))
}

/// The same to link an identity to the caller: 302, or 200 `{"url"}` with `skip_http_redirect=true`.
///
/// Errors: also 401 `insufficient_aal`.
pub async fn link(request: &Request, caller: &Caller) -> AuthResult<HttpResponse> {
    let user = &caller.user;
    // The identity's address would become the user's.
    if user.email.is_empty() && user.has_mfa() && !caller.is_aal2() {
        return Err(insufficient_aal());
    }
    let url = begin(request, Some(user.id)).await?;
    if request.query("skip_http_redirect") == Some("true") {
        return ok(&json!({ "url": url }));
    }
    Ok(found(&url))
}

/// 302 to `location`, with non-ASCII characters percent-encoded.
pub fn found(location: &str) -> HttpResponse {
    let mut encoded = String::with_capacity(location.len());
    for byte in location.bytes() {
        if byte.is_ascii() {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    HttpResponse::build(StatusCode::FOUND).insert_header(("location", encoded)).finish()
}

fn unsupported(why: String) -> AuthError {
    AuthError::invalid(format!("Unsupported provider: {why}"))
}

async fn begin(request: &Request, linking_target: Option<Uuid>) -> AuthResult<String> {
    request.auth.limits.check(Bucket::Authorize, request)?;
    let query = |name: &str| request.query(name).unwrap_or("");
    let name = query("provider");
    let db = request.db().await?;
    let provider = provider::resolve(request, &db, name, query("scopes"), unsupported).await?;
    let invite = query("invite_token");
    if !invite.is_empty() {
        user::find_by_token(&db, invite, &[Purpose::Confirmation])
            .await
            .or_internal("Database error finding user")?
            .ok_or_else(|| AuthError::not_found(Code::UserNotFound, "User identified by token not found"))?;
    }
    let challenge = Challenge::read(query("code_challenge_method"), query("code_challenge"))?;
    let mut extra: Vec<(String, String)> = Vec::new();
    for (key, value) in request.query_pairs() {
        let lower = key.to_ascii_lowercase();
        if matches!(key.as_str(), "scopes" | "provider") || RESERVED.contains(&lower.as_str()) {
            continue;
        }
        let key = if key == "workos_provider" { "provider" } else { key };
        // The first value of a key wins.
        if !extra.iter().any(|(known, _)| known == key) {
            extra.push((key.to_owned(), value.clone()));
        }
    }
    // The provider's name as the settings spell it. Upstream stores what the client wrote, and `GitHub` was another provider.
    let mut state = FlowState::new(&provider.name, "oauth", None, challenge.as_ref());
    if provider.requires_pkce {
        let mut bytes = [0_u8; 32];
        rand::rng().fill_bytes(&mut bytes);
        let verifier = URL_SAFE_NO_PAD.encode(bytes);
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        state.oauth_client_state_id = Some(oauth_client_state::store(&db, &provider.name, &verifier).await?);
        extra.push(("code_challenge_method".to_owned(), "S256".to_owned()));
        extra.push(("code_challenge".to_owned(), digest));
    }
    state.invite_token = Some(invite.to_owned()).filter(|token| !token.is_empty());
    state.referrer = Some(request.redirect_target());
    state.linking_target_id = linking_target;
    state.email_optional = provider.email_optional;
    state.insert(&db).await.or_internal("Error creating flow state")?;
    Ok(provider.authorization_url(&state.id.to_string(), &extra))
}
