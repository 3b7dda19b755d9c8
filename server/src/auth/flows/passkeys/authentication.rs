//! Sign-in with a passkey.

use actix_web::HttpResponse;
use serde_json::json;

use super::{Answer, refused};
use crate::auth::credentials::tokens;
use crate::auth::credentials::webauthn::{self, Assertion};
use crate::auth::door::limits::Bucket;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Fault, Meaning as _};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::passkey::{self, Purpose};
use crate::auth::models::user;
use crate::auth::outside::captcha;

/// `POST /passkeys/authentication/options`: any discoverable credential may answer.
pub async fn authentication_options(request: &Request) -> AuthResult<HttpResponse> {
    request.auth.limits.check(Bucket::Passkey, request)?;
    captcha::check(request).await?;
    let config = &request.auth.config.webauthn;
    let (options, ceremony) = webauthn::authentication_options(config, None, "preferred");
    let expires_at = chrono::Utc::now() + chrono::Duration::from_std(config.challenge_expiry).unwrap_or_default();
    let db = request.db().await?;
    let id = passkey::store_ceremony(&db, None, Purpose::Authentication, &ceremony, expires_at)
        .await
        .or_internal("Database error storing challenge")?;
    ok(&json!({ "challenge_id": id, "options": options, "expires_at": expires_at.timestamp() }))
}

/// `POST /passkeys/authentication/verify`: a session of the first level.
///
/// Errors: 400 `webauthn_challenge_not_found`, `webauthn_challenge_expired`, `webauthn_verification_failed`;
/// 403 `email_not_confirmed`, `phone_not_confirmed`, `user_banned`, all after the proof.
pub async fn verify_authentication(request: &Request) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    let answer = Answer::read(request)?;
    let db = request.db().await?;
    let ceremony = answer.take_ceremony(&db, Purpose::Authentication, None).await?;
    let response = Assertion::parse(&answer.credential).ok_or_else(|| refused("Invalid credential response"))?;
    let failed = |reason: webauthn::Reason| refused("Credential verification failed").caused_by(Fault::new(reason));
    let passkey = passkey::find_by_credential(&db, &response.id)
        .await
        .or_internal("Database error loading passkey")?
        .ok_or_else(|| failed("the credential is not known"))?;
    if response.user != Some(passkey.user_id) {
        return Err(failed("the credential is another user's"));
    }
    let sign_count =
        webauthn::authenticate(&config.webauthn, &ceremony, &response, &passkey.credential).map_err(failed)?;
    let user = user::find_by_id(&db, passkey.user_id)
        .await
        .or_internal("Database error loading user")?
        .ok_or_else(|| failed("the user is gone"))?;
    if !user.email.is_empty() && !user.is_confirmed() {
        return Err(AuthError::forbidden(Code::EmailNotConfirmed, "Email not confirmed"));
    }
    if !user.phone.is_empty() && !user.is_phone_confirmed() {
        return Err(AuthError::forbidden(Code::PhoneNotConfirmed, "Phone not confirmed"));
    }
    if user.is_banned() {
        return Err(AuthError::forbidden(Code::UserBanned, "User is banned"));
    }
    let (grant, address) = (request.grant(), request.client_ip_text());
    let answer = db
        .transaction(async |db| {
            passkey.clone().record_use(db, sign_count).await?;
            Entry::of(&user, Action::Login)
                .from_address(&address)
                .with(json!({ "passkey_id": passkey.id }))
                .record(db, config.audit_log_only)
                .await?;
            tokens::issue(request, db, user.clone(), "passkey", &grant).await
        })
        .await?;
    answer.respond()
}
