//! `POST /factors/{id}/verify`: answers a challenge and raises the session to the second level.

use actix_web::HttpResponse;
use chrono::Utc;
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use super::challenge::address;
use super::{WRONG_TYPE, totp};
use crate::auth::credentials::encryption;
use crate::auth::credentials::refresh_format::new_key;
use crate::auth::credentials::tokens::{self, SessionAnswer};
use crate::auth::credentials::webauthn::{self, Assertion, Ceremony, Credential, Registration};
use crate::auth::door::bearer::Caller;
use crate::auth::door::guesses::{self, Try};
use crate::auth::door::limits::{self, Bucket};
use crate::auth::door::params::Params;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Code, Fault, Meaning as _};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::factor::{self, Challenge};
use crate::auth::models::store::Db;
use crate::auth::models::user::{self, Column, Factor, User};
use crate::auth::models::{now, refresh_token, session};
use crate::auth::outside::hooks::{self, Hook};
use crate::auth::outside::mailer::{self, Notification};
use crate::auth::outside::sms;

const INVALID_TOTP: &str = "Invalid TOTP code entered";

/// How a challenge was answered.
enum Proof {
    /// With the code of this time step.
    Totp { step: u64 },
    /// With the code that was sent.
    Phone,
    /// With a credential: the new one, or `None` if the factor already had it.
    WebAuthn { credential: Option<Credential>, ceremony: Value },
}

/// Answers with the session at the second level; the user's sessions below it end.
///
/// Errors: 400 `validation_failed`, 422 `mfa_factor_not_found` for an unknown challenge, 422
/// `mfa_ip_address_mismatch` for one that was met already or comes from elsewhere, 422 `mfa_challenge_expired`,
/// 422 `mfa_verification_failed`, 403 `mfa_verification_rejected`, 422 `mfa_*_verify_not_enabled`.
pub async fn verify(request: &Request, caller: Caller, factor: Factor) -> AuthResult<HttpResponse> {
    request.auth.limits.check(Bucket::FactorVerify, request)?;
    if !factor.is_verified() {
        super::require_level(&caller.user, &caller)?;
    }
    let mfa = &request.auth.config.mfa;
    let params = request.params()?;
    let challenge_id = challenge_id(&params)?;
    let code = params.text("code")?;
    if code.is_empty() && factor.factor_type != "webauthn" {
        return Err(AuthError::invalid("Code needs to be non-empty"));
    }
    let disabled =
        |code: Code, what: &str| AuthError::unprocessable(code, format!("MFA verification is disabled for {what}"));
    match factor.factor_type.as_str() {
        "phone" if !mfa.phone_verify => Err(disabled(Code::MfaPhoneVerifyNotEnabled, "Phone")),
        "phone" => verify_phone(request, &caller, &factor, challenge_id, &code).await,
        "totp" if !mfa.totp_verify => Err(disabled(Code::MfaTotpVerifyNotEnabled, "TOTP")),
        "totp" => verify_totp(request, &caller, &factor, challenge_id, &code).await,
        "webauthn" if !mfa.webauthn_verify => Err(disabled(Code::MfaWebauthnEnrollNotEnabled, "WebAuthn")),
        "webauthn" => verify_webauthn(request, &caller, &factor, challenge_id, &params.nested("webauthn")?).await,
        _ => Err(AuthError::invalid(WRONG_TYPE)),
    }
}

/// `challenge_id`; the zero uuid if there is none.
fn challenge_id(params: &Params) -> AuthResult<Uuid> {
    match params.optional_text("challenge_id")? {
        None => Ok(Uuid::nil()),
        Some(text) => Uuid::parse_str(&text).map_err(|_| {
            let message =
                format!("Could not parse request body as JSON: uuid: incorrect UUID format in string {text:?}");
            AuthError::bad_request(Code::BadJson, message)
        }),
    }
}

