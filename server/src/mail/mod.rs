//! Outgoing mail: the message type and the `Sender` trait.
//!
//! Senders are SMTP (`smtp`), the development inbox and an in-memory one for tests. The full server first writes messages to the
//! outbox, in the transaction that causes them, and delivers them after the commit.

mod config;
pub mod inbox;
mod memory;
pub mod outbox;
mod smtp;

pub use config::{FromAddress, MailConfig, SmtpConfig};
pub use memory::Memory;
pub use smtp::Smtp;

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

/// The time limit for announcing one message, from connecting to the answer before its content.
pub const SEND_DEADLINE: Duration = Duration::from_secs(30);
/// The time limit for a message's content and the answer to it (RFC 5321, 4.5.3.2.6). A server may deliver the message
/// before it answers, so that whoever gives up earlier sends it twice.
pub const ACCEPTANCE: Duration = Duration::from_secs(10 * 60);

/// A mail ready to be sent: one recipient, a text part and an HTML part that say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub to: String,
    pub subject: String,
    pub text: String,
    pub html: String,
    /// Extra header lines, e.g. `List-Unsubscribe`.
    pub headers: Vec<(String, String)>,
}

/// Why the other side did not accept a message. Its own words often name the recipient: they come with a code, which is
/// for the log instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub text: String,
    /// A mail server's reply code, or that of a provider of texts.
    pub code: Option<i64>,
}

impl From<String> for Told {
    fn from(text: String) -> Self {
        Self { text, code: None }
    }
}

impl From<&str> for Told {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a message was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    #[error("the address or the content of a message is not usable: {0}")]
    Unusable(String),
    #[error("the mail server did not accept a message: {0}")]
    Refused(Told),
    /// RFC 5321, 4.2.1: permanent; the same message will not be accepted later either.
    #[error("the mail server will never accept a message: {0}")]
    Rejected(Told),
}

impl MailError {
    /// The same for the log, without anybody's address.
    pub fn outline(&self) -> String {
        let (kind, told) = match self {
            Self::Unusable(_) => return "not usable".to_owned(),
            Self::Refused(told) => ("not accepted", told),
            Self::Rejected(told) => ("rejected", told),
        };
        match told.code {
            Some(code) => format!("{kind} ({code})"),
            // Our own words, as for a connection that failed.
            None => format!("{kind}: {told}"),
        }
    }
}

/// Delivers messages. `send` returns once the next hop has accepted the message.
pub trait Sender: Send + Sync {
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), MailError>>;

    /// Goes through the steps of sending without a message; fails if none could be sent.
    fn rehearse(&self) -> BoxFuture<'_, Result<(), MailError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Accepts and discards messages: `--only auth` without SMTP, and `mail = drop`.
pub struct Drop;

impl Sender for Drop {
    fn send<'a>(&'a self, _message: &'a Message) -> BoxFuture<'a, Result<(), MailError>> {
        Box::pin(async { Ok(()) })
    }
}
