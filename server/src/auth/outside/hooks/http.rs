//! Hooks over HTTP, signed as Standard Webhooks: five seconds in all, three attempts. Reference:
//! <https://github.com/standard-webhooks/standard-webhooks>, supabase/auth `internal/hooks/hookshttp/`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use super::{UNREADABLE, failed};
use crate::auth::credentials::lenient_base64;
use crate::auth::error::{AuthError, AuthResult, Code, Fault};
use crate::auth::outside::OutboundContext;
use crate::config::{HookConfig, Secret};

const TIMEOUT: Duration = Duration::from_secs(5);
const ATTEMPTS: usize = 3;
const PAUSE: Duration = Duration::from_secs(2);
const LIMIT: usize = 200 * 1024;

/// Posts `input`; `None` is an answer without a body.
pub(super) async fn call(away: &OutboundContext, hook: &HookConfig, input: &Value) -> AuthResult<Option<Value>> {
    let client = away.hooks()?;
    let timed_out = || {
        let message = format!("Failed to reach hook within maximum time of {:.6} seconds", TIMEOUT.as_secs_f64());
        AuthError::unprocessable(Code::HookTimeout, message)
    };
    tokio::time::timeout(TIMEOUT, attempts(client, hook, input)).await.map_err(|_| timed_out())?
}

async fn attempts(client: &reqwest::Client, hook: &HookConfig, input: &Value) -> AuthResult<Option<Value>> {
    let body = serde_json::to_vec(input).map_err(|e| failed(&hook.uri, Fault::new(e.to_string())))?;
    let busy = || AuthError::internal("Service currently unavailable due to hook");
    for attempt in 1..=ATTEMPTS {
        let id = uuid::Uuid::new_v4().to_string();
        let timestamp = chrono::Utc::now().timestamp();
        let signatures = sign(&hook.secrets, &id, timestamp, &body)
            .ok_or_else(|| AuthError::internal("Error generating signatures: invalid signature format"))?;
        let answer = client
            .post(&hook.uri)
            .header("content-type", "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp.to_string())
            .header("webhook-signature", signatures)
            .body(body.clone())
            .send()
            .await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if attempt < ATTEMPTS => {
                tracing::warn!(attempt, cause = %error.without_url(), "a hook could not be reached; trying again");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Err(error) => {
                let message = "Failed to reach hook after maximum retries";
                return Err(AuthError::unprocessable(Code::HookTimeoutAfterRetry, message)
                    .caused_by(Fault::new(error.without_url().to_string())));
            }
        };
        match answer.status().as_u16() {
            204 => return Ok(None),
            200 | 202 => return read(hook, answer).await,
            429 | 503 if answer.headers().get("retry-after").is_some_and(|v| !v.is_empty()) => {}
            429 | 503 => return Err(busy()),
            400 => return Err(AuthError::internal("Invalid payload sent to hook")),
            401 => return Err(AuthError::internal("Hook requires authorization token")),
            status => {
                return Err(AuthError::internal(format!("Unexpected status code returned from hook: {status}")));
            }
        }
    }
    Err(busy())
}

async fn read(hook: &HookConfig, mut answer: reqwest::Response) -> AuthResult<Option<Value>> {
    let refused = |message: String| AuthError::bad_request(Code::HookPayloadInvalidContentType, message);
    let content_type = match answer.headers().get("content-type") {
        Some(value) => value.to_str().unwrap_or("").to_owned(),
        None => return Err(refused("Invalid Content-Type: Missing Content-Type header".to_owned())),
    };
    if !content_type.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case("application/json") {
        return Err(refused(format!("Invalid JSON response. Received content-type: {content_type}")));
    }
    let mut body = Vec::new();
    while let Some(chunk) =
        answer.chunk().await.map_err(|e| failed(&hook.uri, Fault::new(e.without_url().to_string())))?
    {
        body.extend_from_slice(&chunk);
        if body.len() > LIMIT {
            let message = format!("Payload size exceeded size limit of {LIMIT} bytes");
            return Err(AuthError::unprocessable(Code::HookPayloadOverSizeLimit, message));
        }
    }
    serde_json::from_slice(&body)
        .map(Some)
        .map_err(|e| AuthError::internal(UNREADABLE).caused_by(Fault::new(e.to_string())))
}

/// The `webhook-signature` header: one signature per secret.
fn sign(secrets: &[Secret], id: &str, timestamp: i64, body: &[u8]) -> Option<String> {
    let mut signatures = Vec::with_capacity(secrets.len());
    for secret in secrets {
        let key = lenient_base64::standard(secret.reveal().strip_prefix("v1,whsec_")?)?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        signatures.push(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())));
    }
    Some(signatures.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_matches_the_standard_webhooks_specification() {
        // The example of the Standard Webhooks specification.
        let secret = Secret::new("v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signed = sign(&[secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }
}
