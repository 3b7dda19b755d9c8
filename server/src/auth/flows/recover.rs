//! `POST /recover`, `/otp`, `/magiclink`, `/resend` and `GET /reauthenticate`: requests that send codes and links.
//! Reference: supabase/auth `internal/api/recover.go`, `otp.go`, `magic_link.go`, `resend.go`, `reauthenticate.go`.

use std::time::Duration;

use actix_web::HttpResponse;
use serde_json::json;
use uuid::Uuid;

use crate::auth::credentials::otp;
use crate::auth::credentials::pkce::{self, Challenge};
use crate::auth::door::address::{parse_email, parse_phone};
use crate::auth::door::bearer::Caller;
use crate::auth::door::limits::{self, Ask, Asked, Bucket, check_frequency, is_too_soon, require_pause, wait_for};
use crate::auth::door::params::Params;
use crate::auth::door::request::{Request, empty, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::flows::signup::{self, Signup};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::flow_state::FlowState;
use crate::auth::models::one_time_token::Purpose;
use crate::auth::models::store::Db;
use crate::auth::models::user::{self, User};
use crate::auth::models::{Json, confirmation};
use crate::auth::outside::mailer::{self, Mail};
use crate::auth::outside::{captcha, sms};

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
    let asked = Asked::new(request, Ask::Recovery, &email);
    let (pause, limits) = (config.smtp.max_frequency, &request.auth.limits);
    // Before it waits for others that ask at the same time, whose number would tell whether the address is known.
    let is_due = limits.check_asked(&asked, Code::OverEmailSendRateLimit);
    let db = request.db().await?;
    let found =
        user::find_by_email(&db, &email, &request.audience(None)).await.or_internal("Unable to process request")?;
    let Some(user) = found else {
        drop(db);
        is_due?;
        mailer::send_nobody(request, &email, Mail::Recovery { otp: "" }).await?;
        limits.note_asked(asked, pause);
        return empty();
    };
    let is_sent = !is_too_soon(user.recovery_sent_at, pause)
        && db.transaction(async |db| send_recovery(request, db, &user, challenge.as_ref(), false).await).await?;
    if !is_sent {
        drop(db);
        // Only the client that asked before is told to wait. Upstream tells everybody and so reveals that the address
        // is known.
        is_due?;
        mailer::wait_as_if_sent(request, Mail::Recovery { otp: "" }).await?;
    }
    limits.note_asked(asked, pause);
    empty()
}

async fn begin_flow(
    db: &Db,
    provider: &str,
    method: &str,
    user: &User,
    challenge: Option<&Challenge>,
) -> AuthResult<Option<Uuid>> {
    if challenge.is_none() {
        return Ok(None);
    }
    let flow = FlowState::new(provider, method, Some(user.id), challenge);
    flow.insert(db).await?;
    Ok(Some(flow.id))
}

/// Mails a recovery link, or a sign-in link: the two share their token. `false` if one was sent a moment ago.
async fn send_recovery(
    request: &Request,
    db: &Db,
    user: &User,
    challenge: Option<&Challenge>,
    sign_in: bool,
) -> AuthResult<bool> {
    let config = &request.auth.config;
    if wait_for(request, db, user.id, Purpose::Recovery, config.smtp.max_frequency).await?.is_some() {
        return Ok(false);
    }
    // It may have changed while its row was locked.
    let Some(mut user) = user::find_by_id(db, user.id).await? else { return Ok(false) };
    let flow = if sign_in { "magiclink" } else { "recovery" };
    begin_flow(db, flow, flow, &user, challenge).await?;
    Entry::of(&user, Action::UserRecoveryRequested).record(db, config.audit_log_only).await?;
    let otp = otp::for_mail(request, "recovery", &user.email);
    let hash = pkce::prefixed(request.auth.code_hasher.hash(&user.email, &otp), challenge);
    let failure = if sign_in { "Error sending magic link email" } else { "Error sending recovery email" };
    user.set_token(Purpose::Recovery, &hash);
    let mail = if sign_in { Mail::MagicLink { otp: &otp } } else { Mail::Recovery { otp: &otp } };
    mailer::send(request, db, &user, mail).await?;
    user.save_token(db, Purpose::Recovery, hash).await.or_internal(failure)?;
    Ok(true)
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

/// Whether an account has the address or number; false for invalid ones.
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
    let limits = &request.auth.limits;
    let (asked, pause) = (Asked::new(request, Ask::Recovery, &email), config.smtp.max_frequency);
    let mut found = find().await?;
    // A mail requested by another client a moment ago must not show in the answer.
    let sent_at = found.as_ref().and_then(|user| match user.is_confirmed() {
        true => user.recovery_sent_at,
        false => user.confirmation_sent_at.filter(|_| !limits.has_asked(&asked.instead(Ask::Confirmation))),
    });
    let is_too_soon = is_too_soon(sent_at, pause);
    if is_too_soon || !found.as_ref().is_some_and(User::is_confirmed) {
        limits.check_asked(&asked, Code::OverEmailSendRateLimit)?;
    }
    if is_too_soon {
        mailer::wait_as_if_sent(request, Mail::MagicLink { otp: "" }).await?;
        limits.note_asked(asked, pause);
        return empty();
    }
    found = found.filter(User::is_confirmed);
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
            limits.note_asked(asked, pause);
            return empty();
        }
        found = find().await?.filter(User::is_confirmed);
    }
    let Some(user) = found else { return empty() };
    let db = request.db().await?;
    if !db.transaction(async |db| send_recovery(request, db, &user, challenge.as_ref(), true).await).await? {
        drop(db);
        mailer::wait_as_if_sent(request, Mail::MagicLink { otp: "" }).await?;
    }
    limits.note_asked(asked, pause);
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
    let Some(user) = found else { return empty() };
    let db = request.db().await?;
    let id = db
        .transaction(async |db| {
            let mut user = user::as_of_now(db, &user).await?;
            Entry::of(&user, Action::UserRecoveryRequested)
                .with(json!({ "channel": channel }))
                .record(db, config.audit_log_only)
                .await?;
            sms::send_otp(request, db, &mut user, &phone, Purpose::Confirmation, &channel).await
        })
        .await?;
    message(&id)
}

