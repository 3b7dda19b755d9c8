//! Registration of a passkey by a signed-in user.

use actix_web::HttpResponse;
use serde_json::{Value, json};

use super::{Answer, names, refused, require_level};
use crate::auth::credentials::webauthn::{self, Account, Registration};
use crate::auth::door::bearer::Caller;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Fault, Meaning as _};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::passkey::{self, Passkey, Purpose};
use crate::auth::models::user;

fn check(caller: &Caller) -> AuthResult<()> {
    if caller.user.is_sso_user {
        return Err(AuthError::unprocessable(Code::ValidationFailed, "SSO users cannot register passkeys"));
    }
    require_level(caller)
}

fn too_many() -> AuthError {
    AuthError::unprocessable(Code::TooManyPasskeys, "Maximum number of passkeys reached")
}

/// `POST /passkeys/registration/options`.
///
/// Errors: 422 `validation_failed` for SSO users, 403 `insufficient_aal`, 422 `too_many_passkeys`.
pub async fn registration_options(request: &Request, caller: Caller) -> AuthResult<HttpResponse> {
    check(&caller)?;
    let config = &request.auth.config.webauthn;
    let user = &caller.user;
    let db = request.db().await?;
    let existing = passkey::of_user(&db, user.id).await.or_internal("Database error loading passkeys")?;
    if existing.len() >= config.max_passkeys_per_user {
        return Err(too_many());
    }
    let name = if user.email.is_empty() { &user.phone } else { &user.email };
    let display_name = user
        .user_metadata
        .as_ref()
        .and_then(|data| data.get("name"))
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty())
        .unwrap_or(name);
    let exclude = existing.iter().map(|known| webauthn::descriptor(&known.credential.id, &[])).collect();
    let account = Account { id: user.id, name, display_name };
    let (options, ceremony) = webauthn::registration_options(config, &account, exclude, true);
    let expires_at = chrono::Utc::now() + chrono::Duration::from_std(config.challenge_expiry).unwrap_or_default();
    let id = passkey::store_ceremony(&db, Some(user.id), Purpose::Registration, &ceremony, expires_at)
        .await
        .or_internal("Database error storing challenge")?;
    ok(&json!({ "challenge_id": id, "options": options, "expires_at": expires_at.timestamp() }))
}

/// `POST /passkeys/registration/verify`.
///
/// Errors: as the options; 400 `webauthn_challenge_not_found`, `webauthn_challenge_expired` and
/// `webauthn_verification_failed`; 422 `webauthn_credential_exists`, where upstream answers 500.
pub async fn verify_registration(request: &Request, caller: Caller) -> AuthResult<HttpResponse> {
    check(&caller)?;
    let config = &request.auth.config.webauthn;
    let answer = Answer::read(request)?;
    let db = request.db().await?;
    let ceremony = answer.take_ceremony(&db, Purpose::Registration, Some(caller.user.id)).await?;
    let response = Registration::parse(&answer.credential).ok_or_else(|| refused("Invalid credential response"))?;
    let credential = webauthn::register(config, &ceremony, &response)
        .map_err(|reason| refused("Credential verification failed").caused_by(Fault::new(reason)))?;
    let passkey = Passkey::new(caller.user.id, credential.clone(), names::of(credential.aaguid));
    let address = request.client_ip_text();
    let stored = db
        .transaction(async |db| {
            // So that two registrations at once cannot exceed the limit.
            user::lock(db, caller.user.id).await?;
            if passkey::of_user(db, caller.user.id).await?.len() >= config.max_passkeys_per_user {
                return Err(too_many());
            }
            passkey.insert(db).await?;
            Entry::of(&caller.user, Action::PasskeyCreated)
                .from_address(&address)
                .with(json!({ "passkey_id": passkey.id }))
                .record(db, request.auth.config.audit_log_only)
                .await?;
            Ok(())
        })
        .await;
    if stored.as_ref().is_err_and(AuthError::is_unique_violation) {
        let message = "This credential is already registered";
        return Err(AuthError::unprocessable(Code::WebauthnCredentialExists, message));
    }
    stored.or_internal("Database error creating passkey")?;
    ok(&passkey)
}