/// The challenge, if it still waits for an answer from this address.
async fn open_challenge(request: &Request, db: &Db, factor: &Factor, id: Uuid) -> AuthResult<Challenge> {
    let unknown = || {
        let message = "MFA factor with the provided challenge ID not found";
        AuthError::unprocessable(Code::MfaFactorNotFound, message)
    };
    let challenge = factor::find_challenge(db, factor.id, id)
        .await
        .or_internal("Database error finding Challenge")?
        .ok_or_else(unknown)?;
    if challenge.verified_at.is_some() || challenge.ip_address != address(request) {
        return Err(mismatch());
    }
    if Utc::now() > challenge.expires_at(request.auth.config.mfa.challenge_expiry) {
        challenge.delete(db).await.or_internal("Database error deleting challenge")?;
        let message =
            format!("MFA challenge {id} has expired, verify against another challenge or create a new challenge.");
        return Err(AuthError::unprocessable(Code::MfaChallengeExpired, message));
    }
    Ok(challenge)
}

fn mismatch() -> AuthError {
    AuthError::unprocessable(Code::MfaIpAddressMismatch, "Challenge and verify IP addresses mismatch.")
}

fn failed(message: &str) -> AuthError {
    AuthError::unprocessable(Code::MfaVerificationFailed, message)
}

/// Calls the hook about an attempt; a rejection ends all of the user's sessions.
pub(super) async fn ask_hook(
    request: &Request,
    db: &Db,
    caller: &Caller,
    factor: &Factor,
    valid: bool,
) -> AuthResult<()> {
    if request.auth.config.hooks.mfa_verification_attempt.is_none() {
        return Ok(());
    }
    let input = json!({
        "user_id": caller.user.id,
        "factor_id": factor.id,
        "factor_type": factor.factor_type,
        "valid": valid,
    });
    let output = hooks::run(request, Some(db), Hook::MfaVerification, input).await?;
    let decision = hooks::decision(output, "Further MFA verification attempts will be rejected.")?;
    let Some(message) = decision.rejection else { return Ok(()) };
    session::delete_all(db, caller.user.id).await?;
    Err(AuthError::forbidden(Code::MfaVerificationRejected, message))
}

/// Waits for a turn to try a code of the factor. Only a client with a second-level session counts as known: a thief of
/// the password has one of the first level.
pub(super) async fn begin<'a>(request: &'a Request, caller: &Caller, factor: &Factor) -> AuthResult<Try<'a>> {
    let guesses = &request.auth.guesses;
    let client = limits::client(request);
    let is_known =
        async || session::exists_from(&request.db().await?, caller.user.id, &client, true).await.map_err(Into::into);
    guesses.begin(guesses.target(("factor", factor.id)), &client, is_known).await
}

async fn verify_totp(
    request: &Request,
    caller: &Caller,
    factor: &Factor,
    challenge_id: Uuid,
    code: &str,
) -> AuthResult<HttpResponse> {
    let encryption = &request.auth.config.security.encryption;
    let attempt = begin(request, caller, factor).await?;
    let db = request.db().await?;
    let challenge = open_challenge(request, &db, factor, challenge_id).await?;
    // Counted before the check, so that simultaneous tries count separately. Codes change, so the count is per factor
    // and hour.
    let (guesses, client) = (&request.auth.guesses, limits::client(request));
    let target = guesses.target(("codes of", factor.id, Utc::now().timestamp() / 3600));
    if !guesses.may_try_alone(target, &client) {
        return Err(guesses::too_many());
    }
    let stored = factor::secret(&db, factor.id).await?;
    let secret = encryption::open(encryption, &factor.id.to_string(), &stored)
        .or_internal("Database error verifying MFA TOTP secret")?;
    let now = u64::try_from(Utc::now().timestamp()).unwrap_or(0);
    let step = totp::matching_step(&secret, code, now);
    if step.is_some() {
        guesses.was_right_alone(target, &client);
    }
    attempt.judged(step.is_some());
    ask_hook(request, &db, caller, factor, step.is_some()).await?;
    let step = step.ok_or_else(|| failed(INVALID_TOTP))?;
    if encryption.encrypt && stored == secret {
        let sealed = encryption::seal(encryption, &factor.id.to_string(), &secret)?;
        factor::set_secret(&db, factor.id, &sealed).await?;
    }
    raise(request, &db, caller, factor, &challenge, Proof::Totp { step }).await
}

