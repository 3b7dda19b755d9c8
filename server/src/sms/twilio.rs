//! Twilio, or any service with its APIs: Messages sends texts; Verify creates, sends and checks codes. Reference:
//! supabase/auth `internal/api/sms_provider/twilio.go`, `twilio_verify.go`.

use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::text::{CodeChecker, Text, TextError, TextSender, WHATSAPP};
use crate::config::TwilioConfig;
use crate::http::answer_body::read_answer;
use crate::mail::Told;

/// Twilio's error code for a number that has sent STOP.
const UNSUBSCRIBED: i64 = 21610;

/// The longest answer that is read.
const MOST_BYTES: usize = 1 << 20;

/// Sends a request as an account and reads the answer; the error text is the service's.
async fn ask(
    client: &reqwest::Client,
    url: &str,
    config: &TwilioConfig,
    form: &[(&str, &str)],
) -> Result<Value, TextError> {
    let answer = client
        .post(url)
        .timeout(Duration::from_secs(10))
        .basic_auth(&config.account_sid, Some(config.auth_token.reveal()))
        .form(form)
        .send()
        .await
        .map_err(|error| TextError::Refused(error.without_url().to_string().into()))?;
    let status = answer.status();
    let body = read_answer(answer, MOST_BYTES).await.map_err(|fault| TextError::Refused(fault.to_string().into()))?;
    let body: Value = serde_json::from_slice(&body).map_err(|error| TextError::Refused(error.to_string().into()))?;
    if status.is_success() {
        return Ok(body);
    }
    let text = format!("{} More information: {}", text_of(&body, "message"), text_of(&body, "more_info"));
    let told = Told { text, code: body.get("code").and_then(Value::as_i64).or(Some(status.as_u16().into())) };
    Err(if told.code == Some(UNSUBSCRIBED) {
        TextError::Stopped(told.text)
    } else if status == StatusCode::BAD_REQUEST {
        TextError::Rejected(told)
    } else {
        TextError::Refused(told)
    })
}

fn text_of(body: &Value, name: &str) -> String {
    body.get(name).and_then(Value::as_str).unwrap_or("").to_owned()
}

/// The Messages API.
pub struct Twilio {
    config: TwilioConfig,
    client: reqwest::Client,
}

impl Twilio {
    /// `None` when a setting is missing.
    pub fn new(config: &TwilioConfig, client: reqwest::Client) -> Option<Self> {
        config.is_complete().then(|| Self { config: config.clone(), client })
    }
}

impl TextSender for Twilio {
    fn send<'a>(&'a self, text: &'a Text<'a>) -> BoxFuture<'a, Result<String, TextError>> {
        Box::pin(async move {
            let from = &self.config.message_service_sid;
            let number = format!("+{}", text.to);
            let content = json!({ "1": text.code }).to_string();
            let mut form: Vec<(&str, &str)> = vec![("Channel", text.channel)];
            let (to, sender);
            if text.channel == WHATSAPP {
                to = format!("whatsapp:{number}");
                sender = if from.bytes().all(|b| b.is_ascii_digit() || b == b'+') {
                    format!("whatsapp:{from}")
                } else {
                    from.clone()
                };
                if self.config.content_sid.is_empty() {
                    form.push(("Body", text.body));
                } else {
                    form.push(("ContentSid", &self.config.content_sid));
                    form.push(("ContentVariables", &content));
                }
            } else {
                (to, sender) = (number, from.clone());
                form.push(("Body", text.body));
            }
            form.push(("To", &to));
            form.push(("From", &sender));
            let url = format!("{}/2010-04-01/Accounts/{}/Messages.json", self.config.base_url, self.config.account_sid);
            let body = ask(&self.client, &url, &self.config, &form).await?;
            let field = |name: &str| text_of(&body, name);
            if matches!(field("status").as_str(), "failed" | "undelivered") {
                let text = format!("twilio error: {} for message {}", field("error_message"), field("sid"));
                let code = body.get("error_code").and_then(Value::as_i64).or(Some(0));
                return Err(TextError::Refused(Told { text, code }));
            }
            Ok(field("sid"))
        })
    }
}

/// The Verify API, which makes the codes, so that codes made here are never sent.
pub struct TwilioVerify {
    config: TwilioConfig,
    client: reqwest::Client,
}

impl TwilioVerify {
    /// `None` when a setting is missing.
    pub fn new(config: &TwilioConfig, client: reqwest::Client) -> Option<Self> {
        config.is_complete().then(|| Self { config: config.clone(), client })
    }

    async fn ask(&self, resource: &str, form: &[(&str, &str)]) -> Result<Value, TextError> {
        let url = format!("{}/v2/Services/{}/{resource}", self.config.base_url, self.config.message_service_sid);
        ask(&self.client, &url, &self.config, form).await
    }
}

impl TextSender for TwilioVerify {
    fn send<'a>(&'a self, text: &'a Text<'a>) -> BoxFuture<'a, Result<String, TextError>> {
        Box::pin(async move {
            let to = format!("+{}", text.to);
            let body = self.ask("Verifications", &[("To", &to), ("Channel", text.channel)]).await?;
            Ok(text_of(&body, "sid"))
        })
    }

    fn checker(&self) -> Option<&dyn CodeChecker> {
        Some(self)
    }
}

impl CodeChecker for TwilioVerify {
    fn check<'a>(&'a self, phone: &'a str, code: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let to = format!("+{phone}");
            let asked = self.ask("VerificationCheck", &[("To", &to), ("Code", code)]).await;
            let body = asked.map_err(|error| error.to_string())?;
            let approved = text_of(&body, "status") == "approved" && body.get("valid") == Some(&Value::Bool(true));
            approved.then_some(()).ok_or_else(|| {
                format!("twilio verification error: {} {}", text_of(&body, "error_message"), text_of(&body, "status"))
            })
        })
    }
}
