//! Captchas. Reference: supabase/auth `internal/security/captcha.go`.

use serde::Deserialize;

use crate::auth::door::bearer;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Code, Fault};
use crate::http::answer_body::read_answer;

/// The longest answer that is read.
const MOST_BYTES: usize = 1 << 20;

#[derive(Deserialize)]
struct Verdict {
    success: bool,
    #[serde(default, rename = "error-codes")]
    error_codes: Vec<String>,
}

/// Checks `gotrue_meta_security.captcha_token` of the body if captchas are on; administrators need none.
///
/// Errors: 400 `captcha_failed`, 500 if the provider cannot be reached.
pub async fn check(request: &Request) -> AuthResult<()> {
    let Some(captcha) = &request.auth.config.security.captcha else { return Ok(()) };
    if bearer::require_admin(request).await.is_ok() {
        return Ok(());
    }
    let token = request.params()?.nested("gotrue_meta_security")?.text("captcha_token")?;
    let disallowed = |why: &str| {
        AuthError::bad_request(Code::CaptchaFailed, format!("captcha protection: request disallowed ({why})"))
    };
    if token.trim().is_empty() {
        return Err(disallowed("no captcha_token found"));
    }
    let remote = request.client_ip_text();
    let form = [("secret", captcha.secret.reveal()), ("response", token.trim()), ("remoteip", &remote)];
    let failed =
        |cause: String| AuthError::internal("captcha verification process failed").caused_by(Fault::new(cause));
    let away = request.away();
    let answer = away.http()?.post(&captcha.url).timeout(captcha.timeout).form(&form).send().await;
    let answer = answer.map_err(|error| failed(error.without_url().to_string()))?;
    let body = read_answer(answer, MOST_BYTES).await.map_err(|fault| failed(fault.to_string()))?;
    let verdict: Verdict = serde_json::from_slice(&body).map_err(|error| failed(error.to_string()))?;
    if verdict.success { Ok(()) } else { Err(disallowed(&verdict.error_codes.join(", "))) }
}
