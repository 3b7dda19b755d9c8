//! Builds without the feature `inbox-smtp`: no mail comes by SMTP, so no mail has parts.

use std::convert::Infallible;
use std::net::TcpListener;

use crate::db::Pool;

/// There is none: no listener is bound for it ([`INBOX_TAKES_SMTP`](crate::config::INBOX_TAKES_SMTP)).
pub struct Receiver(Infallible);

impl Receiver {
    pub fn spawn(_listener: TcpListener, _pool: Pool) -> std::io::Result<Self> {
        Err(std::io::Error::new(std::io::ErrorKind::Unsupported, "this build does not accept mail by SMTP"))
    }

    pub async fn stop(self) {
        match self.0 {}
    }
}

pub struct Part {
    pub content_type: String,
    pub name: String,
    pub bytes: Vec<u8>,
}

pub fn part(_source: &[u8], _number: &str) -> Option<Part> {
    None
}
