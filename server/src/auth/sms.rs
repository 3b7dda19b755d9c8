//! Text messages: who sends them, and the codes that travel in them.
//! Reference: supabase/auth `internal/api/phone.go`, `internal/api/sms_provider/`.

use std::sync::Arc;

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
use super::twilio::{Twilio, TwilioVerify};
use crate::config::SmsConfig;
use crate::mail::Message;

/// The channels a message can take.
pub const SMS: &str = "sms";
pub const WHATSAPP: &str = "whatsapp";

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

    /// Who checks the codes, where the provider makes them itself: those made here are then nobody's.
    fn checker(&self) -> Option<&dyn CodeChecker> {
        None
    }
}

/// Says whether a code is the one that it sent to a number. The error text is for the log.
pub trait CodeChecker: Send + Sync {
    /// `phone`: E.164 digits without `+`.
    fn check<'a>(&'a self, phone: &'a str, code: &'a str) -> LocalBoxFuture<'a, Result<(), String>>;
}

/// Whether the provider, who made the code, says that it is the one it sent to `phone`; `None` where codes are made
/// here. With the hook they are: what it sends, no provider knows.
pub async fn check_code(request: &Request, phone: &str, code: &str) -> Option<bool> {
    if request.auth.config.hooks.send_sms.is_some() {
        return None;
    }
    let checker = request.auth.texts.as_ref()?.checker()?;
    let checked = checker.check(phone, code).await;
    if let Err(cause) = &checked {
        tracing::info!(cause, "the provider of text messages does not approve a code");
    }
    Some(checked.is_ok())
}

/// The sender the settings name, `None` if there is none by that name.
pub fn sender(config: &SmsConfig, client: reqwest::Client, delivery: &Delivery) -> Option<Arc<dyn TextSender>> {
    match config.provider.as_str() {
        "twilio" => Twilio::new(&config.twilio, client).map(|sender| Arc::new(sender) as Arc<dyn TextSender>),
        "twilio_verify" => {
            TwilioVerify::new(&config.twilio_verify, client).map(|sender| Arc::new(sender) as Arc<dyn TextSender>)
        }
        "inbox" => Some(Arc::new(Inbox { delivery: delivery.clone() })),
        "" => None,
        other => {
            tracing::warn!(
                provider = other,
                "GOTRUE_SMS_PROVIDER names a provider that is not served: twilio, twilio_verify and inbox are"
            );
            None
        }
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
        || (channel == WHATSAPP && matches!(config.sms.provider.as_str(), "twilio" | "twilio_verify"));
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
