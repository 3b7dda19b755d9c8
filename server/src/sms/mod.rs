//! Text messages: providers, delivery of texts queued by `ferrobase.send_sms`, and people's answers.
//!
//! The auth API sends its codes through the same providers, within the request that asks for them.
//! Settings: `GOTRUE_SMS_*` ([`SmsConfig`](crate::config::SmsConfig)).

mod outgoing;
mod text;
mod twilio;
mod webhook;
mod words;

pub use outgoing::{Outgoing, TextTransport};
pub use text::{CodeChecker, SMS, Text, TextError, TextSender, WHATSAPP};
pub use twilio::{Twilio, TwilioVerify};
pub use webhook::Webhook;
