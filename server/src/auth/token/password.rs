//! The password grant. Reference: supabase/auth `internal/api/token.go` (`ResourceOwnerPasswordGrant`).

use actix_web::HttpResponse;
use serde_json::{Value, json};

use crate::auth::address::format_phone;
use crate::auth::encryption;
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::hooks::{self, Hook};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::user::Column;
use crate::auth::models::{session, user};
use crate::auth::request::Request;
use crate::auth::tokens;

/// Signs in with address or number and password.
///
/// Unknown users, users without a password and wrong passwords are answered alike, and each costs exactly one
/// comparison. Unlike upstream, only who knows the password learns that a user is banned.
pub async fn grant(request: &Request) -> AuthResult<HttpResponse> {
    let auth = &request.auth;
    let config = &auth.config;
    let params = request.params()?;
    let (email, phone, password) = (params.text("email")?, params.text("phone")?, params.text("password")?);
    let refused = || AuthError::bad_request(Code::InvalidCredentials, "Invalid login credentials");
    let aud = request.audience(None);
    if !email.is_empty() && !phone.is_empty() {
        return Err(AuthError::invalid("Only an email address or phone number should be provided on login."));
    }
    let by_email = !email.is_empty();
    if by_email && !config.external.email_enabled {
        return Err(AuthError::unprocessable(Code::EmailProviderDisabled, "Email logins are disabled"));
    }
    if !by_email && phone.is_empty() {
        return Err(AuthError::invalid("missing email or phone"));
    }
    if !by_email && !config.external.phone_enabled {
        return Err(AuthError::unprocessable(Code::PhoneProviderDisabled, "Phone logins are disabled"));
    }
    let found = {
        let db = request.db().await?;
        if by_email {
            user::find_by_email(&db, &email, &aud).await
        } else {
            user::find_by_phone(&db, &format_phone(&phone), &aud).await
        }
        .or_internal("Database error querying schema")?
    };
    let hash = match &found {
        Some(user) if user.has_password() => {
            let stored = user.encrypted_password.as_deref().unwrap_or("");
            Some(encryption::open(&config.security.encryption, &user.id.to_string(), stored)?)
        }
        _ => None,
    };
    // The connection is given back while the hash is computed.
    let valid = auth.hasher.verify(&password, hash.as_deref()).await?;
    let Some(user) = found.filter(|_| hash.is_some()) else { return Err(refused()) };

    let db = request.db().await?;
    if config.hooks.password_verification_attempt.is_some() {
        let input = json!({ "user_id": user.id, "valid": valid });
        let output = hooks::run(request, Some(&db), Hook::PasswordVerification, input).await?;
        let decision = hooks::decision(output, "Further password verification attempts will be rejected.")?;
        if let Some(message) = decision.rejection {
            if decision.should_logout_user {
                session::delete_all(&db, user.id).await?;
            }
            return Err(AuthError::bad_request(Code::InvalidCredentials, message));
        }
    }
    if !valid {
        return Err(refused());
    }
    if user.is_banned() {
        return Err(AuthError::bad_request(Code::UserBanned, "User is banned"));
    }
    if by_email && !user.is_confirmed() {
        return Err(AuthError::bad_request(Code::EmailNotConfirmed, "Email not confirmed"));
    }
    if !by_email && !user.is_phone_confirmed() {
        return Err(AuthError::bad_request(Code::PhoneNotConfirmed, "Phone not confirmed"));
    }
    let weak = match auth.password_rules.check(&password).await {
        Ok(()) => Value::Null,
        Err(AuthError::WeakPassword { message, reasons }) => json!({ "message": message, "reasons": reasons }),
        Err(_) => Value::Null,
    };
    let provider = if by_email { "email" } else { "phone" };
    let grant = request.grant();
    let mut user = user;
    let stored = user.encrypted_password.as_deref().unwrap_or("");
    let outdated = hash.filter(|_| encryption::is_outdated(&config.security.encryption, stored));
    let mut answer = db
        .transaction(async |db| {
            if let Some(hash) = &outdated {
                let sealed = encryption::seal(&config.security.encryption, &user.id.to_string(), hash)?;
                user.encrypted_password = Some(sealed);
                user.update(db, &[Column::EncryptedPassword]).await?;
            }
            Entry::of(&user, Action::Login)
                .with(json!({ "provider": provider }))
                .record(db, config.audit_log_only)
                .await?;
            tokens::issue(request, db, user.clone(), "password", &grant).await
        })
        .await?;
    answer.weak_password = Some(weak);
    answer.respond()
}
