//! `/factors/recovery-codes`: codes on paper for those who have lost their second factor.
//!
//! They are a factor beside another one, never the only one. Reference: supabase/auth `internal/api/recovery_codes.go`.

use actix_web::HttpResponse;
use chrono::Utc;
use serde_json::json;
use uuid::Uuid;

use super::{enroll, verify};
use crate::auth::credentials::{password, recovery_codes};
use crate::auth::door::bearer::Caller;
use crate::auth::door::limits::{self, Bucket};
use crate::auth::door::params::Params;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::factor::{self, NewFactor, RECOVERY_CODE};
use crate::auth::models::recovery_codes::{self as sets, CodeSet};
use crate::auth::models::session;
use crate::auth::models::store::Db;
use crate::auth::models::user::{self, Factor};
use crate::auth::outside::mailer::{self, Notification};
use crate::config::MfaConfig;

/// The name of the factor if the user gives none.
const DEFAULT_NAME: &str = "Recovery codes";

const CANNOT_FIND: &str = "Database error finding recovery code set";

fn not_enrolled() -> AuthError {
    AuthError::not_found(Code::MfaFactorNotFound, "The user has not enrolled recovery codes")
}

fn locked() -> AuthError {
    let message = "Too many failed verification attempts, try again later";
    AuthError::too_many_requests(Code::MfaRecoveryCodesLocked, message)
}

fn failed() -> AuthError {
    AuthError::unprocessable(Code::MfaVerificationFailed, "Invalid recovery code entered")
}

fn user_gone() -> AuthError {
    AuthError::not_found(Code::UserNotFound, "User not found")
}

/// Refuses callers without a session, and those of the first level. `what` they wanted to do.
fn require_aal2(caller: &Caller, what: &str) -> AuthResult<()> {
    if caller.is_aal2() {
        return Ok(());
    }
    Err(AuthError::forbidden(Code::InsufficientAal, format!("AAL2 required to {what} recovery codes")))
}

fn require_session(caller: &Caller, what: &str) -> AuthResult<()> {
    if caller.session.is_some() {
        return Ok(());
    }
    let message = format!("A valid session and a registered user are required to {what} recovery codes");
    Err(AuthError::internal(message))
}

fn require_enrollable(mfa: &MfaConfig) -> AuthResult<()> {
    if mfa.recovery_codes.enroll {
        return Ok(());
    }
    let message = "MFA enroll is disabled for recovery codes";
    Err(AuthError::unprocessable(Code::MfaRecoveryCodesEnrollNotEnabled, message))
}

/// Whether the user could sign in with a factor other than recovery codes and `except`.
pub(super) fn has_other_usable(mfa: &MfaConfig, factors: &[Factor], except: Option<Uuid>) -> bool {
    factors.iter().filter(|factor| factor.is_verified() && Some(factor.id) != except).any(|factor| {
        match factor.factor_type.as_str() {
            "totp" => mfa.totp_verify,
            "phone" => mfa.phone_verify,
            "webauthn" => mfa.webauthn_verify,
            _ => false,
        }
    })
}

/// New codes and their hashes. No connection is held while hashing.
async fn draw(request: &Request) -> AuthResult<(Vec<String>, Vec<String>)> {
    let config = &request.auth.config.mfa.recovery_codes;
    let codes: Vec<String> = (0..config.count).map(|_| recovery_codes::generate(config.code_length)).collect();
    let hashes = password::hash_codes(&request.away(), &limits::client(request), &codes).await?;
    Ok((codes, hashes))
}

/// `GET /factors/recovery-codes`: how many there are and how many are left.
///
/// Errors: 404 `mfa_factor_not_found`.
pub async fn status(request: &Request, caller: Caller) -> AuthResult<HttpResponse> {
    let db = request.db().await?;
    let set = sets::find(&db, caller.user.id).await.or_internal(CANNOT_FIND)?.ok_or_else(not_enrolled)?;
    let (total, remaining) = set.count(&db).await.or_internal("Database error counting recovery codes")?;
    ok(&json!({ "id": set.factor_id, "type": RECOVERY_CODE, "total": total, "remaining": remaining }))
}

