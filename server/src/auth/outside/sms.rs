//! Text messages: providers, and the codes in the messages. Reference: supabase/auth
//! `internal/api/phone.go`, `internal/api/sms_provider/`.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::auth::Auth;
use crate::auth::credentials::otp;
use crate::auth::door::limits::require_pause;
use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult, Code, Meaning as _};
use crate::auth::models::one_time_token::Purpose;
use crate::auth::models::store::Db;
use crate::auth::models::user::User;
use crate::auth::outside::hooks::{self, Hook};
use crate::auth::outside::mailer::{self, Template};
use crate::config::SmsConfig;
use crate::sms::{CodeChecker, TextSender, Twilio, TwilioVerify, WHATSAPP};
pub use crate::sms::{SMS, Text};

/// Where text messages go.
#[derive(Clone)]
pub enum Texts {
    /// The mail inbox of development.
    Inbox,
    Provider(Arc<dyn TextSender>),
}

impl Texts {
    /// Checks the codes, if the provider makes them itself.
    fn checker(&self) -> Option<&dyn CodeChecker> {
        match self {
            Self::Inbox => None,
            Self::Provider(sender) => sender.checker(),
        }
    }
}

/// Whether the provider confirms the code that it sent to `phone`; `None` if codes are made here. With the hook
/// they are, because the provider does not know what the hook sends.
pub async fn check_code(request: &Request, phone: &str, code: &str) -> AuthResult<Option<bool>> {
    if request.auth.config.hooks.send_sms.is_some() || checker_of(&request.auth).is_none() {
        return Ok(None);
    }
    let (about, phone, code) = (format!("code {phone} {code}"), phone.to_owned(), code.to_owned());
    let asked = request.ask(about, |away| async move {
        let Some(checker) = checker_of(away.auth()) else { return Ok(json!(false)) };
        away.leave()?;
        let checked = checker.check(&phone, &code).await;
        if let Err(cause) = &checked {
            tracing::info!(cause, "the provider of text messages does not approve a code");
        }
        Ok(json!(checked.is_ok()))
    });
    Ok(Some(asked.await? == json!(true)))
}

fn checker_of(auth: &Auth) -> Option<&dyn CodeChecker> {
    auth.texts.as_ref()?.checker()
}

/// The configured sender, `None` if the name is unknown.
pub fn sender(config: &SmsConfig, client: reqwest::Client) -> Option<Texts> {
    match config.provider.as_str() {
        "twilio" => Twilio::new(&config.twilio, client).map(|sender| Texts::Provider(Arc::new(sender))),
        "twilio_verify" => {
            TwilioVerify::new(&config.twilio_verify, client).map(|sender| Texts::Provider(Arc::new(sender)))
        }
        "inbox" => Some(Texts::Inbox),
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

/// Puts a message into the inbox.
async fn to_inbox(request: &Request, db: &Db, text: &Text<'_>) -> AuthResult<String> {
    mailer::deliver(request, db, text.as_mail()).await?;
    Ok(uuid::Uuid::new_v4().to_string())
}

/// Refuses unsupported channels. With the hook any channel passes, because the hook decides.
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
    let refused = move |error: &str, purpose: &str| {
        AuthError::unprocessable(Code::SmsSendFailed, format!("Error sending {purpose} OTP to provider: {error}"))
    };
    let sender = match auth.texts.as_ref().ok_or_else(|| AuthError::internal("Unable to get SMS provider"))? {
        Texts::Provider(sender) => Arc::clone(sender),
        Texts::Inbox => {
            return to_inbox(request, db, text).await.map_err(|error| {
                tracing::error!(fault = %error.into_fault(), "a text message could not be put into the inbox");
                refused("the inbox took no message", purpose)
            });
        }
    };
    let about = format!("text {} {} {}", text.to, text.channel, text.code);
    let (to, body, channel, code) =
        (text.to.to_owned(), text.body.to_owned(), text.channel.to_owned(), text.code.to_owned());
    let purpose = purpose.to_owned();
    let sent = request.ask(about, |away| async move {
        let text = Text { to: &to, body: &body, channel: &channel, code: &code };
        away.leave()?;
        let sent = away.auth().paces.texts.measured(sender.send(&text)).await;
        sent.map(Value::from).map_err(|error| refused(&error.to_string(), &purpose))
    });
    Ok(sent.await?.as_str().unwrap_or_default().to_owned())
}

/// Takes as long as sending a text message, for a number that gets none.
pub async fn wait_as_if_sent(request: &Request) -> AuthResult<()> {
    let away = request.away();
    away.leave()?;
    away.auth().paces.texts.wait().await;
    Ok(())
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
    let (purpose, name) = match purpose {
        Purpose::PhoneChange => (purpose, "phone_change"),
        Purpose::Reauthentication => (purpose, "reauthentication"),
        _ => (Purpose::Confirmation, "confirmation"),
    };
    require_pause(request, db, user.id, purpose, config.max_frequency, Code::OverSmsSendRateLimit).await?;
    if purpose == Purpose::PhoneChange {
        user.phone_change = phone.to_owned();
    }
    let (code, message_id) = match config.test_otp(phone, chrono::Utc::now()) {
        Some(code) => (code.to_owned(), "test-otp".to_owned()),
        None => {
            // Both once per message, even if the transaction is repeated.
            let about = format!("{name} {phone}");
            let is_allowed = config.autoconfirm
                || request.once_loaded(&format!("may text {about}"), auth.limits.allow_sms()).await?;
            if !is_allowed {
                return Err(AuthError::too_many_requests(Code::OverSmsSendRateLimit, "SMS rate limit exceeded"));
            }
            let code = request.once(&format!("code of {about}"), || otp::generate(config.otp_length));
            let body = compose(&config.template, &code)?;
            let text = Text { to: phone, body: &body, channel, code: &code };
            send_code(request, db, user, json!({ "otp": code, "phone": phone }), &text, name).await?;
            (code, String::new())
        }
    };
    user.save_token(db, purpose, request.auth.code_hasher.hash(phone, &code))
        .await
        .or_internal("error creating one time token")?;
    Ok(message_id)
}
