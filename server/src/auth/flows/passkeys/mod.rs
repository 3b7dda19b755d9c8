//! `/passkeys`: sign-in with discoverable credentials, and their management.
//! Reference: supabase/auth `internal/api/passkey_*.go`.

mod authentication;
mod names;
mod registration;

use actix_web::HttpResponse;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::auth::credentials::webauthn::Ceremony;
use crate::auth::door::bearer::Caller;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::passkey::{self, Passkey, Purpose};
use crate::auth::models::store::Db;

pub use authentication::{authentication_options, verify_authentication};
pub use registration::{registration_options, verify_registration};

/// Everything below `/passkeys` answers 404 while the feature is off.
pub fn require_enabled(request: &Request) -> AuthResult<()> {
    if request.auth.config.webauthn.passkey_enabled {
        return Ok(());
    }
    Err(AuthError::not_found(Code::PasskeyDisabled, "Passkeys are disabled"))
}

/// Users with a second factor change passkeys only after proving it.
fn require_level(caller: &Caller) -> AuthResult<()> {
    if caller.user.has_mfa() && !caller.is_aal2() {
        let message = "AAL2 session is required to manage passkeys when MFA is enabled";
        return Err(AuthError::forbidden(Code::InsufficientAal, message));
    }
    Ok(())
}

fn not_found() -> AuthError {
    AuthError::not_found(Code::ValidationFailed, "Passkey not found")
}

/// The body of an answer: the ceremony's id and the browser's credential.
struct Answer {
    challenge_id: Uuid,
    credential: Value,
}

impl Answer {
    fn read(request: &Request) -> AuthResult<Self> {
        let params = request.params()?;
        let id = params.text("challenge_id")?;
        if id.is_empty() {
            return Err(AuthError::invalid("challenge_id is required"));
        }
        // Upstream accepts null here and fails when it reads the credential.
        let credential = params.raw("credential").ok_or_else(|| AuthError::invalid("credential is required"))?;
        let challenge_id = Uuid::parse_str(&id).map_err(|_| AuthError::invalid("challenge_id must be a valid UUID"))?;
        Ok(Self { challenge_id, credential: credential.clone() })
    }

    /// Takes the ceremony out of the store.
    async fn take_ceremony(&self, db: &Db, purpose: Purpose, user_id: Option<Uuid>) -> AuthResult<Ceremony> {
        let taken = passkey::take_ceremony(db, self.challenge_id, purpose, user_id)
            .await
            .or_internal("Database error consuming challenge")?;
        match taken {
            None => {
                let message = "Challenge not found or already used";
                Err(AuthError::bad_request(Code::WebauthnChallengeNotFound, message))
            }
            Some((_, true)) => Err(AuthError::bad_request(Code::WebauthnChallengeExpired, "Challenge has expired")),
            Some((ceremony, false)) => Ok(ceremony),
        }
    }
}

fn refused(message: &str) -> AuthError {
    AuthError::bad_request(Code::WebauthnVerificationFailed, message)
}

/// The user's passkeys, oldest first.
pub async fn list(request: &Request, user_id: Uuid) -> AuthResult<HttpResponse> {
    let db = request.db().await?;
    ok(&passkey::of_user(&db, user_id).await.or_internal("Database error loading passkeys")?)
}

async fn load(db: &Db, user_id: Uuid, id: &str) -> AuthResult<Passkey> {
    let id = Uuid::parse_str(id).map_err(|_| not_found())?;
    passkey::find_owned(db, user_id, id).await.or_internal("Database error loading passkey")?.ok_or_else(not_found)
}

/// `PATCH /passkeys/{id}`: another name, of 1 to 120 bytes.
pub async fn rename(request: &Request, caller: Caller, id: &str) -> AuthResult<HttpResponse> {
    Uuid::parse_str(id).map_err(|_| not_found())?;
    let name = request.params()?.text("friendly_name")?;
    if name.is_empty() {
        return Err(AuthError::invalid("friendly_name is required"));
    }
    if name.len() > 120 {
        return Err(AuthError::invalid("friendly_name must be 120 characters or less"));
    }
    let address = request.client_ip_text();
    let db = request.db().await?;
    let passkey = load(&db, caller.user.id, id).await?;
    let passkey = db
        .transaction(async |db| {
            let mut passkey = passkey.clone();
            passkey.rename(db, &name).await?;
            Entry::of(&caller.user, Action::PasskeyUpdated)
                .from_address(&address)
                .with(json!({ "passkey_id": passkey.id }))
                .record(db, request.auth.config.audit_log_only)
                .await?;
            Ok(passkey)
        })
        .await
        .or_internal("Database error updating passkey")?;
    ok(&passkey)
}

/// `DELETE /passkeys/{id}`.
pub async fn delete(request: &Request, caller: Caller, id: &str) -> AuthResult<HttpResponse> {
    require_level(&caller)?;
    let address = request.client_ip_text();
    let db = request.db().await?;
    let passkey = load(&db, caller.user.id, id).await?;
    let entry = Entry::of(&caller.user, Action::PasskeyDeleted)
        .from_address(&address)
        .with(json!({ "passkey_id": passkey.id }));
    remove(request, &db, &passkey, entry).await
}

/// `DELETE /admin/users/{id}/passkeys/{id}`.
pub async fn delete_as_admin(request: &Request, role: &str, user_id: Uuid, id: &str) -> AuthResult<HttpResponse> {
    let address = request.client_ip_text();
    let db = request.db().await?;
    let passkey = load(&db, user_id, id).await?;
    let traits = json!({ "user_id": user_id, "passkey_id": passkey.id });
    let entry = Entry::by_admin(role, Action::PasskeyDeleted, traits).from_address(&address);
    remove(request, &db, &passkey, entry).await
}

async fn remove(request: &Request, db: &Db, passkey: &Passkey, entry: Entry<'_>) -> AuthResult<HttpResponse> {
    db.transaction(async |db| {
        passkey.delete(db).await?;
        entry.clone().record(db, request.auth.config.audit_log_only).await?;
        Ok(())
    })
    .await
    .or_internal("Database error deleting passkey")?;
    Ok(HttpResponse::NoContent().finish())
}
