//! Errors of the authentication API, and the only place where they become responses.
//!
//! Two shapes exist: with `X-Supabase-Api-Version: 2024-01-01` or later `{code, message}`, else
//! `{code: <status>, error_code, msg}`. OAuth's own shape is used where its specification applies.
//! Reference: supabase/auth `internal/api/errors.go`, `internal/api/apierrors/`.

use actix_web::HttpResponse;
use actix_web::http::header::{ALLOW, HeaderMap, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::db::{DbError, RETRY_AFTER, RETRY_AFTER_OVERLOAD, is_unavailable};

macro_rules! codes {
    ($($name:ident = $text:literal,)*) => {
        /// The error codes clients see.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(dead_code, reason = "the whole list clients know; SAML's are not answered yet")]
        pub enum Code { $($name,)* }

        impl Code {
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }
        }
    };
}

codes! {
    AnonymousProviderDisabled = "anonymous_provider_disabled",
    BadCodeVerifier = "bad_code_verifier",
    BadJson = "bad_json",
    BadJwt = "bad_jwt",
    BadOauthCallback = "bad_oauth_callback",
    BadOauthState = "bad_oauth_state",
    CaptchaFailed = "captcha_failed",
    Conflict = "conflict",
    CurrentPasswordInvalid = "current_password_invalid",
    CurrentPasswordRequired = "current_password_required",
    CustomProviderNotFound = "custom_provider_not_found",
    EmailAddressInvalid = "email_address_invalid",
    EmailAddressNotAuthorized = "email_address_not_authorized",
    EmailAddressNotProvided = "email_address_not_provided",
    EmailConflictIdentityNotDeletable = "email_conflict_identity_not_deletable",
    EmailExists = "email_exists",
    EmailNotConfirmed = "email_not_confirmed",
    EmailProviderDisabled = "email_provider_disabled",
    FeatureDisabled = "feature_disabled",
    FlowStateAlreadyUsed = "flow_state_already_used",
    FlowStateExpired = "flow_state_expired",
    FlowStateNotFound = "flow_state_not_found",
    HookPayloadInvalidContentType = "hook_payload_invalid_content_type",
    HookPayloadOverSizeLimit = "hook_payload_over_size_limit",
    HookTimeout = "hook_timeout",
    HookTimeoutAfterRetry = "hook_timeout_after_retry",
    IdentityAlreadyExists = "identity_already_exists",
    IdentityNotFound = "identity_not_found",
    InsufficientAal = "insufficient_aal",
    InvalidCredentials = "invalid_credentials",
    InviteNotFound = "invite_not_found",
    ManualLinkingDisabled = "manual_linking_disabled",
    MfaChallengeExpired = "mfa_challenge_expired",
    MfaFactorNameConflict = "mfa_factor_name_conflict",
    MfaFactorNotFound = "mfa_factor_not_found",
    MfaIpAddressMismatch = "mfa_ip_address_mismatch",
    MfaPhoneEnrollNotEnabled = "mfa_phone_enroll_not_enabled",
    MfaPhoneVerifyNotEnabled = "mfa_phone_verify_not_enabled",
    MfaRecoveryCodesEnrollNotEnabled = "mfa_recovery_codes_enroll_not_enabled",
    MfaRecoveryCodesLocked = "mfa_recovery_codes_locked",
    MfaRecoveryCodesSoleFactor = "mfa_recovery_codes_sole_factor",
    MfaRecoveryCodesVerifyNotEnabled = "mfa_recovery_codes_verify_not_enabled",
    MfaTotpEnrollNotEnabled = "mfa_totp_enroll_not_enabled",
    MfaTotpVerifyNotEnabled = "mfa_totp_verify_not_enabled",
    MfaVerificationFailed = "mfa_verification_failed",
    MfaVerificationRejected = "mfa_verification_rejected",
    MfaVerifiedFactorExists = "mfa_verified_factor_exists",
    MfaWebauthnEnrollNotEnabled = "mfa_webauthn_enroll_not_enabled",
    MfaWebauthnVerifyNotEnabled = "mfa_webauthn_verify_not_enabled",
    NoAuthorization = "no_authorization",
    NotAdmin = "not_admin",
    OauthAuthorizationNotFound = "oauth_authorization_not_found",
    OauthClientNotFound = "oauth_client_not_found",
    OauthClientStateExpired = "oauth_client_state_expired",
    OauthClientStateNotFound = "oauth_client_state_not_found",
    OauthConsentNotFound = "oauth_consent_not_found",
    OauthDynamicClientRegistrationDisabled = "oauth_dynamic_client_registration_disabled",
    OauthInvalidState = "oauth_invalid_state",
    OauthProviderNotSupported = "oauth_provider_not_supported",
    OtpDisabled = "otp_disabled",
    OtpExpired = "otp_expired",
    OverCustomProviderQuota = "over_custom_provider_quota",
    OverEmailSendRateLimit = "over_email_send_rate_limit",
    OverRequestRateLimit = "over_request_rate_limit",
    OverSmsSendRateLimit = "over_sms_send_rate_limit",
    PasskeyDisabled = "passkey_disabled",
    PhoneExists = "phone_exists",
    PhoneNotConfirmed = "phone_not_confirmed",
    PhoneProviderDisabled = "phone_provider_disabled",
    ProviderDisabled = "provider_disabled",
    ProviderEmailNeedsVerification = "provider_email_needs_verification",
    ReauthenticationNeeded = "reauthentication_needed",
    ReauthenticationNotValid = "reauthentication_not_valid",
    RefreshTokenAlreadyUsed = "refresh_token_already_used",
    RefreshTokenNotFound = "refresh_token_not_found",
    RequestEntityTooLarge = "request_entity_too_large",
    RequestTimeout = "request_timeout",
    SamePassword = "same_password",
    SamlAssertionNoEmail = "saml_assertion_no_email",
    SamlAssertionNoUserId = "saml_assertion_no_user_id",
    SamlEntityIdMismatch = "saml_entity_id_mismatch",
    SamlIdpAlreadyExists = "saml_idp_already_exists",
    SamlIdpNotFound = "saml_idp_not_found",
    SamlMetadataFetchFailed = "saml_metadata_fetch_failed",
    SamlProviderDisabled = "saml_provider_disabled",
    SamlRelayStateExpired = "saml_relay_state_expired",
    SamlRelayStateNotFound = "saml_relay_state_not_found",
    SessionExpired = "session_expired",
    SessionNotFound = "session_not_found",
    SignupDisabled = "signup_disabled",
    SingleIdentityNotDeletable = "single_identity_not_deletable",
    SmsSendFailed = "sms_send_failed",
    SsoDomainAlreadyExists = "sso_domain_already_exists",
    SsoProviderDisabled = "sso_provider_disabled",
    SsoProviderNotFound = "sso_provider_not_found",
    TooManyEnrolledMfaFactors = "too_many_enrolled_mfa_factors",
    TooManyPasskeys = "too_many_passkeys",
    UnexpectedAudience = "unexpected_audience",
    UnexpectedFailure = "unexpected_failure",
    Unknown = "unknown",
    UserAlreadyExists = "user_already_exists",
    UserBanned = "user_banned",
    UserNotFound = "user_not_found",
    UserSsoManaged = "user_sso_managed",
    ValidationFailed = "validation_failed",
    WeakPassword = "weak_password",
    Web3ProviderDisabled = "web3_provider_disabled",
    Web3UnsupportedChain = "web3_unsupported_chain",
    WebauthnChallengeExpired = "webauthn_challenge_expired",
    WebauthnChallengeNotFound = "webauthn_challenge_not_found",
    WebauthnCredentialExists = "webauthn_credential_exists",
    WebauthnCredentialNotFound = "webauthn_credential_not_found",
    WebauthnVerificationFailed = "webauthn_verification_failed",
}

