//! `POST /recover`, `/otp`, `/magiclink`, `/resend` and `GET /reauthenticate`: what sends codes and links.
//! Reference: supabase/auth `internal/api/recover.go`, `otp.go`, `magic_link.go`, `resend.go`, `reauthenticate.go`.

use actix_web::HttpResponse;
use serde_json::json;

use super::address::{parse_email, parse_phone};
use super::bearer::Caller;
use super::captcha;
use super::error::{AuthError, AuthResult, Code, Meaning as _};
use super::limits::{Bucket, check_frequency};
use super::mailer::{self, Mail};
use super::models::Json;
use super::models::audit::{Action, Entry};
use super::models::flow_state::FlowState;
use super::models::one_time_token::Purpose;
use super::models::user::{self, User};
use super::otp;
use super::params::Params;
use super::pkce::{self, Challenge};
use super::request::{Request, empty, ok};
use super::signup::{self, Signup};
use super::sms;
use super::store::Db;

fn challenge_of(params: &Params) -> AuthResult<Option<Challenge>> {
    Challenge::read(&params.text("code_challenge_method")?, &params.text("code_challenge")?)
}

/// 200 with the id of a text message, if there is one.
fn message(id: &str) -> AuthResult<HttpResponse> {
    if id.is_empty() { empty() } else { ok(&json!({ "message_id": id })) }
}

/// Mails a recovery link if the address is known; the answer is 200 `{}` either way.
///
/// Errors: 400 `validation_failed`, 429 `over_email_send_rate_limit`.
pub async fn recover(request: &Request) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    request.auth.limits.check(Bucket::Recover, request)?;
    captcha::check(request).await?;
    if !config.external.email_enabled {
        return Err(AuthError::bad_request(Code::EmailProviderDisabled, "Email logins are disabled"));
    }
    let params = request.params()?;
    let email = params.text("email")?;
    let (method, code) = (params.text("code_challenge_method")?, params.text("code_challenge")?);
    if email.is_empty() {
        return Err(AuthError::invalid("Password recovery requires an email"));
    }
    let email = parse_email(&email)?;
    let challenge = Challenge::read(&method, &code)?;
    let db = request.db().await?;
    let found =
        user::find_by_email(&db, &email, &request.audience(None)).await.or_internal("Unable to process request")?;
    let Some(mut user) = found else { return empty() };
    db.transaction(async |db| {
        begin_flow(db, "recovery", "recovery", &user, challenge.as_ref()).await?;
        Entry::of(&user, Action::UserRecoveryRequested).record(db, config.audit_log_only).await?;
        send_recovery(request, db, &mut user, challenge.as_ref(), false).await
    })
    .await?;
    empty()
}

async fn begin_flow(
    db: &Db,
    provider: &str,
    method: &str,
    user: &User,
    challenge: Option<&Challenge>,
) -> AuthResult<()> {
    if challenge.is_some() {
        FlowState::new(provider, method, Some(user.id), challenge).insert(db).await?;
    }
    Ok(())
}

/// Mails a recovery link, or a sign-in link: the two share their token.
async fn send_recovery(
    request: &Request,
    db: &Db,
    user: &mut User,
    challenge: Option<&Challenge>,
    sign_in: bool,
) -> AuthResult<()> {
    let config = &request.auth.config;
    check_frequency(user.recovery_sent_at, config.smtp.max_frequency, Code::OverEmailSendRateLimit)?;
    let otp = otp::generate(config.mailer.otp_length);
    let hash = pkce::prefixed(otp::hash(&user.email, &otp), challenge);
    let failure = if sign_in { "Error sending magic link email" } else { "Error sending recovery email" };
    user.set_token(Purpose::Recovery, &hash);
    let mail = if sign_in { Mail::MagicLink { otp: &otp } } else { Mail::Recovery { otp: &otp } };
    mailer::send(request, db, user, mail).await?;
    user.save_token(db, Purpose::Recovery, hash).await.or_internal(failure)
}