async fn verify_phone(
    request: &Request,
    caller: &Caller,
    factor: &Factor,
    challenge_id: Uuid,
    code: &str,
) -> AuthResult<HttpResponse> {
    let encryption = &request.auth.config.security.encryption;
    let attempt = begin(request, caller, factor).await?;
    let db = request.db().await?;
    let challenge = open_challenge(request, &db, factor, challenge_id).await?;
    let guesses = &request.auth.guesses;
    let target = guesses.target(("challenge", challenge.id));
    if !guesses.may_try(guesses.target(("texts", factor.id)), target, &limits::client(request)) {
        attempt.failed();
        return Err(failed("Invalid MFA Phone code entered"));
    }
    let valid = match sms::check_code(request, &factor.phone, code).await? {
        Some(true) => true,
        Some(false) => {
            attempt.failed();
            return Err(AuthError::forbidden(Code::OtpExpired, "Token has expired or is invalid"));
        }
        None => {
            let stored = challenge.otp_code.as_deref().unwrap_or("");
            let right = encryption::open(encryption, &challenge.id.to_string(), stored)
                .or_internal("Database error verifying MFA TOTP secret")?;
            !right.is_empty() && bool::from(right.as_bytes().ct_eq(code.as_bytes()))
        }
    };
    attempt.judged(valid);
    ask_hook(request, &db, caller, factor, valid).await?;
    if !valid {
        return Err(failed("Invalid MFA Phone code entered"));
    }
    raise(request, &db, caller, factor, &challenge, Proof::Phone).await
}

/// Unlike upstream, an invalid answer of the browser is the caller's fault: 422, not 500.
async fn verify_webauthn(
    request: &Request,
    caller: &Caller,
    factor: &Factor,
    challenge_id: Uuid,
    params: &Params,
) -> AuthResult<HttpResponse> {
    let config = &request.auth.config.webauthn;
    let given = request.params()?;
    if given.value("webauthn").is_none() {
        return Err(AuthError::invalid("WebAuthn config required"));
    }
    let kind = params.text("type")?;
    if !matches!(kind.as_str(), "create" | "request") {
        return Err(AuthError::invalid("WebAuthn type must be create or request"));
    }
    let response =
        params.value("credential_response").ok_or_else(|| AuthError::invalid("credential_response required"))?;
    let db = request.db().await?;
    let challenge = open_challenge(request, &db, factor, challenge_id).await?;
    let ceremony = challenge
        .web_authn_session_data
        .as_ref()
        .and_then(Ceremony::from_json)
        .ok_or_else(|| failed("Invalid WebAuthn response"))?;
    let unreadable = || AuthError::invalid("Invalid credential_response");
    let refused = |reason: webauthn::Reason| failed("Invalid WebAuthn response").caused_by(Fault::new(reason));
    let credential = if kind == "create" {
        let answer = Registration::parse(response).ok_or_else(unreadable)?;
        let credential = webauthn::register(config, &ceremony, &answer).map_err(refused)?;
        (!factor.is_verified()).then_some(credential)
    } else {
        let answer = Assertion::parse(response).ok_or_else(unreadable)?;
        let known = factor::credentials(&db, caller.user.id).await?;
        let credential = known.iter().find(|known| known.id == answer.id);
        let credential = credential.ok_or_else(|| refused("the user has no such credential"))?;
        webauthn::authenticate(config, &ceremony, &answer, credential).map_err(refused)?;
        None
    };
    if kind == "create" && credential.is_none() {
        // A verified factor must use its existing credential.
        return Err(refused("the factor has a credential already"));
    }
    let ceremony = json!({
        "challenge": { "id": challenge.id, "created_at": challenge.created_at, "factor_id": factor.id },
        "type": kind,
        "credential_response": response,
    });
    raise(request, &db, caller, factor, &challenge, Proof::WebAuthn { credential, ceremony }).await
}

