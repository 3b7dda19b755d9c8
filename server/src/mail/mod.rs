//! Outgoing mail: a message and the trait of whoever delivers it.
//!
//! Senders: SMTP (`smtp`), the development inbox and a memory for tests. In the full server messages first
//! become outbox rows in the transaction that causes them and are delivered after commit.

mod config;
pub mod inbox;
mod memory;
pub mod outbox;
mod smtp;

pub use config::{FromAddress, MailConfig, SmtpConfig};
pub use memory::Memory;
pub use smtp::Smtp;

use futures_util::future::BoxFuture;

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

/// Why a message was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    #[error("the address or the content of a message is not usable: {0}")]
    Unusable(String),
    #[error("the mail server did not take a message: {0}")]
    Refused(String),
    /// RFC 5321, 4.2.1: the same message will not be taken later either.
    #[error("the mail server will never take a message: {0}")]
    Rejected(String),
}

/// Delivers messages. `send` returns once the next hop has accepted the message.
pub trait Sender: Send + Sync {
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), MailError>>;
}

/// Accepts and forgets; what `--only auth` does without SMTP, and `mail = drop`.
pub struct Drop;

impl Sender for Drop {
    fn send<'a>(&'a self, _message: &'a Message) -> BoxFuture<'a, Result<(), MailError>> {
        Box::pin(async { Ok(()) })
    }
}