/// Sends a code or link to sign in with; makes the user unless `create_user` is false.
pub async fn otp(request: &Request) -> AuthResult<HttpResponse> {
    request.auth.limits.check(Bucket::Otp, request)?;
    captcha::check(request).await?;
    let params = request.params()?;
    let (email, phone, channel) = (params.text("email")?, params.text("phone")?, params.text("channel")?);
    let create_user = params.flag("create_user", true)?;
    signup::data_of(&params)?;
    if !email.is_empty() && !phone.is_empty() {
        return Err(AuthError::invalid("Only an email address or phone number should be provided"));
    }
    if !email.is_empty() && !channel.is_empty() {
        return Err(AuthError::invalid("Channel should only be specified with Phone OTP"));
    }
    challenge_of(&params)?;
    if !create_user && !is_known(request, &email, &phone).await? {
        return Err(AuthError::unprocessable(Code::OtpDisabled, "Signups not allowed for otp"));
    }
    if !email.is_empty() {
        email_link(request, &params).await
    } else if !phone.is_empty() {
        phone_code(request, &params).await
    } else {
        Err(AuthError::invalid("One of email or phone must be set"))
    }
}

/// Whether somebody has the address or number; what is neither belongs to nobody.
async fn is_known(request: &Request, email: &str, phone: &str) -> AuthResult<bool> {
    let aud = request.audience(None);
    let db = request.db().await?;
    let found = if !email.is_empty() {
        let Ok(email) = parse_email(email) else { return Ok(false) };
        user::find_by_email(&db, &email, &aud).await?
    } else if !phone.is_empty() {
        let Ok(phone) = parse_phone(phone) else { return Ok(false) };
        user::find_by_phone(&db, &phone, &aud).await?
    } else {
        return Ok(true);
    };
    Ok(found.is_some())
}

/// Mails a sign-in link.
pub async fn magic_link(request: &Request) -> AuthResult<HttpResponse> {
    request.auth.limits.check(Bucket::MagicLink, request)?;
    captcha::check(request).await?;
    let config = &request.auth.config.external;
    check_magic_link_enabled(config.email_enabled, config.email_magic_link_enabled)?;
    let params = Params::parse_as(request.body()?, "Could not read verification params: ")?;
    email_link(request, &params).await
}

fn check_magic_link_enabled(email: bool, magic_link: bool) -> AuthResult<()> {
    let off = |message| Err(AuthError::unprocessable(Code::EmailProviderDisabled, message));
    match (email, magic_link) {
        (false, _) => off("Email logins are disabled"),
        (_, false) => off("Login with magic link is disabled"),
        _ => Ok(()),
    }
}

async fn email_link(request: &Request, params: &Params) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    check_magic_link_enabled(config.external.email_enabled, config.external.email_magic_link_enabled)?;
    let email = params.text("email")?;
    let data = signup::data_of(params)?;
    let (method, code) = (params.text("code_challenge_method")?, params.text("code_challenge")?);
    if email.is_empty() {
        return Err(AuthError::unprocessable(Code::ValidationFailed, "Password recovery requires an email"));
    }
    let email = parse_email(&email)?;
    let challenge = Challenge::read(&method, &code)?;
    let aud = request.audience(None);
    let find = async || -> AuthResult<Option<User>> {
        let db = request.db().await?;
        user::find_by_email(&db, &email, &aud).await.or_internal("Database error finding user")
    };
    let mut found = find().await?.filter(User::is_confirmed);
    if found.is_none() {
        let password = otp::unknown_password(&config.password.required_characters);
        let signup = Signup {
            email: email.clone(),
            password,
            data: data.clone(),
            code_challenge: code,
            code_challenge_method: method,
            ..Signup::default()
        };
        signup::run_unproven(request, signup).await?;
        if !config.mailer.autoconfirm {
            // The confirmation mail signs in as well.
            return empty();
        }
        found = find().await?.filter(User::is_confirmed);
    }
    let Some(mut user) = found else { return empty() };
    let db = request.db().await?;
    db.transaction(async |db| {
        begin_flow(db, "magiclink", "magiclink", &user, challenge.as_ref()).await?;
        Entry::of(&user, Action::UserRecoveryRequested).record(db, config.audit_log_only).await?;
        send_recovery(request, db, &mut user, challenge.as_ref(), true).await
    })
    .await?;
    empty()
}

