//! Text messages and who sends them.

use futures_util::future::BoxFuture;

use crate::auth::outside::Away;

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
pub trait TextSender: Send + Sync {
    fn send<'a>(&'a self, away: &'a Away, text: &'a Text<'a>) -> BoxFuture<'a, Result<String, String>>;

    /// Who checks the codes, where the provider makes them itself: those made here are then nobody's.
    fn checker(&self) -> Option<&dyn CodeChecker> {
        None
    }
}

/// Says whether a code is the one that it sent to a number. The error text is for the log.
pub trait CodeChecker: Send + Sync {
    /// `phone`: E.164 digits without `+`.
    fn check<'a>(&'a self, away: &'a Away, phone: &'a str, code: &'a str) -> BoxFuture<'a, Result<(), String>>;
}
