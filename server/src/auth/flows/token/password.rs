//! The password grant. Reference: supabase/auth `internal/api/token.go` (`ResourceOwnerPasswordGrant`).

use actix_web::HttpResponse;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::auth::credentials::{encryption, password, tokens};
use crate::auth::door::address::format_phone;
use crate::auth::door::limits;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::session;
use crate::auth::models::store::Db;
use crate::auth::models::user::{self, User};
use crate::auth::outside::hooks::{self, Hook};

/// Signs in with an email address or phone number and a password.
///
/// Unknown users, users without a password and wrong passwords are answered alike, and each costs exactly one
/// comparison. Unlike upstream, a caller learns that a user is banned only with the right password.
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
    // The connection goes back to the pool while this request waits for its turn and while the hash is computed.
    let address = if by_email { email.to_ascii_lowercase() } else { format_phone(&phone) };
    let id = found.as_ref().map(|user| user.id).unwrap_or_default();
    let valid = is_right(request, &aud, &address, id, &password, hash.as_deref()).await?;
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
    let weak = match auth.password_rules.check(&request.away(), &password).await {
        Ok(()) => Value::Null,
        Err(AuthError::WeakPassword { message, reasons }) => json!({ "message": message, "reasons": reasons }),
        Err(_) => Value::Null,
    };
    let provider = if by_email { "email" } else { "phone" };
    let grant = request.grant();
    let stored = user.encrypted_password.as_deref().unwrap_or("");
    let outdated = hash.filter(|_| encryption::is_outdated(&config.security.encryption, stored));
    let mut answer = db
        .transaction(async |db| {
            let mut user = user.clone();
            if let Some(hash) = &outdated {
                reseal(request, db, &mut user, hash).await?;
            }
            Entry::of(&user, Action::Login)
                .with(json!({ "provider": provider }))
                .record(db, config.audit_log_only)
                .await?;
            tokens::issue(request, db, user, "password", &grant).await
        })
        .await?;
    answer.weak_password = Some(weak);
    answer.respond()
}

/// Seals the hash with the current key. If the stored one has changed meanwhile, the sign-in goes on only if another
/// one sealed the same hash.
async fn reseal(request: &Request, db: &Db, user: &mut User, hash: &str) -> AuthResult<()> {
    let encryption = &request.auth.config.security.encryption;
    let id = user.id.to_string();
    if user.reseal_password(db, encryption::seal(encryption, &id, hash)?).await? {
        return Ok(());
    }
    let stored = user::find_by_id(db, user.id).await?.and_then(|user| user.encrypted_password).unwrap_or_default();
    // `issue` refuses the user if it is another one.
    if encryption::open(encryption, &id, &stored)? == hash {
        user.encrypted_password = Some(stored);
    }
    Ok(())
}

/// Whether `password` matches `hash`. Guesses at the account of `address` are throttled. `id` is nil if nobody has the address;
/// throttling is the same then.
pub async fn is_right(
    request: &Request,
    aud: &str,
    address: &str,
    id: Uuid,
    password: &str,
    hash: Option<&str>,
) -> AuthResult<bool> {
    // An attempt may have to wait, and asks for a connection of its own.
    request.away().leave()?;
    let auth = &request.auth;
    let client = limits::client(request);
    let account = auth.guesses.target(("password", aud, address));
    let is_known = async || session::exists_from(&request.db().await?, id, &client, false).await.map_err(Into::into);
    let attempt = auth.guesses.begin(account, &client, is_known).await?;
    let right = password::verify(&request.away(), &client, password, hash).await?;
    attempt.judged(right);
    Ok(right)
}
