//! `POST /factors`.

use actix_web::HttpResponse;
use serde_json::{Value, json};
use url::Url;
use uuid::Uuid;

use super::{WRONG_TYPE, totp};
use crate::auth::credentials::encryption;
use crate::auth::door::address::parse_phone;
use crate::auth::door::bearer::Caller;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::factor::{self, NewFactor};
use crate::auth::models::store::Db;

/// Starts the enrolment of a factor. It becomes active once verified.
///
/// Errors: 400 `validation_failed`, 422 `mfa_*_enroll_not_enabled`, 422 `mfa_factor_name_conflict`,
/// 422 `too_many_enrolled_mfa_factors`, 422 `mfa_verified_factor_exists`, 403 `insufficient_aal`.
pub async fn enroll(request: &Request, caller: Caller) -> AuthResult<HttpResponse> {
    let mfa = &request.auth.config.mfa;
    let params = request.params()?;
    let name = params.text("friendly_name")?;
    let (issuer, phone) = (params.text("issuer")?, params.text("phone")?);
    if caller.session.is_none() {
        return Err(AuthError::internal("A valid session and a registered user are required to enroll a factor"));
    }
    let disabled =
        |code: Code, what: &str| AuthError::unprocessable(code, format!("MFA enroll is disabled for {what}"));
    match params.text("factor_type")?.as_str() {
        "phone" if !mfa.phone_enroll => Err(disabled(Code::MfaPhoneEnrollNotEnabled, "Phone")),
        "phone" => enroll_phone(request, &caller, &name, &phone).await,
        "totp" if !mfa.totp_enroll => Err(disabled(Code::MfaTotpEnrollNotEnabled, "TOTP")),
        "totp" => enroll_totp(request, &caller, &name, &issuer).await,
        "webauthn" if !mfa.webauthn_enroll => Err(disabled(Code::MfaWebauthnEnrollNotEnabled, "WebAuthn")),
        "webauthn" => enroll_webauthn(request, &caller, &name).await,
        _ => Err(AuthError::invalid(WRONG_TYPE)),
    }
}

/// Whether the user may enrol one more factor, called `name`.
pub(super) async fn check(request: &Request, db: &Db, caller: &Caller, name: &str) -> AuthResult<()> {
    let mfa = &request.auth.config.mfa;
    factor::delete_expired(db, mfa.factor_expiry).await?;
    let factors = factor::of_user(db, caller.user.id).await?;
    if factors.iter().any(|factor| factor.friendly_name == name) {
        return Err(name_conflict(name));
    }
    let verified = factors.iter().filter(|factor| factor.is_verified()).count();
    if factors.len() >= mfa.max_enrolled_factors || verified >= mfa.max_verified_factors {
        let message = "Maximum number of verified factors reached, unenroll to continue";
        return Err(AuthError::unprocessable(Code::TooManyEnrolledMfaFactors, message));
    }
    super::require_level(&caller.user, caller)
}

pub(super) fn name_conflict(name: &str) -> AuthError {
    let message = format!("A factor with the friendly name {name:?} for this user already exists");
    AuthError::unprocessable(Code::MfaFactorNameConflict, message)
}

async fn store(request: &Request, db: &Db, caller: &Caller, new: NewFactor<'_>, traits: Value) -> AuthResult<()> {
    let address = request.client_ip_text();
    let stored = db
        .transaction(async |db| {
            new.insert(db).await?;
            Entry::of(&caller.user, Action::FactorInProgress)
                .from_address(&address)
                .with(traits.clone())
                .record(db, request.auth.config.audit_log_only)
                .await?;
            Ok(())
        })
        .await;
    // Two enrolments of one name at once.
    stored.map_err(|error| if error.is_unique_violation() { name_conflict(new.friendly_name) } else { error })
}

async fn enroll_totp(request: &Request, caller: &Caller, name: &str, issuer: &str) -> AuthResult<HttpResponse> {
    let config = &request.auth.config;
    let issuer = if issuer.is_empty() { site_host(&config.site_url)? } else { issuer.to_owned() };
    let db = request.db().await?;
    check(request, &db, caller, name).await?;
    let secret = totp::generate_secret();
    let uri = totp::uri(&issuer, &caller.user.email, &secret);
    let picture = totp::qr_code(&uri).ok_or_else(|| AuthError::internal("Error generating QR Code"))?;
    let id = Uuid::new_v4();
    let sealed = encryption::seal(&config.security.encryption, &id.to_string(), &secret)?;
    let new = NewFactor {
        id,
        user_id: caller.user.id,
        friendly_name: name,
        factor_type: "totp",
        secret: Some(&sealed),
        phone: None,
    };
    store(request, &db, caller, new, json!({ "factor_id": id })).await?;
    ok(&json!({
        "id": id,
        "type": "totp",
        "friendly_name": name,
        "totp": { "qr_code": picture, "secret": secret, "uri": uri },
    }))
}

/// Host and port of the site, the issuer that applications show by default.
fn site_host(site_url: &str) -> AuthResult<String> {
    let unusable = || AuthError::internal("site url is improperly formatted");
    let url = Url::parse(site_url).map_err(|_| unusable())?;
    let host = url.host_str().ok_or_else(unusable)?;
    Ok(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

async fn enroll_phone(request: &Request, caller: &Caller, name: &str, phone: &str) -> AuthResult<HttpResponse> {
    if phone.is_empty() {
        return Err(AuthError::invalid("Phone number required to enroll Phone factor"));
    }
    let number = parse_phone(phone)?;
    let db = request.db().await?;
    super::require_level(&caller.user, caller)?;
    for factor in caller.user.factors.iter().filter(|factor| factor.factor_type == "phone" && factor.phone == number) {
        if factor.is_verified() {
            return Err(AuthError::unprocessable(
                Code::MfaVerifiedFactorExists,
                "A verified phone factor already exists, unenroll the existing factor to continue",
            ));
        }
        factor::delete(&db, factor.id).await.or_internal("Database error deleting unverified phone factors")?;
    }
    check(request, &db, caller, name).await?;
    let id = Uuid::new_v4();
    let new = NewFactor {
        id,
        user_id: caller.user.id,
        friendly_name: name,
        factor_type: "phone",
        secret: None,
        phone: Some(&number),
    };
    store(request, &db, caller, new, json!({ "factor_id": id, "factor_type": "phone" })).await?;
    ok(&json!({ "id": id, "type": "phone", "friendly_name": name, "phone": phone }))
}

async fn enroll_webauthn(request: &Request, caller: &Caller, name: &str) -> AuthResult<HttpResponse> {
    let db = request.db().await?;
    check(request, &db, caller, name).await?;
    let id = Uuid::new_v4();
    let new = NewFactor {
        id,
        user_id: caller.user.id,
        friendly_name: name,
        factor_type: "webauthn",
        secret: None,
        phone: None,
    };
    store(request, &db, caller, new, json!({ "factor_id": id, "factor_type": "webauthn" })).await?;
    ok(&json!({ "id": id, "type": "webauthn", "friendly_name": name }))
}
