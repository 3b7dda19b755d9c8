//! `POST /logout`. Reference: supabase/auth `internal/api/logout.go`.

use actix_web::HttpResponse;

use super::bearer::Caller;
use super::error::{AuthError, AuthResult, Meaning as _};
use super::models::audit::{Action, Entry};
use super::models::session;
use super::request::Request;

/// Ends sessions: all of the user's (`global`, the default), this one (`local`) or all but this (`others`).
pub async fn logout(request: &Request, caller: Caller) -> AuthResult<HttpResponse> {
    let scope = match request.query("scope").unwrap_or("") {
        "" => "global",
        known @ ("global" | "local" | "others") => known,
        other => return Err(AuthError::invalid(format!("Unsupported logout scope {other:?}"))),
    };
    let db = request.db().await?;
    db.transaction(async |db| {
        Entry::of(&caller.user, Action::Logout).record(db, request.auth.config.audit_log_only).await?;
        match (scope, caller.session_id()) {
            ("local", Some(id)) => session::delete(db, id).await?,
            ("others", Some(id)) => session::delete_others(db, caller.user.id, id).await?,
            _ => session::delete_all(db, caller.user.id).await?,
        }
        Ok(())
    })
    .await
    .or_internal("Error logging out user")?;
    Ok(HttpResponse::NoContent().finish())
}