pub type AuthResult<T> = Result<T, AuthError>;

/// The cause of an error answer. Logged and never shown, except messages of the project's triggers and constraints.
#[derive(Clone, Debug)]
pub struct Fault {
    text: String,
    /// Boxed, because every result reserves room for a fault and few have one.
    sql: Option<Box<SqlFault>>,
    /// The database is unreachable, full or overloaded: the same request may succeed later.
    is_unavailable: bool,
    /// Too many requests wait.
    is_busy: bool,
}

/// What PostgreSQL reported.
#[derive(Clone, Debug)]
pub struct SqlFault {
    pub sqlstate: String,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    pub constraint: Option<String>,
    /// The schema of the table that refused.
    pub schema: Option<String>,
    /// Whether a database function was running: the fault is then its author's, not the caller's.
    pub is_in_function: bool,
}

impl Fault {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), sql: None, is_unavailable: false, is_busy: false }
    }

    /// What is wrong with a value that the database could not store, if that is the cause.
    fn unstorable(&self) -> Option<&'static str> {
        match self.sql.as_ref().filter(|sql| !sql.is_in_function)?.sqlstate.as_str() {
            // U+0000, or a character missing from the database's encoding.
            "22021" | "22P05" => Some("Text has a character that the database cannot keep"),
            "22001" | "54000" => Some("A value is too long"),
            _ => None,
        }
    }

    pub fn sqlstate(&self) -> Option<&str> {
        self.sql.as_ref().map(|sql| sql.sqlstate.as_str())
    }

    /// The constraint that was violated, if one was.
    pub fn constraint(&self) -> Option<&str> {
        self.sql.as_ref().and_then(|sql| sql.constraint.as_deref())
    }

    pub fn is_unique_violation(&self) -> bool {
        self.sqlstate() == Some("23505")
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        let is_unavailable = is_unavailable(&error);
        match error.as_db_error() {
            Some(db) => Self {
                text: format!("{} (SQLSTATE {})", db.message(), db.code().code()),
                sql: Some(Box::new(SqlFault {
                    sqlstate: db.code().code().to_owned(),
                    message: db.message().to_owned(),
                    detail: db.detail().map(str::to_owned),
                    hint: db.hint().map(str::to_owned),
                    constraint: db.constraint().map(str::to_owned),
                    schema: db.schema().map(str::to_owned),
                    is_in_function: db.where_().is_some_and(is_of_function),
                })),
                is_unavailable,
                is_busy: false,
            },
            None => Self { is_unavailable, ..Self::new(error.to_string()) },
        }
    }
}

