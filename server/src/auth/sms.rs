//! Text messages: who sends them, and the codes that travel in them.
//! Reference: supabase/auth `internal/api/phone.go`, `internal/api/sms_provider/`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use serde_json::{Map, Value, json};

use super::error::{AuthError, AuthResult, Code, Meaning as _};
use super::hooks::{self, Hook};
use super::limits::check_frequency;
use super::mailer::{self, Delivery, Template};
use super::models::one_time_token::Purpose;
use super::models::user::User;
use super::otp;
use super::request::Request;
use super::store::Db;
use crate::config::{SmsConfig, TwilioConfig};
use crate::mail::Message;

/// The channels a message can take.
pub const SMS: &str = "sms";
const WHATSAPP: &str = "whatsapp";

/// A text message about to leave.
#[derive(Clone, Debug)]
pub struct Text<'a> {
    /// E.164 digits without `+`.
    pub to: &'a str,
    pub body: &'a str,
    /// `sms` or `whatsapp`.
    pub channel: &'a str,
    pub code: &'a str,
}

/// Sends text messages; the answer is the provider's id of the message. The error text is for the caller.
/// `db` is the request's, for senders that write a row.
pub trait TextSender: Send + Sync {
    fn send<'a>(&'a self, db: &'a Db, text: &'a Text<'a>) -> LocalBoxFuture<'a, Result<String, String>>;
}

/// The sender the settings name, `None` if there is none by that name.
pub fn sender(config: &SmsConfig, client: reqwest::Client, delivery: &Delivery) -> Option<Arc<dyn TextSender>> {
    match config.provider.as_str() {
        "twilio" => {
            let twilio = &config.twilio;
            let complete = !twilio.account_sid.is_empty()
                && !twilio.auth_token.reveal().is_empty()
                && !twilio.message_service_sid.is_empty();
            complete.then(|| Arc::new(Twilio { config: twilio.clone(), client }) as Arc<dyn TextSender>)
        }
        "inbox" => Some(Arc::new(Inbox { delivery: delivery.clone() })),
        "" => None,
        other => {
            tracing::warn!(
                provider = other,
                "GOTRUE_SMS_PROVIDER names a provider that is not served: twilio and inbox are"
            );
            None
        }
    }
}

/// Twilio's Messages API, or any service that speaks it.
struct Twilio {
    config: TwilioConfig,
    client: reqwest::Client,
}

impl TextSender for Twilio {
    fn send<'a>(&'a self, _db: &'a Db, text: &'a Text<'a>) -> LocalBoxFuture<'a, Result<String, String>> {
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
            let answer = self
                .client
                .post(url)
                .timeout(Duration::from_secs(10))
                .basic_auth(&self.config.account_sid, Some(self.config.auth_token.reveal()))
                .form(&form)
                .send()
                .await
                .map_err(|error| error.without_url().to_string())?;
            let accepted = answer.status().is_success();
            let body: Value = answer.json().await.map_err(|error| error.without_url().to_string())?;
            let field = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
            if !accepted {
                return Err(format!("{} More information: {}", field("message"), field("more_info")));
            }
            if matches!(field("status").as_str(), "failed" | "undelivered") {
                return Err(format!("twilio error: {} for message {}", field("error_message"), field("sid")));
            }
            Ok(field("sid"))
        })
    }
}

/// Puts messages where mails go, which development looks at.
struct Inbox {
    delivery: Delivery,
}

impl TextSender for Inbox {
    fn send<'a>(&'a self, db: &'a Db, text: &'a Text<'a>) -> LocalBoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let message = Message {
                to: format!("+{}@sms.invalid", text.to),
                subject: format!("Text message to +{}", text.to),
                text: text.body.to_owned(),
                html: text.body.to_owned(),
                headers: Vec::new(),
            };
            mailer::deliver(&self.delivery, db, &message).await.map_err(|fault| {
                tracing::error!(%fault, "a text message could not be put into the inbox");
                "the inbox took no message".to_owned()
            })?;
            Ok(uuid::Uuid::new_v4().to_string())
        })
    }
}

/// Refuses a channel nobody serves. With the hook any channel passes: the hook decides.
pub fn check_channel(request: &Request, channel: &str) -> AuthResult<()> {
    let config = &request.auth.config;
    let known = config.hooks.send_sms.is_some()
        || channel == SMS
        || (channel == WHATSAPP && config.sms.provider.starts_with("twilio"));
    if known {
        return Ok(());
    }
    Err(AuthError::invalid(
        "Invalid channel, supported values are 'sms' or 'whatsapp'. 'whatsapp' is only supported if Twilio or Twilio Verify is used as the provider.",
    ))
}

/// Sends `code` to `phone`: through the hook, or as the provider's message. `purpose` names it in errors.
pub async fn send_code(
    request: &Request,
    db: &Db,
    user: &User,
    sms: Value,
    text: &Text<'_>,
    purpose: &str,
) -> AuthResult<String> {
    let auth = &request.auth;
    if auth.config.hooks.send_sms.is_some() {
        hooks::run(request, Some(db), Hook::SendSms, json!({ "user": user, "sms": sms })).await?;
        return Ok(String::new());
    }
    let sender = auth.texts.as_ref().ok_or_else(|| AuthError::internal("Unable to get SMS provider"))?;
    sender.send(db, text).await.map_err(|error| {
        AuthError::unprocessable(Code::SmsSendFailed, format!("Error sending {purpose} OTP to provider: {error}"))
    })
}

/// The text of a message: a Go template of the code.
pub fn compose(template: &str, code: &str) -> AuthResult<String> {
    let mut data = Map::new();
    data.insert("Code".to_owned(), json!(code));
    Template::parse(template)
        .and_then(|template| template.render(&data))
        .map_err(|_| AuthError::internal("error generating sms template"))
}

/// Makes a code for `purpose`, sends it to `phone` and stores its hash. The answer is the message's id, which
/// upstream knows for test numbers only.
///
/// Errors: 429 `over_sms_send_rate_limit`, 422 `sms_send_failed`.
pub async fn send_otp(
    request: &Request,
    db: &Db,
    user: &mut User,
    phone: &str,
    purpose: Purpose,
    channel: &str,
) -> AuthResult<String> {
    let auth = &request.auth;
    let config = &auth.config.sms;
    let (sent_at, name) = match purpose {
        Purpose::PhoneChange => (user.phone_change_sent_at, "phone_change"),
        Purpose::Reauthentication => (user.reauthentication_sent_at, "reauthentication"),
        _ => (user.confirmation_sent_at, "confirmation"),
    };
    check_frequency(sent_at, config.max_frequency, Code::OverSmsSendRateLimit)?;
    if purpose == Purpose::PhoneChange {
        user.phone_change = phone.to_owned();
    }
    let (code, message_id) = match config.test_otp(phone, chrono::Utc::now()) {
        Some(code) => (code.to_owned(), "test-otp".to_owned()),
        None => {
            if !config.autoconfirm && !auth.limits.allow_sms().await? {
                return Err(AuthError::too_many_requests(Code::OverSmsSendRateLimit, "SMS rate limit exceeded"));
            }
            let code = otp::generate(config.otp_length);
            let body = compose(&config.template, &code)?;
            let text = Text { to: phone, body: &body, channel, code: &code };
            send_code(request, db, user, json!({ "otp": code, "phone": phone }), &text, name).await?;
            (code, String::new())
        }
    };
    user.save_token(db, purpose, otp::hash(phone, &code)).await.or_internal("error creating one time token")?;
    Ok(message_id)
}