/// Sends a confirmation again. Also answers 200 `{}` if there is nothing to confirm or no such user.
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
    let (what, by_mail) = match kind.as_str() {
        "signup" => (Ask::Confirmation, true),
        "sms" => (Ask::Confirmation, false),
        "email_change" => (Ask::EmailChange, true),
        _ => (Ask::PhoneChange, false),
    };
    let (pause, too_soon) = if by_mail {
        (config.smtp.max_frequency, Code::OverEmailSendRateLimit)
    } else {
        (config.sms.max_frequency, Code::OverSmsSendRateLimit)
    };
    let as_mail = match what {
        Ask::EmailChange => Mail::EmailChange { otp_new: "", otp_current: "" },
        _ => Mail::Confirmation { otp: "" },
    };
    let limits = &request.auth.limits;
    let asked = |about: &str| Asked::new(request, what, about);
    let (found, asked) = match (email.is_empty(), phone.is_empty()) {
        (false, false) => {
            return Err(AuthError::invalid("Only an email address or phone number should be provided."));
        }
        (true, true) => return Err(AuthError::invalid("Missing email address or phone number")),
        (false, true) => {
            if !config.external.email_enabled {
                return Err(AuthError::bad_request(Code::EmailProviderDisabled, "Email logins are disabled"));
            }
            let email = parse_email(&email)?;
            let asked = asked(&email);
            (user::find_by_email(&request.db().await?, &email, &aud).await, asked)
        }
        (true, false) => {
            if !config.external.phone_enabled {
                return Err(AuthError::bad_request(Code::PhoneProviderDisabled, "Phone logins are disabled"));
            }
            let phone = parse_phone(&phone)?;
            let asked = asked(&phone);
            (user::find_by_phone(&request.db().await?, &phone, &aud).await, asked)
        }
    };
    let waiting = found.or_internal("Unable to process request")?.filter(|user| match kind.as_str() {
        "signup" => !user.is_confirmed(),
        "sms" => !user.is_phone_confirmed(),
        "email_change" => !user.email_change.is_empty(),
        _ => !user.phone_change.is_empty(),
    });
    let Some(user) = waiting else {
        limits.check_asked(&asked, too_soon)?;
        if by_mail && !email.is_empty() {
            mailer::send_nobody(request, &parse_email(&email)?, as_mail).await?;
        } else {
            sms::wait_as_if_sent(request).await?;
        }
        limits.note_asked(asked, pause);
        return empty();
    };
    let (sent_at, purpose) = match kind.as_str() {
        "signup" | "sms" => (user.confirmation_sent_at, Purpose::Confirmation),
        "email_change" => (user.email_change_sent_at, Purpose::EmailChangeNew),
        _ => (user.phone_change_sent_at, Purpose::PhoneChange),
    };
    let client = limits::client(request);
    let is_due = limits.check_asked(&asked, too_soon);
    let sent = if is_too_soon(sent_at, pause) {
        None
    } else {
        let again = Again { kind: &kind, purpose, pause, client: &client, challenge: challenge.as_ref() };
        let db = request.db().await?;
        db.transaction(async |db| again.send(request, db, &user).await).await?
    };
    let Some(id) = sent else {
        is_due?;
        limits.note_asked(asked, pause);
        let own =
            what == Ask::Confirmation && confirmation::was_asked_by(&request.db().await?, user.id, &client).await?;
        if own {
            check_frequency(sent_at, pause, too_soon)?;
        }
        if by_mail {
            mailer::wait_as_if_sent(request, as_mail).await?;
        } else {
            sms::wait_as_if_sent(request).await?;
        }
        return empty();
    };
    limits.note_asked(asked, pause);
    message(&id)
}

/// What is sent again, and to which client.
struct Again<'a> {
    kind: &'a str,
    purpose: Purpose,
    pause: Duration,
    client: &'a str,
    challenge: Option<&'a Challenge>,
}