/// Whether PostgreSQL's context names a function: `PL/pgSQL function … line 1 at …`, `SQL statement "…"`.
///
/// Contexts are translated under `lc_messages`, except for the languages' names. Text after `:` or `=` may come from
/// the caller: `JSON data, line 1: …`, `unnamed portal parameter $1 = '…'`.
fn is_of_function(context: &str) -> bool {
    context
        .lines()
        .filter_map(|line| line.split([':', '=']).next())
        .any(|start| start.contains("SQL") || start.contains("PL/"))
}

impl From<DbError> for Fault {
    fn from(error: DbError) -> Self {
        match error {
            DbError::Postgres(error) => error.into(),
            other => Self {
                is_unavailable: other.is_unavailable(),
                is_busy: matches!(other, DbError::PoolBusy),
                ..Self::new(other.to_string())
            },
        }
    }
}

/// All error answers.
#[derive(Clone, Debug)]
pub enum AuthError {
    /// An answer with a code; `fault` is its cause, if any.
    Api {
        status: StatusCode,
        code: Code,
        message: String,
        fault: Option<Fault>,
    },
    /// A password that breaks the rules; reasons are `length`, `characters`, `pwned`.
    WeakPassword {
        message: String,
        reasons: Vec<&'static str>,
    },
    /// OAuth's shape: always 400.
    OAuth {
        error: String,
        description: String,
    },
    /// An error returned by a hook; has no code.
    Hook {
        status: StatusCode,
        message: String,
    },
    /// The path exists, but not this method; lists the existing ones.
    MethodNotAllowed(Vec<Method>),
    RouteNotFound,
    /// A fault without a specific meaning.
    Unhandled(Fault),
}

impl AuthError {
    pub fn new(status: StatusCode, code: Code, message: impl Into<String>) -> Self {
        Self::Api { status, code, message: message.into(), fault: None }
    }

    pub fn bad_request(code: Code, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// 400 `validation_failed`.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::bad_request(Code::ValidationFailed, message)
    }