/// Spends the challenge, raises the session, issues new tokens and ends sessions of the first level.
async fn raise(
    request: &Request,
    db: &Db,
    caller: &Caller,
    factor: &Factor,
    challenge: &Challenge,
    proof: Proof,
) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    let ip = request.client_ip_text();
    let session_id = caller.session_id().ok_or_else(|| AuthError::internal("Cannot read SessionId claim as UUID"))?;
    let answer = db
        .transaction(async |db| {
            // Lock and read again, because of two factors verified concurrently only one is the user's first.
            let gone = || AuthError::not_found(Code::UserNotFound, "User not found");
            let owner = user::find_and_lock(db, caller.user.id).await?.ok_or_else(gone)?;
            let is_first = !owner.has_mfa();
            let counts = owner.factors.iter().any(|known| known.id == factor.id && known.is_verified());
            // Of several requests with one challenge, the first wins; upstream accepts all of them.
            let spent = match &proof {
                Proof::WebAuthn { .. } => challenge.delete(db).await?,
                Proof::Totp { .. } | Proof::Phone => challenge.spend(db).await?,
            };
            if !spent {
                return Err(mismatch());
            }
            if !counts {
                super::require_level(&owner, caller)?;
            }
            // A used code may have been seen by others, so it is not accepted again, even for another
            // challenge. Upstream accepts it again.
            if let Proof::Totp { step } = proof
                && !factor::advance_step(db, factor.id, step).await?
            {
                return Err(failed(INVALID_TOTP));
            }
            Entry::of(&caller.user, Action::VerificationAttempted)
                .from_address(&ip)
                .with(json!({
                    "factor_id": factor.id,
                    "challenge_id": challenge.id,
                    "factor_type": factor.factor_type,
                }))
                .record(db, config.audit_log_only)
                .await?;
            if !counts && !factor::mark_verified(db, factor.id).await? {
                return Err(AuthError::not_found(Code::MfaFactorNotFound, "Factor not found"));
            }
            if let Proof::WebAuthn { credential, ceremony } = &proof {
                if let Some(credential) = credential {
                    factor::save_credential(db, factor.id, credential).await?;
                }
                factor::save_last_ceremony(db, factor.id, ceremony).await?;
            }
            let user = user::find_by_id(db, caller.user.id).await?.ok_or_else(gone)?;
            let answer = raise_session(request, db, user, session_id, factor).await?;
            session::delete_below_aal2(db, caller.user.id).await.or_internal("Failed to update sessions")?;
            // Factors enrolled before the first verification may belong to anybody who had a session. Upstream keeps
            // those of other types, with which a stolen session could be raised without the owner's factor.
            let begun = (!is_first).then_some(factor.factor_type.as_str());
            factor::delete_unverified(db, caller.user.id, begun)
                .await
                .or_internal("Error removing unverified factors")?;
            Ok(answer)
        })
        .await?;
    if !factor.is_verified() {
        let notice = Notification::FactorEnrolled { factor_type: &factor.factor_type };
        mailer::notify(request, db, &answer.user, notice).await;
    }
    answer.respond()
}

pub(super) async fn raise_session(
    request: &Request,
    db: &Db,
    mut user: User,
    session_id: Uuid,
    factor: &Factor,
) -> AuthResult<SessionAnswer> {
    let method = factor::method_of(&factor.factor_type);
    let gone = || {
        let message = "Session from session_id claim in JWT does not exist";
        AuthError::forbidden(Code::SessionNotFound, message)
    };
    let mut session = session::find_and_lock(db, session_id).await?.ok_or_else(gone)?;
    session.add_method(db, method).await?;
    // Deletes the tokens from before the verification, so that the reuse interval cannot give them the raised
    // session. Upstream keeps the last stored token as the parent of the new one, and the key of counter tokens.
    refresh_token::delete_session(db, session.id).await?;
    let refresh_token = match (&session.refresh_token_hmac_key, session.refresh_token_counter) {
        (Some(_), Some(counter)) => {
            // A new key invalidates all earlier counter tokens.
            let encryption = &request.auth.config.security.encryption;
            let key = encryption::seal(encryption, &session.id.to_string(), &new_key())?;
            let counter = counter + 2;
            session::set_key_and_counter(db, session.id, &key, counter)
                .await
                .or_internal("Failed to update session")?;
            session.refresh_token_hmac_key = Some(key);
            session.refresh_token_counter = Some(counter);
            tokens::counter_token(request, &session, counter)?
        }
        _ => {
            let token = refresh_token::generate();
            Entry::of(&user, Action::TokenRevoked).record(db, request.auth.config.audit_log_only).await?;
            refresh_token::insert(db, user.id, session.id, &token, None).await?;
            user.last_sign_in_at = Some(now());
            user.update(db, &[Column::LastSignInAt]).await?;
            token
        }
    };
    let (aal, _) = session.aal_and_amr(&user);
    session.aal = aal.to_owned();
    session.factor_id = Some(factor.id);
    session::set_level(db, session.id, aal, Some(factor.id)).await?;
    let access = tokens::access_token(request, Some(db), &user, &session, method).await?;
    Ok(SessionAnswer::new(access, refresh_token, user))
}