impl Again<'_> {
    /// Sends it and returns the id of a text message, if there is one; `None` if one was sent a moment ago.
    async fn send(&self, request: &Request, db: &Db, user: &User) -> AuthResult<Option<String>> {
        let Self { kind, purpose, pause, client, challenge } = *self;
        let config = &request.auth.config;
        if wait_for(request, db, user.id, purpose, pause).await?.is_some() {
            return Ok(None);
        }
        // It may have changed while its row was locked.
        let Some(mut user) = user::find_by_id(db, user.id).await? else { return Ok(None) };
        let id = match kind {
            "signup" => {
                Entry::of(&user, Action::UserConfirmationRequested).record(db, config.audit_log_only).await?;
                let flow = begin_flow(db, "email/signup", "email/signup", &user, challenge).await?;
                let origin = confirmation::resumed(db, user.id, client).await?;
                signup::send_confirmation(request, db, &mut user, challenge).await?;
                confirmation::record(db, user.id, &user.confirmation_token, &origin, client, flow).await?;
                String::new()
            }
            "sms" if user.is_unproved() => {
                Entry::of(&user, Action::UserRecoveryRequested).record(db, config.audit_log_only).await?;
                let origin = confirmation::resumed(db, user.id, client).await?;
                let phone = user.phone.clone();
                let id = sms::send_otp(request, db, &mut user, &phone, purpose, sms::SMS).await?;
                confirmation::record(db, user.id, &user.confirmation_token, &origin, client, None).await?;
                id
            }
            "sms" => {
                Entry::of(&user, Action::UserRecoveryRequested).record(db, config.audit_log_only).await?;
                let phone = user.phone.clone();
                sms::send_otp(request, db, &mut user, &phone, purpose, sms::SMS).await?
            }
            "email_change" => {
                let address = user.email_change.clone();
                send_email_change(request, db, &mut user, &address, challenge).await?;
                String::new()
            }
            _ => {
                let phone = user.phone_change.clone();
                sms::send_otp(request, db, &mut user, &phone, purpose, sms::SMS).await?
            }
        };
        Ok(Some(id))
    }
}

/// Starts a change of address: mails to the new one and, if secure changes are on, to the current one.
pub async fn send_email_change(
    request: &Request,
    db: &Db,
    user: &mut User,
    address: &str,
    challenge: Option<&Challenge>,
) -> AuthResult<()> {
    use crate::auth::models::user::Column;
    let config = &request.auth.config;
    let pause = config.smtp.max_frequency;
    require_pause(request, db, user.id, Purpose::EmailChangeNew, pause, Code::OverEmailSendRateLimit).await?;
    begin_flow(db, "email_change", "email_change", user, challenge).await?;
    let failure = "Error sending email change email";
    let otp_new = otp::for_mail(request, "new address", address);
    user.email_change = address.to_owned();
    user.email_change_confirm_status = 0;
    let hash_new = pkce::prefixed(request.auth.code_hasher.hash(address, &otp_new), challenge);
    user.set_token(Purpose::EmailChangeNew, &hash_new);
    let mut current = None;
    if config.mailer.secure_email_change && !user.email.is_empty() {
        let otp = otp::for_mail(request, "current address", &user.email);
        let hash = pkce::prefixed(request.auth.code_hasher.hash(&user.email, &otp), challenge);
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

/// `GET /reauthenticate`: sends a code by mail, or by text message if there is no address.
pub async fn reauthenticate(request: &Request, caller: Caller) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    let user = caller.user;
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
            let mut user = user::as_of_now(db, &user).await?;
            Entry::of(&user, Action::UserReauthenticateRequested).record(db, config.audit_log_only).await?;
            if user.email.is_empty() {
                let phone = user.phone.clone();
                return sms::send_otp(request, db, &mut user, &phone, Purpose::Reauthentication, sms::SMS).await;
            }
            let pause = config.smtp.max_frequency;
            let purpose = Purpose::Reauthentication;
            require_pause(request, db, user.id, purpose, pause, Code::OverEmailSendRateLimit).await?;
            let otp = otp::for_mail(request, "reauthentication", &user.email);
            let hash = request.auth.code_hasher.hash(&user.email, &otp);
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
    let guesses = &request.auth.guesses;
    let account = guesses.target(("nonces", user.id));
    let target = guesses.target((user.id, &user.reauthentication_token));
    if !guesses.may_try(account, target, &limits::client(request)) {
        let message = "Nonce has expired or is invalid";
        return Err(AuthError::unprocessable(Code::ReauthenticationNotValid, message));
    }
    if user.email.is_empty()
        && !user.reauthentication_token.is_empty()
        && let Some(approved) = sms::check_code(request, &user.phone, nonce).await?
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
    let is = |hash: &str| otp::is_valid(hash, &user.reauthentication_token, user.reauthentication_sent_at, validity);
    let mut hashes = request.auth.code_hasher.hashes(address, nonce);
    hashes.push(otp::plain_hash(address, nonce));
    let valid = hashes.iter().any(|hash| is(hash));
    if !valid || !user.confirm_reauthentication(db).await.or_internal("Error during reauthentication")? {
        let message = "Nonce has expired or is invalid";
        return Err(AuthError::unprocessable(Code::ReauthenticationNotValid, message));
    }
    Ok(())
}