/// `POST /factors/recovery-codes`: the only answer with these codes.
///
/// Errors: 422 `mfa_recovery_codes_enroll_not_enabled`, 403 `insufficient_aal`, 422 `mfa_verified_factor_exists`,
/// 422 `mfa_recovery_codes_sole_factor`, 422 `mfa_factor_name_conflict`, 422 `too_many_enrolled_mfa_factors`.
pub async fn generate(request: &Request, caller: Caller) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    require_session(&caller, "generate")?;
    require_enrollable(&config.mfa)?;
    let params = if request.body()?.is_empty() { Params::default() } else { request.params()? };
    let name = params.text("friendly_name")?;
    let name = if name.trim().is_empty() { DEFAULT_NAME } else { &name };
    require_aal2(&caller, "generate")?;
    let exists = || {
        let message = "Recovery codes are already enrolled for this user, use regenerate to rotate them";
        AuthError::unprocessable(Code::MfaVerifiedFactorExists, message)
    };
    let sole = || {
        let message = "At least one other verified factor is required to generate recovery codes";
        AuthError::unprocessable(Code::MfaRecoveryCodesSoleFactor, message)
    };
    let user_id = caller.user.id;
    let db = request.db().await?;
    if sets::find(&db, user_id).await.or_internal(CANNOT_FIND)?.is_some() {
        return Err(exists());
    }
    enroll::check(request, &db, &caller, name).await?;
    if !has_other_usable(&config.mfa, &caller.user.factors, None) {
        return Err(sole());
    }
    let (codes, hashes) = draw(request).await?;
    let address = request.client_ip_text();
    let id = Uuid::new_v4();
    let stored = db
        .transaction(async |db| {
            // Hashing took a while: the user's factors may have changed.
            let owner = user::find_and_lock(db, user_id).await?.ok_or_else(user_gone)?;
            if sets::find(db, user_id).await.or_internal(CANNOT_FIND)?.is_some() {
                return Err(exists());
            }
            if !has_other_usable(&config.mfa, &owner.factors, None) {
                return Err(sole());
            }
            let new =
                NewFactor { id, user_id, friendly_name: name, factor_type: RECOVERY_CODE, secret: None, phone: None };
            new.insert(db).await?;
            CodeSet::create(db, user_id, id, &hashes).await?;
            Entry::of(&caller.user, Action::RecoveryCodesGenerated)
                .from_address(&address)
                .with(json!({ "factor_id": id, "count": codes.len() }))
                .record(db, config.audit_log_only)
                .await?;
            Ok(())
        })
        .await;
    stored.map_err(|error| if error.is_unique_violation() { enroll::name_conflict(name) } else { error })?;
    mailer::notify(request, &db, &caller.user, Notification::FactorEnrolled { factor_type: RECOVERY_CODE }).await;
    ok(&json!({ "id": id, "type": RECOVERY_CODE, "friendly_name": name, "total": codes.len(), "codes": codes }))
}

/// `POST /factors/recovery-codes/regenerate`: new codes instead of all old ones, which also ends a lock.
///
/// Errors: 422 `mfa_recovery_codes_enroll_not_enabled`, 403 `insufficient_aal`, 404 `mfa_factor_not_found`.
pub async fn regenerate(request: &Request, caller: Caller) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    require_session(&caller, "regenerate")?;
    require_enrollable(&config.mfa)?;
    require_aal2(&caller, "regenerate")?;
    let db = request.db().await?;
    let (set, factor) = load(&db, &caller).await?.ok_or_else(not_enrolled)?;
    let (codes, hashes) = draw(request).await?;
    let address = request.client_ip_text();
    db.transaction(async |db| {
        if !set.replace(db, &hashes).await.or_internal("Database error replacing recovery codes")? {
            return Err(not_enrolled());
        }
        Entry::of(&caller.user, Action::RecoveryCodesRegenerated)
            .from_address(&address)
            .with(json!({ "factor_id": factor.id, "count": codes.len() }))
            .record(db, config.audit_log_only)
            .await?;
        Ok(())
    })
    .await?;
    let mut body = json!({ "id": factor.id, "type": RECOVERY_CODE, "total": codes.len(), "codes": codes });
    if !factor.friendly_name.is_empty() {
        body["friendly_name"] = factor.friendly_name.into();
    }
    ok(&body)
}

/// The caller's set and its factor.
async fn load(db: &Db, caller: &Caller) -> AuthResult<Option<(CodeSet, Factor)>> {
    let Some(set) = sets::find(db, caller.user.id).await.or_internal(CANNOT_FIND)? else { return Ok(None) };
    let factor = factor::find_owned(db, caller.user.id, set.factor_id)
        .await
        .or_internal("Database error finding recovery code factor")?;
    Ok(factor.map(|factor| (set, factor)))
}

