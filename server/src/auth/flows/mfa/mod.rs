//! `/factors`: enrolls, challenges, verifies and removes second factors.
//! Reference: supabase/auth `internal/api/mfa.go`.

mod challenge;
mod enroll;
pub mod recovery_codes;
mod totp;
mod verify;

use actix_web::HttpResponse;
use serde_json::json;
use uuid::Uuid;

use crate::auth::door::bearer::Caller;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::factor;
use crate::auth::models::store::Db;
use crate::auth::models::user::{self, Factor, User};
use crate::auth::outside::mailer::{self, Notification};

pub use challenge::challenge;
pub use enroll::enroll;
pub use verify::verify;

const WRONG_TYPE: &str = "factor_type needs to be totp, phone, or webauthn";

/// The factor in the path, if it belongs to the user.
///
/// Errors: 404 `validation_failed` if it is not a uuid, 404 `mfa_factor_not_found`.
pub async fn load(request: &Request, user_id: Uuid, id: &str) -> AuthResult<Factor> {
    let id =
        Uuid::parse_str(id).map_err(|_| AuthError::not_found(Code::ValidationFailed, "factor_id must be an UUID"))?;
    let db = request.db().await?;
    factor::find_owned(&db, user_id, id)
        .await
        .or_internal("Database error loading factor")?
        .ok_or_else(|| AuthError::not_found(Code::MfaFactorNotFound, "Factor not found"))
}

/// Refuses a session of the first level that would add a factor to those that `owner` has.
///
/// Errors: 403 `insufficient_aal`.
fn require_level(owner: &User, caller: &Caller) -> AuthResult<()> {
    if owner.has_mfa() && !caller.is_aal2() {
        return Err(AuthError::forbidden(Code::InsufficientAal, "AAL2 required to enroll a new factor"));
    }
    Ok(())
}

/// Refuses to remove a factor if recovery codes, which are never the only factor, would remain alone.
async fn keep_another(request: &Request, db: &Db, user_id: Uuid, leaving: Uuid) -> AuthResult<()> {
    // Locked, so that of two requests for two factors the second one sees what the first has left.
    let Some(owner) = user::find_and_lock(db, user_id).await? else { return Ok(()) };
    let has_codes = owner.factors.iter().any(|factor| factor.factor_type == factor::RECOVERY_CODE);
    if has_codes && !recovery_codes::has_other_usable(&request.auth.config.mfa, &owner.factors, Some(leaving)) {
        let message = "Recovery codes cannot be the only verified factor. Please enroll another factor before unenrolling \
                       this one or delete your recovery codes.";
        return Err(AuthError::unprocessable(Code::MfaRecoveryCodesSoleFactor, message));
    }
    Ok(())
}

/// `DELETE /factors/{id}`: the sessions it raised return to the first level.
///
/// Errors: 422 `insufficient_aal` for a verified factor and a session of the first level, 422
/// `mfa_recovery_codes_sole_factor` if only recovery codes would remain.
pub async fn unenroll(request: &Request, caller: Caller, factor: Factor) -> AuthResult<HttpResponse> {
    if factor.factor_type == factor::RECOVERY_CODE {
        let message = "Recovery codes cannot be unenrolled with this endpoint, use DELETE /factors/recovery-codes";
        return Err(AuthError::unprocessable(Code::ValidationFailed, message));
    }
    if factor.is_verified() && !caller.is_aal2() {
        let message = "AAL2 required to unenroll verified factor";
        return Err(AuthError::unprocessable(Code::InsufficientAal, message));
    }
    let address = request.client_ip_text();
    let db = request.db().await?;
    db.transaction(async |db| {
        if factor.is_verified() {
            keep_another(request, db, caller.user.id, factor.id).await?;
        }
        // Sessions refer to their factor, so they are changed before it is deleted.
        factor::downgrade_sessions(db, &factor, caller.user.id).await?;
        factor::delete(db, factor.id).await?;
        Entry::of(&caller.user, Action::FactorUnenrolled)
            .from_address(&address)
            .with(json!({
                "factor_id": factor.id,
                "factor_status": factor.status,
                "session_id": caller.session_id(),
            }))
            .record(db, request.auth.config.audit_log_only)
            .await?;
        Ok(())
    })
    .await?;
    let notice = Notification::FactorUnenrolled { factor_type: &factor.factor_type };
    mailer::notify(request, &db, &caller.user, notice).await;
    ok(&json!({ "id": factor.id }))
}
