//! `POST /factors/{id}/challenge`.

use std::net::{IpAddr, Ipv4Addr};

use actix_web::HttpResponse;
use chrono::Utc;
use serde_json::{Value, json};

use super::WRONG_TYPE;
use crate::auth::credentials::webauthn::{self, Account};
use crate::auth::credentials::{encryption, otp};
use crate::auth::door::bearer::Caller;
use crate::auth::door::limits::{Bucket, check_frequency, too_soon};
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::factor::{self, Challenge};
use crate::auth::models::store::Db;
use crate::auth::models::user::Factor;
use crate::auth::outside::sms::{self, Text};

/// The client's address, stored with the challenge: only the same address may answer it.
pub(super) fn address(request: &Request) -> IpAddr {
    request.client_ip().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

/// Creates a challenge: sends a code, creates options for the browser, or only waits for an answer.
///
/// Errors: 422 `mfa_*_verify_not_enabled`, 429 `over_sms_send_rate_limit`, 400 `validation_failed`.
pub async fn challenge(request: &Request, caller: Caller, factor: Factor) -> AuthResult<HttpResponse> {
    request.auth.limits.check(Bucket::FactorChallenge, request)?;
    if !factor.is_verified() {
        super::require_level(&caller.user, &caller)?;
    }
    let mfa = &request.auth.config.mfa;
    let disabled =
        |code: Code, what: &str| AuthError::unprocessable(code, format!("MFA verification is disabled for {what}"));
    match factor.factor_type.as_str() {
        "phone" if !mfa.phone_verify => Err(disabled(Code::MfaPhoneVerifyNotEnabled, "Phone")),
        "phone" => challenge_phone(request, &caller, &factor).await,
        "totp" if !mfa.totp_verify => Err(disabled(Code::MfaTotpVerifyNotEnabled, "TOTP")),
        "totp" => {
            let db = request.db().await?;
            let challenge = Challenge::new(factor.id, address(request));
            store(request, &db, &caller, &factor, &challenge).await?;
            answer(request, &factor, &challenge, None)
        }
        "webauthn" if !mfa.webauthn_verify => Err(disabled(Code::MfaWebauthnVerifyNotEnabled, "WebAuthn")),
        "webauthn" => challenge_webauthn(request, &caller, &factor).await,
        _ => Err(AuthError::invalid(WRONG_TYPE)),
    }
}

fn answer(
    request: &Request,
    factor: &Factor,
    challenge: &Challenge,
    options: Option<Value>,
) -> AuthResult<HttpResponse> {
    let expires_at = challenge.expires_at(request.auth.config.mfa.challenge_expiry).timestamp();
    let mut body = json!({ "id": challenge.id, "type": factor.factor_type, "expires_at": expires_at });
    if let Some(options) = options {
        body["webauthn"] = options;
    }
    ok(&body)
}

async fn store(request: &Request, db: &Db, caller: &Caller, factor: &Factor, challenge: &Challenge) -> AuthResult<()> {
    let address = request.client_ip_text();
    db.transaction(async |db| {
        challenge.insert(db).await?;
        Entry::of(&caller.user, Action::ChallengeCreated)
            .from_address(&address)
            .with(json!({ "factor_id": factor.id, "factor_status": factor.status }))
            .record(db, request.auth.config.audit_log_only)
            .await?;
        Ok(())
    })
    .await
}

async fn challenge_phone(request: &Request, caller: &Caller, factor: &Factor) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    let channel = request.params()?.text("channel")?;
    let channel = if channel.is_empty() { sms::SMS } else { &channel };
    sms::check_channel(request, channel)?;
    check_frequency(factor.last_challenged_at, config.mfa.phone_max_frequency, Code::OverSmsSendRateLimit)?;
    // The factor was read before: of several requests at once, only one marks it.
    let db = request.db().await?;
    let pause = config.mfa.phone_max_frequency;
    let marked =
        factor::mark_challenged(&db, factor.id, pause).await.or_internal("Database error storing challenge")?;
    let marked = marked.ok_or_else(|| too_soon(pause.as_secs(), Code::OverSmsSendRateLimit))?;
    let sent = text_code(request, &db, caller, factor, channel).await;
    if sent.is_err() {
        factor::unmark_challenged(&db, &marked).await.or_internal("Database error storing challenge")?;
    }
    let challenge = sent?;
    store(request, &db, caller, factor, &challenge).await?;
    answer(request, factor, &challenge, None)
}

/// Sends a code for the factor and returns the challenge that it answers.
async fn text_code(
    request: &Request,
    db: &Db,
    caller: &Caller,
    factor: &Factor,
    channel: &str,
) -> AuthResult<Challenge> {
    let config = &request.auth.config;
    // Upstream does not count these texts, but they cost as much as others.
    if !request.auth.limits.allow_sms().await? {
        return Err(AuthError::too_many_requests(Code::OverSmsSendRateLimit, "SMS rate limit exceeded"));
    }
    let code = otp::generate(config.mfa.phone_otp_length);
    let mut challenge = Challenge::new(factor.id, address(request));
    challenge.otp_code = Some(encryption::seal(&config.security.encryption, &challenge.id.to_string(), &code)?);
    let body = sms::compose(&config.mfa.phone_template, &code)?;
    let text = Text { to: &factor.phone, body: &body, channel, code: &code };
    let sms = json!({ "otp": code, "sms_type": "mfa", "phone": factor.phone });
    let failed = if config.hooks.send_sms.is_some() { "error invoking hook" } else { "error sending message" };
    sms::send_code(request, db, &caller.user, sms, &text, "mfa").await.map_err(|error| {
        let missing = error.message() == "Unable to get SMS provider";
        AuthError::internal(if missing { "Failed to get SMS provider" } else { failed })
            .caused_by(crate::auth::error::Fault::new(error.message().to_owned()))
    })?;
    Ok(challenge)
}

async fn challenge_webauthn(request: &Request, caller: &Caller, factor: &Factor) -> AuthResult<HttpResponse> {
    let config = &request.auth.config.webauthn;
    // A relying party in the body is ignored: the server's settings decide.
    request.params()?;
    if config.rp_id.is_empty() {
        return Err(AuthError::internal("WebAuthn is not configured"));
    }
    let user = &caller.user;
    let db = request.db().await?;
    let credentials = factor::credentials(&db, user.id).await?;
    let (kind, (options, ceremony)) = if factor.is_verified() {
        ("request", webauthn::authentication_options(config, Some((user.id, &credentials)), ""))
    } else {
        let transports = ["usb".to_owned(), "nfc".to_owned()];
        let exclude = credentials.iter().map(|known| webauthn::descriptor(&known.id, &transports)).collect();
        let account = Account { id: user.id, name: &user.email, display_name: &user.email };
        ("create", webauthn::registration_options(config, &account, exclude, false))
    };
    let mut challenge = Challenge::new(factor.id, address(request));
    challenge.web_authn_session_data = Some(ceremony.to_json(Utc::now() + chrono::Duration::minutes(5)));
    challenge.insert(&db).await.or_internal("Database error storing challenge")?;
    let options = json!({ "type": kind, "credential_options": { "publicKey": options } });
    answer(request, factor, &challenge, Some(options))
}