/// `POST /factors/recovery-codes/verify`: uses up a code and answers with the session at the second level; the user's
/// sessions below it end.
///
/// Errors: 422 `mfa_recovery_codes_verify_not_enabled`, 400 `validation_failed`, 422 `mfa_verification_failed`,
/// 429 `mfa_recovery_codes_locked`, 403 `mfa_verification_rejected`.
pub async fn redeem(request: &Request, caller: Caller) -> AuthResult<HttpResponse> {
    request.auth.limits.check(Bucket::FactorVerify, request)?;
    let config = &request.auth.config;
    require_session(&caller, "verify")?;
    if !config.mfa.recovery_codes.verify {
        let message = "MFA verification is disabled for recovery codes";
        return Err(AuthError::unprocessable(Code::MfaRecoveryCodesVerifyNotEnabled, message));
    }
    let code = recovery_codes::normalize(&request.params()?.text("code")?);
    if code.is_empty() {
        return Err(AuthError::invalid("Code needs to be non-empty"));
    }
    let session_id = caller.session_id().ok_or_else(|| AuthError::internal("Cannot read SessionId claim as UUID"))?;
    let db = request.db().await?;
    let (set, factor) = load(&db, &caller).await?.ok_or_else(failed)?;
    if set.is_locked(Utc::now()) {
        return Err(locked());
    }
    let attempt = verify::begin(request, &caller, &factor).await?;
    let unused = set.unused(&db).await.or_internal("Database error finding recovery codes")?;
    let hashes = unused.iter().map(|unused| unused.hash.clone()).collect();
    let place = password::find_code(&request.away(), &limits::client(request), &code, hashes).await?;
    let found = place.and_then(|place| unused.get(place));
    attempt.judged(found.is_some());
    verify::ask_hook(request, &db, &caller, &factor, found.is_some()).await?;
    let address = request.client_ip_text();
    let answer = db
        .transaction(async |db| {
            let owner = user::find_and_lock(db, caller.user.id).await?.ok_or_else(user_gone)?;
            let set =
                sets::find_and_lock(db, owner.id).await.or_internal("Database error locking recovery code set")?;
            let set = set.ok_or_else(failed)?;
            // As tries at once count one after the other, no more than the allowed number can succeed.
            if set.is_locked(Utc::now()) {
                return Err(locked());
            }
            let is_consumed = match found {
                Some(found) => {
                    sets::consume(db, found.id).await.or_internal("Database error consuming recovery code")?
                }
                None => false,
            };
            if !is_consumed {
                // Committed: a code that another request has used up counts as a wrong one.
                let (most, lockout) = (config.mfa.recovery_codes.max_attempts, config.mfa.recovery_codes.lockout);
                set.count_failure(db, most, lockout)
                    .await
                    .or_internal("Database error recording failed verification")?;
                return Ok(None);
            }
            set.reset(db).await.or_internal("Database error resetting recovery code lockout")?;
            let (_, remaining) = set.count(db).await.or_internal("Database error counting recovery codes")?;
            Entry::of(&owner, Action::RecoveryCodesVerified)
                .from_address(&address)
                .with(json!({ "factor_id": factor.id, "remaining": remaining }))
                .record(db, config.audit_log_only)
                .await?;
            let answer = verify::raise_session(request, db, owner, session_id, &factor).await?;
            session::delete_below_aal2(db, caller.user.id).await.or_internal("Failed to update sessions")?;
            Ok(Some(answer))
        })
        .await?;
    answer.ok_or_else(failed)?.respond()
}

/// `DELETE /factors/recovery-codes`: the sessions that codes raised return to the first level.
///
/// Errors: 403 `insufficient_aal`, 404 `mfa_factor_not_found`.
pub async fn delete(request: &Request, caller: Caller) -> AuthResult<HttpResponse> {
    require_session(&caller, "delete")?;
    require_aal2(&caller, "delete")?;
    let address = request.client_ip_text();
    let db = request.db().await?;
    let id = db
        .transaction(async |db| {
            let owner = user::find_and_lock(db, caller.user.id).await?.ok_or_else(user_gone)?;
            let factor = owner.factors.iter().find(|factor| factor.factor_type == RECOVERY_CODE);
            let factor = factor.ok_or_else(not_enrolled)?;
            factor::downgrade_sessions(db, factor, owner.id)
                .await
                .or_internal("Database error downgrading sessions")?;
            factor::delete(db, factor.id).await.or_internal("Database error deleting recovery code factor")?;
            Entry::of(&owner, Action::RecoveryCodesDeleted)
                .from_address(&address)
                .with(json!({ "factor_id": factor.id }))
                .record(db, request.auth.config.audit_log_only)
                .await?;
            Ok(factor.id)
        })
        .await?;
    mailer::notify(request, &db, &caller.user, Notification::FactorUnenrolled { factor_type: RECOVERY_CODE }).await;
    ok(&json!({ "id": id }))
}