    pub fn unauthorized(code: Code, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, code, message)
    }

    pub fn forbidden(code: Code, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    pub fn not_found(code: Code, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    pub fn unprocessable(code: Code, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, message)
    }

    pub fn too_many_requests(code: Code, message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, code, message)
    }

    /// 500 `unexpected_failure`.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Code::UnexpectedFailure, message)
    }

    /// 503 with `Retry-After`: too many requests wait.
    pub fn busy() -> Self {
        Fault { is_unavailable: true, is_busy: true, ..Fault::new("too many requests wait") }.into()
    }

    pub fn oauth(error: impl Into<String>, description: impl Into<String>) -> Self {
        Self::OAuth { error: error.into(), description: description.into() }
    }

    /// 422 `email_exists` or `phone_exists` if somebody else has the address or number: they are unique across
    /// audiences, and another request may have taken one since the check. Upstream: 500.
    pub fn unless_taken(fault: Fault) -> Self {
        match fault.constraint() {
            Some("users_email_partial_key") => {
                Self::unprocessable(Code::EmailExists, "A user with this email address has already been registered")
            }
            Some("users_phone_key") => {
                Self::unprocessable(Code::PhoneExists, "A user with this phone number has already been registered")
            }
            _ => fault.into(),
        }
    }

    /// The same answer with its cause, for the log and for SQL errors that may be shown.
    pub fn caused_by(self, cause: impl Into<Fault>) -> Self {
        match self {
            Self::Api { status, code, message, .. } => Self::Api { status, code, message, fault: Some(cause.into()) },
            other => other,
        }
    }

    /// The cause, to build another answer from it.
    pub fn into_fault(self) -> Fault {
        match self {
            Self::Unhandled(fault) | Self::Api { fault: Some(fault), .. } => fault,
            other => Fault::new(other.message().to_owned()),
        }
    }

    pub fn status(&self) -> StatusCode {
        match self {
            // Upstream answers 500; clients repeat a 503.
            _ if self.is_unavailable() => StatusCode::SERVICE_UNAVAILABLE,
            Self::Api { status, .. } | Self::Hook { status, .. } => *status,
            Self::WeakPassword { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::OAuth { .. } => StatusCode::BAD_REQUEST,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::RouteNotFound => StatusCode::NOT_FOUND,
            Self::Unhandled(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The answer's code for a redirect, if it has one.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Api { code, .. } => Some(*code),
            Self::WeakPassword { .. } => Some(Code::WeakPassword),
            Self::OAuth { .. }
            | Self::Hook { .. }
            | Self::MethodNotAllowed(_)
            | Self::RouteNotFound
            | Self::Unhandled(_) => None,
        }
    }

    /// The text meant for people.
    pub fn message(&self) -> &str {
        match self {
            Self::Api { message, .. } | Self::WeakPassword { message, .. } | Self::Hook { message, .. } => message,
            Self::OAuth { description, .. } => description,
            Self::MethodNotAllowed(_) => "",
            Self::RouteNotFound => "404 page not found",
            Self::Unhandled(_) => UNEXPECTED,
        }
    }

    /// The cause, if there is one.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Api { fault, .. } => fault.as_ref(),
            Self::Unhandled(fault) => Some(fault),
            _ => None,
        }
    }

    /// Whether the cause is only that the database is unreachable, full or overloaded.
    fn is_unavailable(&self) -> bool {
        match self {
            Self::Api { status, fault: Some(fault), .. } => fault.is_unavailable && status.is_server_error(),
            Self::Unhandled(fault) => fault.is_unavailable,
            _ => false,
        }
    }

    fn is_busy(&self) -> bool {
        self.fault().is_some_and(|fault| fault.is_busy)
    }

    /// Whether the database refused because of a unique key.
    pub fn is_unique_violation(&self) -> bool {
        self.fault().is_some_and(Fault::is_unique_violation)
    }

    /// 500 `unexpected_failure` with `message` for any cause, unless the database could not store a value given by the
    /// caller.
    pub fn internal_unless_unstorable(self, message: &str) -> Self {
        match &self {
            Self::Api { fault: Some(fault), .. } if fault.unstorable().is_some() => self,
            _ => Self::internal(message).caused_by(self.into_fault()),
        }
    }

    /// The answer in the shape the request asked for.
    pub fn respond(&self, request_headers: &HeaderMap, request_id: &str) -> HttpResponse {
        self.log(request_id);
        let new_shape = asks_for_new_shape(request_headers);
        let mut response = match self {
            Self::MethodNotAllowed(methods) => {
                let mut response = HttpResponse::MethodNotAllowed();
                for method in methods {
                    response.append_header((ALLOW, method.as_str()));
                }
                return response.finish();
            }
            Self::RouteNotFound => {
                return HttpResponse::NotFound()
                    .insert_header(("content-type", "text/plain; charset=utf-8"))
                    .insert_header(("x-content-type-options", "nosniff"))
                    .body("404 page not found\n");
            }
            Self::OAuth { error, description } => {
                let mut body = json!({ "error": error });
                if !description.is_empty() {
                    body["error_description"] = json!(description);
                }
                json_response(StatusCode::BAD_REQUEST, &body)
            }
            Self::WeakPassword { message, reasons } if new_shape => json_response(
                self.status(),
                &json!({
                    "code": Code::WeakPassword.as_str(),
                    "message": message,
                    "weak_password": { "reasons": reasons },
                }),
            ),
            Self::WeakPassword { message, reasons } => {
                let mut response = json_response(
                    self.status(),
                    &json!({
                        "code": self.status().as_u16(),
                        "error_code": Code::WeakPassword.as_str(),
                        "msg": message,
                        "weak_password": { "reasons": reasons },
                    }),
                );
                set(&mut response, "x-sb-error-code", Code::WeakPassword.as_str());
                response
            }
            Self::Api { code, message, fault, .. } => {
                let shown = fault.as_ref().and_then(|fault| fault.sql.as_deref()).and_then(shown_sql);
                let mut response = match shown {
                    Some((status, body)) if !new_shape => json_response(status, &body),
                    _ => shaped(new_shape, self.status(), code.as_str(), message, Some(request_id)),
                };
                set(&mut response, "x-sb-error-code", code.as_str());
                response
            }
            Self::Hook { status, message } => {
                let code =
                    if *status == StatusCode::INTERNAL_SERVER_ERROR { Code::UnexpectedFailure } else { Code::Unknown };
                shaped(new_shape, *status, code.as_str(), message, Some(request_id))
            }
            Self::Unhandled(_) => shaped(new_shape, self.status(), Code::UnexpectedFailure.as_str(), UNEXPECTED, None),
        };
        if new_shape {
            set(&mut response, "x-supabase-api-version", "2024-01-01");
        }
        if self.is_unavailable() {
            set(&mut response, "retry-after", if self.is_busy() { RETRY_AFTER_OVERLOAD } else { RETRY_AFTER });
        }
        response
    }

    fn log(&self, request_id: &str) {
        let fault = self.fault();
        // A flood of requests must not become one of log lines: overload is logged once, where it is found.
        if self.status().is_server_error() && !self.is_busy() {
            let cause = fault.map(ToString::to_string).unwrap_or_default();
            tracing::error!(request_id, status = self.status().as_u16(), cause, "auth: {}", self.message());
        } else if let Some(fault) = fault {
            tracing::debug!(request_id, status = self.status().as_u16(), cause = %fault, "auth: {}", self.message());
        }
    }
}

