//! Hooks: a project's own code, called over HTTP or as a PostgreSQL function.
//! Reference: supabase/auth `internal/hooks/`.

mod http;
mod postgres;

use std::net::IpAddr;

use actix_web::http::StatusCode;
use futures_util::future::LocalBoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::auth::Auth;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Fault};
use crate::auth::models::store::Db;
use crate::auth::models::user::User;
use crate::config::HookConfig;

/// The answer for invalid output of a hook.
const UNREADABLE: &str = "Error unmarshaling JSON output.";

/// The points at which hooks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    CustomAccessToken,
    SendEmail,
    SendSms,
    MfaVerification,
    PasswordVerification,
    BeforeUserCreated,
    AfterUserCreated,
}

impl Hook {
    /// `metadata.name`.
    fn name(self) -> &'static str {
        match self {
            Self::CustomAccessToken => "customize-access-token",
            Self::SendEmail => "send-email",
            Self::SendSms => "send-sms",
            Self::MfaVerification => "mfa-verification",
            Self::PasswordVerification => "password-verification",
            Self::BeforeUserCreated => "before-user-created",
            Self::AfterUserCreated => "after-user-created",
        }
    }

    fn config(self, auth: &Auth) -> Option<&HookConfig> {
        let hooks = &auth.config.hooks;
        match self {
            Self::CustomAccessToken => hooks.custom_access_token.as_ref(),
            Self::SendEmail => hooks.send_email.as_ref(),
            Self::SendSms => hooks.send_sms.as_ref(),
            Self::MfaVerification => hooks.mfa_verification_attempt.as_ref(),
            Self::PasswordVerification => hooks.password_verification_attempt.as_ref(),
            Self::BeforeUserCreated => hooks.before_user_created.as_ref(),
            Self::AfterUserCreated => hooks.after_user_created.as_ref(),
        }
    }
}

/// Runs a hook with `input` and its metadata. Returns its answer, an empty object if there is none.
///
/// A function runs on `db`, in its open transaction, or on a separate connection. No connection is held during an HTTP
/// hook.
pub fn run<'a>(
    request: &'a Request,
    db: Option<&'a Db>,
    hook: Hook,
    input: Value,
) -> LocalBoxFuture<'a, AuthResult<Value>> {
    Box::pin(run_now(request, db, hook, input))
}

async fn run_now(request: &Request, db: Option<&Db>, hook: Hook, input: Value) -> AuthResult<Value> {
    let Some(config) = hook.config(&request.auth) else { return Ok(json!({})) };
    let address = request.client_ip();
    let output = if config.uri.starts_with("pg-functions:") {
        // NULL means no answer, like an empty body over HTTP.
        let input = with_metadata(hook, address, input);
        let call = postgres::call(request, db, &config.uri, &input);
        match request.auth.paces.of_hook(hook) {
            Some(pace) => pace.measured(call).await?,
            None => call.await?,
        }
    } else {
        let asked = request.ask(about(hook, &input), |away| async move {
            let Some(config) = hook.config(away.auth()) else { return Ok(json!([])) };
            let metadata = with_metadata(hook, address, input);
            let call = http::call(&away, config, &metadata);
            let output = match away.auth().paces.of_hook(hook) {
                Some(pace) => pace.measured(call).await?,
                None => call.await?,
            };
            Ok(output.map_or_else(|| json!([]), |output| json!([output])))
        });
        match asked.await? {
            Value::Array(mut outputs) => outputs.pop(),
            _ => None,
        }
    };
    let Some(output) = output else { return Ok(json!({})) };
    let unreadable = || AuthError::internal(UNREADABLE);
    if let Some(error) = told_error(&output) {
        return Err(error);
    }
    match output {
        Value::Object(_) => Ok(output),
        Value::Null if hook != Hook::CustomAccessToken => Ok(json!({})),
        Value::Null => Err(AuthError::internal("output claims field is missing")),
        _ => Err(unreadable()),
    }
}

/// What an answer depends on: the input without values that differ in every attempt, such as times.
fn about(hook: Hook, input: &Value) -> String {
    let mut input = input.clone();
    if let Some(Value::Object(claims)) = input.get_mut("claims") {
        claims.retain(|name, _| !matches!(name.as_str(), "iat" | "exp" | "amr"));
    }
    if let Some(Value::Object(user)) = input.get_mut("user") {
        user.retain(|name, _| matches!(name.as_str(), "id" | "email" | "phone" | "new_email" | "new_phone"));
    }
    format!("{} {input}", hook.name())
}

fn with_metadata(hook: Hook, address: Option<IpAddr>, mut input: Value) -> Value {
    let mut metadata = json!({
        "uuid": uuid::Uuid::new_v4(),
        "time": chrono::Utc::now(),
        "name": hook.name(),
    });
    if let Some(address) = address {
        metadata["ip_address"] = json!(address);
    }
    input["metadata"] = metadata;
    input
}

/// `{"error": {"http_code", "message"}}` with a message: that answer, 500 without a code.
fn told_error(output: &Value) -> Option<AuthError> {
    let error = output.get("error")?;
    let message = error.get("message").and_then(Value::as_str).filter(|message| !message.is_empty())?;
    let status = error
        .get("http_code")
        .and_then(Value::as_u64)
        .and_then(|code| StatusCode::from_u16(u16::try_from(code).ok()?).ok())
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Some(AuthError::Hook { status, message: message.to_owned() })
}

/// Asks whether a user may be created. Outside of any transaction, because the answer may take long.
pub async fn before_user_created(request: &Request, db: &Db, user: &User) -> AuthResult<()> {
    // Nothing is stored yet, so the user has no times.
    let mut user = json!(user);
    for time in ["created_at", "updated_at"] {
        user[time] = json!("0001-01-01T00:00:00Z");
    }
    run(request, Some(db), Hook::BeforeUserCreated, json!({ "user": user })).await.map(|_| ())
}

/// Reports that a user was created.
pub async fn after_user_created(request: &Request, db: &Db, user: &User) -> AuthResult<()> {
    run(request, Some(db), Hook::AfterUserCreated, json!({ "user": user })).await.map(|_| ())
}

/// What a verification hook decided.
pub struct Decision {
    /// The message of a rejection; `None` to continue.
    pub rejection: Option<String>,
    pub should_logout_user: bool,
}

/// The answer of a verification hook; absent and null fields have no meaning.
#[derive(Deserialize)]
struct Verdict {
    decision: Option<String>,
    message: Option<String>,
    should_logout_user: Option<bool>,
}

/// Reads `{"decision", "message", "should_logout_user"}`; only `reject` rejects. An answer with a wrong type is an
/// error, so that nobody is let in.
pub fn decision(output: Value, default_message: &str) -> AuthResult<Decision> {
    let verdict: Verdict = serde_json::from_value(output)
        .map_err(|e| AuthError::internal(UNREADABLE).caused_by(Fault::new(e.to_string())))?;
    let message = verdict.message.filter(|message| !message.is_empty());
    let rejected = verdict.decision.as_deref() == Some("reject");
    Ok(Decision {
        rejection: rejected.then(|| message.unwrap_or_else(|| default_message.to_owned())),
        should_logout_user: verdict.should_logout_user.unwrap_or(false),
    })
}

/// A hook that could not be run at all.
fn failed(uri: &str, fault: impl Into<Fault>) -> AuthError {
    AuthError::internal(format!("Error running hook URI: {uri}")).caused_by(fault)
}
