//! A text message, and who sends it.

use futures_util::future::BoxFuture;

use crate::mail::{Message, Told};

/// The channels a message can take.
pub const SMS: &str = "sms";
pub const WHATSAPP: &str = "whatsapp";

/// A text message to send.
#[derive(Clone, Debug)]
pub struct Text<'a> {
    /// E.164 digits without `+`.
    pub to: &'a str,
    pub body: &'a str,
    /// `sms` or `whatsapp`.
    pub channel: &'a str,
    /// The code for a template of the provider, used instead of `body`; empty if the message is not a code.
    pub code: &'a str,
}

impl Text<'_> {
    /// As the development inbox shows it.
    pub fn as_mail(&self) -> Message {
        Message {
            to: format!("+{}@sms.invalid", self.to),
            subject: format!("Text message to +{}", self.to),
            text: self.body.to_owned(),
            html: self.body.replace('&', "&amp;").replace('<', "&lt;"),
            headers: Vec::new(),
        }
    }
}

/// Why a message was refused, in the provider's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Temporary: the same message may be accepted later.
    #[error("{0}")]
    Refused(Told),
    /// Permanent: the same message will not be accepted later either.
    #[error("{0}")]
    Rejected(Told),
    /// The number wants no more messages.
    #[error("{0}")]
    Stopped(String),
}

/// Sends text messages; the answer is the provider's id of the message. No transaction is open meanwhile.
pub trait TextSender: Send + Sync {
    fn send<'a>(&'a self, text: &'a Text<'a>) -> BoxFuture<'a, Result<String, TextError>>;

    /// Checks the codes, if the provider makes them itself; codes made here are then not used.
    fn checker(&self) -> Option<&dyn CodeChecker> {
        None
    }
}

/// Checks a code that the provider sent to a number. The error text is for the log.
pub trait CodeChecker: Send + Sync {
    /// `phone`: E.164 digits without `+`.
    fn check<'a>(&'a self, phone: &'a str, code: &'a str) -> BoxFuture<'a, Result<(), String>>;
}
