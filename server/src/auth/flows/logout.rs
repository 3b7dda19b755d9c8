//! `POST /logout`. Reference: supabase/auth `internal/api/logout.go`.

use actix_web::HttpResponse;

use crate::auth::door::bearer::Caller;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Meaning as _};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::session;

/// Ends sessions: all of the user's (`global`, the default), this one (`local`) or all but this (`others`).
///
/// A client of the OAuth server can only end its own session.
pub async fn logout(request: &Request, caller: Caller) -> AuthResult<HttpResponse> {
    let scope = match request.query("scope").unwrap_or("") {
        "" => "global",
        known @ ("global" | "local" | "others") => known,
        other => return Err(AuthError::invalid(format!("Unsupported logout scope {other:?}"))),
    };
    let scope = if caller.is_client() { "local" } else { scope };
    let db = request.db().await?;
    db.transaction(async |db| {
        Entry::of(&caller.user, Action::Logout).record(db, request.auth.config.audit_log_only).await?;
        match (scope, caller.session_id()) {
            ("local", Some(id)) => session::delete(db, id).await?,
            (_, None) if caller.is_client() => {}
            ("others", Some(id)) => session::delete_others(db, caller.user.id, id).await?,
            _ => session::delete_all(db, caller.user.id).await?,
        }
        Ok(())
    })
    .await
    .or_internal("Error logging out user")?;
    Ok(HttpResponse::NoContent().finish())
}