async fn phone_code(request: &Request, params: &Params) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    if !config.external.phone_enabled {
        return Err(AuthError::bad_request(Code::PhoneProviderDisabled, "Unsupported phone provider"));
    }
    let data: Json = signup::data_of(params)?;
    let mut channel = params.text("channel")?;
    if channel.is_empty() {
        channel = sms::SMS.to_owned();
    }
    let phone = parse_phone(&params.text("phone")?)?;
    sms::check_channel(request, &channel)?;
    let aud = request.audience(None);
    let find = async || -> AuthResult<Option<User>> {
        let db = request.db().await?;
        user::find_by_phone(&db, &phone, &aud).await.or_internal("Database error finding user")
    };
    let mut found = find().await?.filter(User::is_phone_confirmed);
    if found.is_none() {
        let signup = Signup {
            phone: phone.clone(),
            password: otp::unknown_password(&config.password.required_characters),
            data,
            channel: channel.clone(),
            ..Signup::default()
        };
        signup::run_unproven(request, signup).await?;
        if !config.sms.autoconfirm {
            return empty();
        }
        found = find().await?.filter(User::is_phone_confirmed);
    }
    let Some(mut user) = found else { return empty() };
    let db = request.db().await?;
    let id = db
        .transaction(async |db| {
            Entry::of(&user, Action::UserRecoveryRequested)
                .with(json!({ "channel": channel }))
                .record(db, config.audit_log_only)
                .await?;
            sms::send_otp(request, db, &mut user, &phone, Purpose::Confirmation, &channel).await
        })
        .await?;
    message(&id)
}

/// Sends a confirmation once more. Nothing to confirm, or nobody, is 200 `{}` as well.
pub async fn resend(request: &Request) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    request.auth.limits.check(Bucket::Resend, request)?;
    captcha::check(request).await?;
    let params = request.params()?;
    let (kind, email, phone) = (params.text("type")?, params.text("email")?, params.text("phone")?);
    let (method, code) = (params.text("code_challenge_method")?, params.text("code_challenge")?);
    let challenge = match kind.as_str() {
        "signup" | "email_change" => Challenge::read(&method, &code)?,
        "sms" | "phone_change" => None,
        _ => {
            let message = "Missing one of these types: signup, email_change, sms, phone_change";
            return Err(AuthError::invalid(message));
        }
    };
    if kind == "signup" && email.is_empty() {
        return Err(AuthError::invalid("Type provided requires an email address"));
    }
    if kind == "sms" && phone.is_empty() {
        return Err(AuthError::invalid("Type provided requires a phone number"));
    }
    let aud = request.audience(None);
    let found = match (email.is_empty(), phone.is_empty()) {
        (false, false) => {
            return Err(AuthError::invalid("Only an email address or phone number should be provided."));
        }
        (true, true) => return Err(AuthError::invalid("Missing email address or phone number")),
        (false, true) => {
            if !config.external.email_enabled {
                return Err(AuthError::bad_request(Code::EmailProviderDisabled, "Email logins are disabled"));
            }
            let email = parse_email(&email)?;
            user::find_by_email(&request.db().await?, &email, &aud).await
        }
        (true, false) => {
            if !config.external.phone_enabled {
                return Err(AuthError::bad_request(Code::PhoneProviderDisabled, "Phone logins are disabled"));
            }
            let phone = parse_phone(&phone)?;
            user::find_by_phone(&request.db().await?, &phone, &aud).await
        }
    }
    .or_internal("Unable to process request")?;
    let Some(mut user) = found else { return empty() };
    let nothing_to_do = match kind.as_str() {
        "signup" => user.is_confirmed(),
        "sms" => user.is_phone_confirmed(),
        "email_change" => user.email_change.is_empty(),
        _ => user.phone_change.is_empty(),
    };
    if nothing_to_do {
        return empty();
    }
    let db = request.db().await?;
    let id = db
        .transaction(async |db| match kind.as_str() {
            "signup" => {
                Entry::of(&user, Action::UserConfirmationRequested).record(db, config.audit_log_only).await?;
                begin_flow(db, "email/signup", "email/signup", &user, challenge.as_ref()).await?;
                signup::send_confirmation(request, db, &mut user, challenge.as_ref()).await?;
                Ok(String::new())
            }
            "sms" => {
                Entry::of(&user, Action::UserRecoveryRequested).record(db, config.audit_log_only).await?;
                let phone = user.phone.clone();
                sms::send_otp(request, db, &mut user, &phone, Purpose::Confirmation, sms::SMS).await
            }
            "email_change" => {
                let address = user.email_change.clone();
                send_email_change(request, db, &mut user, &address, challenge.as_ref()).await?;
                Ok(String::new())
            }
            _ => {
                let phone = user.phone_change.clone();
                sms::send_otp(request, db, &mut user, &phone, Purpose::PhoneChange, sms::SMS).await
            }
        })
        .await?;
    message(&id)
}