const BUSY: &str = "Too many requests at the moment, please retry later";

const UNEXPECTED: &str = "Unexpected failure, please check server logs for more information";

impl From<Fault> for AuthError {
    /// A value that the database cannot store is the caller's fault (upstream: 500). Other faults have no meaning yet.
    fn from(fault: Fault) -> Self {
        if fault.is_busy {
            return Self::new(StatusCode::SERVICE_UNAVAILABLE, Code::UnexpectedFailure, BUSY).caused_by(fault);
        }
        match fault.unstorable() {
            Some(message) => Self::invalid(message).caused_by(fault),
            None => Self::Unhandled(fault),
        }
    }
}

impl From<tokio_postgres::Error> for AuthError {
    fn from(error: tokio_postgres::Error) -> Self {
        Fault::from(error).into()
    }
}

impl From<DbError> for AuthError {
    fn from(error: DbError) -> Self {
        Fault::from(error).into()
    }
}

/// Turns a fault into an answer.
pub trait Meaning<T> {
    /// 500 `unexpected_failure` with `message`; answers that already have a meaning keep it.
    fn or_internal(self, message: &str) -> AuthResult<T>;
}

impl<T, E: Into<AuthError>> Meaning<T> for Result<T, E> {
    fn or_internal(self, message: &str) -> AuthResult<T> {
        self.map_err(|error| match error.into() {
            AuthError::Unhandled(fault) => AuthError::internal(message).caused_by(fault),
            meant => meant,
        })
    }
}

