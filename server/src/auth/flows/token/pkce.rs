//! The PKCE grant: an auth code and its verifier become a session.
//! Reference: supabase/auth `internal/api/token.go` (`PKCE`).

use actix_web::HttpResponse;
use serde_json::json;

use crate::auth::credentials::tokens;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Code};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::{flow_state, user};

/// Exchanges `auth_code` and `code_verifier` for a session. A code is good once; a wrong verifier does not use it up.
///
/// Errors: 404 `flow_state_not_found`, 422 `flow_state_expired`, 400 `bad_code_verifier`.
pub async fn grant(request: &Request) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    let params = request.params()?;
    let (code, verifier) = (params.text("auth_code")?, params.text("code_verifier")?);
    if code.is_empty() || verifier.is_empty() {
        return Err(AuthError::invalid("invalid request: both auth code and code verifier should be non-empty"));
    }
    let unknown = || AuthError::not_found(Code::FlowStateNotFound, "invalid flow state, no valid flow state found");
    let grant = request.grant();
    let db = request.db().await?;
    let answer = db
        .transaction(async |db| {
            flow_state::lock_user(db, &code).await?;
            // The row is locked: of several exchanges of one code only the first finds it. A code whose mail link was not
            // opened yet is not valid, even for somebody who knows it.
            let found = flow_state::find_by_auth_code(db, &code).await?;
            let state = found.filter(|state| state.auth_code_issued_at.is_some()).ok_or_else(unknown)?;
            let user_id = state.user_id.ok_or_else(unknown)?;
            if state.is_expired(config.external.flow_state_expiry) {
                let message = "invalid flow state, flow state has expired";
                return Err(AuthError::unprocessable(Code::FlowStateExpired, message));
            }
            let user = user::find_by_id(db, user_id).await?.filter(|user| user.deleted_at.is_none());
            let user = user.ok_or_else(unknown)?;
            // Upstream also gives a session to a user who was banned after the code was issued.
            if user.is_banned() {
                return Err(AuthError::forbidden(Code::UserBanned, "User is banned"));
            }
            if !state.verify(&verifier) {
                let message = "code challenge does not match previously saved code verifier";
                return Err(AuthError::bad_request(Code::BadCodeVerifier, message));
            }
            Entry::of(&user, Action::Login)
                .with(json!({ "provider_type": state.provider_type }))
                .record(db, config.audit_log_only)
                .await?;
            let mut answer = tokens::issue(request, db, user, &state.authentication_method, &grant).await?;
            answer.provider_token.clone_from(&state.provider_access_token);
            answer.provider_refresh_token.clone_from(&state.provider_refresh_token);
            flow_state::delete(db, state.id).await?;
            Ok(answer)
        })
        .await?;
    answer.respond()
}