/// Begins a change of address: mails to the new one and, where changes are secure, to the current one.
pub async fn send_email_change(
    request: &Request,
    db: &Db,
    user: &mut User,
    address: &str,
    challenge: Option<&Challenge>,
) -> AuthResult<()> {
    use super::models::user::Column;
    let config = &request.auth.config;
    begin_flow(db, "email_change", "email_change", user, challenge).await?;
    check_frequency(user.email_change_sent_at, config.smtp.max_frequency, Code::OverEmailSendRateLimit)?;
    let failure = "Error sending email change email";
    let otp_new = otp::generate(config.mailer.otp_length);
    user.email_change = address.to_owned();
    user.email_change_confirm_status = 0;
    let hash_new = pkce::prefixed(otp::hash(address, &otp_new), challenge);
    user.set_token(Purpose::EmailChangeNew, &hash_new);
    let mut current = None;
    if config.mailer.secure_email_change && !user.email.is_empty() {
        let otp = otp::generate(config.mailer.otp_length);
        let hash = pkce::prefixed(otp::hash(&user.email, &otp), challenge);
        user.set_token(Purpose::EmailChangeCurrent, &hash);
        current = Some((otp, hash));
    }
    let otp_current = current.as_ref().map_or("", |(otp, _)| otp);
    mailer::send(request, db, user, Mail::EmailChange { otp_new: &otp_new, otp_current }).await?;
    user.update(db, &[Column::EmailChange, Column::EmailChangeConfirmStatus]).await.or_internal(failure)?;
    user.save_token(db, Purpose::EmailChangeNew, hash_new).await.or_internal(failure)?;
    if let Some((_, hash)) = current {
        user.save_token(db, Purpose::EmailChangeCurrent, hash).await.or_internal(failure)?;
    }
    Ok(())
}

/// `GET /reauthenticate`: sends a code by mail, or by text message where there is no address.
pub async fn reauthenticate(request: &Request, caller: Caller) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    let mut user = caller.user;
    if user.email.is_empty() && user.phone.is_empty() {
        let message = "Reauthentication requires the user to have an email or a phone number";
        return Err(AuthError::invalid(message));
    }
    if !user.email.is_empty() && !user.is_confirmed() {
        return Err(AuthError::unprocessable(Code::EmailNotConfirmed, "Please verify your email first."));
    }
    if user.email.is_empty() && !user.is_phone_confirmed() {
        return Err(AuthError::unprocessable(Code::PhoneNotConfirmed, "Please verify your phone first."));
    }
    let db = request.db().await?;
    let id = db
        .transaction(async |db| {
            Entry::of(&user, Action::UserReauthenticateRequested).record(db, config.audit_log_only).await?;
            if user.email.is_empty() {
                let phone = user.phone.clone();
                return sms::send_otp(request, db, &mut user, &phone, Purpose::Reauthentication, sms::SMS).await;
            }
            let pause = config.smtp.max_frequency;
            check_frequency(user.reauthentication_sent_at, pause, Code::OverEmailSendRateLimit)?;
            let otp = otp::generate(config.mailer.otp_length);
            let hash = otp::hash(&user.email, &otp);
            let failure = "Error sending reauthentication email";
            user.set_token(Purpose::Reauthentication, &hash);
            mailer::send(request, db, &user, Mail::Reauthentication { otp: &otp }).await?;
            user.save_token(db, Purpose::Reauthentication, hash).await.or_internal(failure)?;
            Ok(String::new())
        })
        .await?;
    message(&id)
}

/// Checks the code of a reauthentication and spends it.
///
/// Errors: 422 `reauthentication_not_valid`.
pub async fn check_reauthentication(request: &Request, db: &Db, user: &mut User, nonce: &str) -> AuthResult<()> {
    let config = &request.auth.config;
    if user.email.is_empty()
        && !user.reauthentication_token.is_empty()
        && let Some(approved) = sms::check_code(request, &user.phone, nonce).await
    {
        // Upstream leaves the request for a code open.
        return if approved && user.confirm_reauthentication(db).await.or_internal("Error during reauthentication")? {
            Ok(())
        } else {
            Err(AuthError::forbidden(Code::OtpExpired, "Token has expired or is invalid"))
        };
    }
    let (address, validity) =
        if user.email.is_empty() { (&user.phone, config.sms.otp_exp) } else { (&user.email, config.mailer.otp_exp) };
    let hash = otp::hash(address, nonce);
    let valid = otp::is_valid(&hash, &user.reauthentication_token, user.reauthentication_sent_at, validity);
    if !valid || !user.confirm_reauthentication(db).await.or_internal("Error during reauthentication")? {
        let message = "Nonce has expired or is invalid";
        return Err(AuthError::unprocessable(Code::ReauthenticationNotValid, message));
    }
    Ok(())
}
