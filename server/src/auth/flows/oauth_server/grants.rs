//! `/user/oauth/grants`: a user's grants to clients, and revoking them.

use actix_web::HttpResponse;
use serde_json::json;
use uuid::Uuid;

use super::authorize::describe;
use crate::auth::door::bearer::Caller;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::oauth_client;

/// The valid grants, newest first, without those of deleted clients.
pub async fn list(request: &Request, caller: Caller) -> AuthResult<HttpResponse> {
    let db = request.db().await?;
    let consents = oauth_client::consents_of(&db, caller.user.id).await.or_internal("Error fetching OAuth grants")?;
    let mut grants = Vec::with_capacity(consents.len());
    for consent in consents {
        let client = oauth_client::find(&db, consent.client_id).await.or_internal("Error fetching client details")?;
        if let Some(client) = client {
            grants.push(json!({
                "client": describe(&client),
                "scopes": consent.scopes,
                "granted_at": consent.granted_at,
            }));
        }
    }
    ok(&grants)
}

/// `DELETE …?client_id=`: 204; the client's sessions for the user end, and its codes are void.
///
/// Errors: 400 `validation_failed`, 404 `oauth_consent_not_found`.
pub async fn revoke(request: &Request, caller: Caller) -> AuthResult<HttpResponse> {
    let client_id = request.query("client_id").unwrap_or("");
    if client_id.is_empty() {
        return Err(AuthError::invalid("client_id query parameter is required"));
    }
    let client_id = Uuid::parse_str(client_id).map_err(|_| AuthError::invalid("invalid client_id format"))?;
    let user = &caller.user;
    let db = request.db().await?;
    let consent = oauth_client::find_consent(&db, user.id, client_id)
        .await
        .or_internal("Error finding consent")?
        .ok_or_else(|| AuthError::not_found(Code::OauthConsentNotFound, "No active grant found for this client"))?;
    db.transaction(async |db| {
        consent.revoke(db).await?;
        oauth_client::delete_codes(db, user.id, Some(client_id)).await?;
        oauth_client::end_sessions(db, user.id, client_id).await?;
        Entry::of(user, Action::TokenRevoked)
            .with(json!({ "oauth_client_id": client_id, "action": "revoke_oauth_grant" }))
            .record(db, request.auth.config.audit_log_only)
            .await?;
        Ok(())
    })
    .await
    .or_internal("Error revoking grant")?;
    Ok(HttpResponse::NoContent().finish())
}