/// Whether the request's `X-Supabase-Api-Version` is a date of 2024 or later.
pub fn asks_for_new_shape(headers: &HeaderMap) -> bool {
    headers
        .get("x-supabase-api-version")
        .and_then(|value| value.to_str().ok())
        .filter(|text| text.len() == 10)
        .and_then(|text| chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").ok())
        .is_some_and(|date| Some(date) >= chrono::NaiveDate::from_ymd_opt(2024, 1, 1))
}

/// A JSON answer.
pub fn json_response(status: StatusCode, body: &impl serde::Serialize) -> HttpResponse {
    match serde_json::to_vec(body) {
        Ok(bytes) => HttpResponse::build(status).insert_header(("content-type", "application/json")).body(bytes),
        Err(_) => HttpResponse::InternalServerError().finish(),
    }
}

fn shaped(new: bool, status: StatusCode, code: &str, message: &str, error_id: Option<&str>) -> HttpResponse {
    if new {
        return json_response(status, &json!({ "code": code, "message": message }));
    }
    let mut body = json!({ "code": status.as_u16(), "error_code": code, "msg": message });
    if let Some(id) = error_id.filter(|_| status.is_server_error()) {
        body["error_id"] = json!(id);
    }
    json_response(status, &body)
}

/// SQL errors raised by a project's own triggers and constraints, as the old shape shows them. Violations of keys in
/// schema auth are not shown, because their details contain addresses.
fn shown_sql(sql: &SqlFault) -> Option<(StatusCode, Value)> {
    if sql.sqlstate == "23505" && sql.schema.as_deref() == Some("auth") {
        return None;
    }
    let status = match sql.sqlstate.as_str() {
        "P0001" | "23000" | "23001" | "23502" | "23503" | "23505" | "23514" | "23P01" => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        other => other.strip_prefix("PT").and_then(|n| n.parse().ok()).and_then(|n| StatusCode::from_u16(n).ok())?,
    };
    let mut body = json!({ "code": sql.sqlstate, "message": sql.message });
    for (key, value) in [("hint", &sql.hint), ("detail", &sql.detail)] {
        if let Some(value) = value.as_ref().filter(|v| !v.is_empty()) {
            body[key] = json!(value);
        }
    }
    Some((status, body))
}

fn set(response: &mut HttpResponse, name: &'static str, value: &'static str) {
    response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
}

#[cfg(test)]
mod tests {
    use super::is_of_function;

    #[test]
    fn a_function_context_is_recognized_in_any_language_but_not_from_client_input() {
        for (context, wanted) in [
            ("PL/pgSQL function join_members() line 1 at SQL statement", true),
            ("SQL statement \"insert into t values (1)\"\nPL/pgSQL function f() line 1 at SQL statement", true),
            ("SQL function \"f\" statement 1", true),
            ("PL/pgSQL-Funktion join_members() Zeile 1 bei SQL-Anweisung", true),
            ("SQL-Funktion »f« Anweisung 1", true),
            ("fonction PL/pgSQL join_members(), ligne 1, à instruction SQL", true),
            ("PL/pgSQL関数join_members()の1行目 - SQL文", true),
            ("PL/Python function \"f\"", true),
            ("JSON data, line 1: {\"a\":\"\nPL/pgSQL function f() line 1 at assignment", true),
            ("JSON data, line 1: \" PL/pgSQL function SQL function \nunnamed portal parameter $1", false),
            ("JSON-Daten, Zeile 1: \"SQL function", false),
            ("données JSON, ligne 1 : \" function PL/pgSQL function", false),
            ("unnamed portal parameter $1 = 'a SQL function'", false),
            ("", false),
        ] {
            assert_eq!(is_of_function(context), wanted, "{context}");
        }
    }
}
