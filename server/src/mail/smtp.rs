//! Delivery to a mail server.

use std::time::Duration;

use futures_util::future::BoxFuture;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, SinglePart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};

use super::config::SmtpConfig;
use super::{MailError, Message, SEND_DEADLINE, Sender};

/// The port for implicit TLS.
const IMPLICIT_TLS: u16 = 465;

/// Sends each message over its own connection to the configured server.
pub struct Smtp {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    /// Limits the whole conversation. lettre's own timeout covers only the connect.
    deadline: Duration,
}

impl Smtp {
    pub fn new(config: &SmtpConfig) -> Result<Self, MailError> {
        let tls = TlsParameters::new(config.host.clone()).map_err(|e| MailError::Refused(e.to_string()))?;
        let is_local = matches!(config.host.as_str(), "localhost" | "127.0.0.1" | "::1");
        let tls = match config.port {
            IMPLICIT_TLS => Tls::Wrapper(tls),
            // A password is never sent in the clear to another machine.
            _ if config.login.is_some() && !is_local => Tls::Required(tls),
            _ => Tls::Opportunistic(tls),
        };
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&config.host)
            .port(config.port)
            .tls(tls)
            .timeout(Some(SEND_DEADLINE));
        if let Some((user, password)) = &config.login {
            builder = builder.credentials(Credentials::new(user.clone(), password.reveal().to_owned()));
        }
        let name = Some(config.from.name.clone()).filter(|name| !name.is_empty());
        let address = config.from.address.parse().map_err(unusable)?;
        Ok(Self { transport: builder.build(), from: Mailbox::new(name, address), deadline: SEND_DEADLINE })
    }

    /// Replaces the default deadline, [`SEND_DEADLINE`].
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    fn is_late(&self) -> MailError {
        MailError::Refused(format!("no end after {:?}", self.deadline))
    }

    fn email(&self, message: &Message) -> Result<lettre::Message, MailError> {
        let builder = lettre::Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, message.to.parse().map_err(unusable)?))
            .subject(&message.subject);
        let email = match (message.text.is_empty(), message.html.is_empty()) {
            (false, false) => {
                builder.multipart(MultiPart::alternative_plain_html(message.text.clone(), message.html.clone()))
            }
            (true, false) => builder.singlepart(SinglePart::html(message.html.clone())),
            (_, true) => builder.singlepart(SinglePart::plain(message.text.clone())),
        };
        let mut email = email.map_err(unusable)?;
        for (name, value) in &message.headers {
            let name = HeaderName::new_from_ascii(name.clone()).map_err(unusable)?;
            // A line break would allow header injection.
            if value.contains(['\r', '\n']) {
                return Err(MailError::Unusable(format!("the header {name} contains a line break")));
            }
            email.headers_mut().insert_raw(HeaderValue::new(name, value.clone()));
        }
        Ok(email)
    }
}

fn unusable(error: impl std::fmt::Display) -> MailError {
    MailError::Unusable(error.to_string())
}

/// Replies about our own login (RFC 4954). The server may accept the message once the login is fixed.
const LOGIN_REPLIES: [u16; 4] = [530, 534, 535, 538];

fn refused(error: lettre::transport::smtp::Error) -> MailError {
    let is_about_login = error.status().is_some_and(|code| LOGIN_REPLIES.contains(&u16::from(code)));
    if error.is_permanent() && !is_about_login {
        MailError::Rejected(error.to_string())
    } else {
        MailError::Refused(error.to_string())
    }
}

impl Sender for Smtp {
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), MailError>> {
        Box::pin(async move {
            let email = self.email(message)?;
            match tokio::time::timeout(self.deadline, self.transport.send(email)).await {
                Ok(sent) => sent.map(drop).map_err(refused),
                Err(_) => Err(self.is_late()),
            }
        })
    }

    fn rehearse(&self) -> BoxFuture<'_, Result<(), MailError>> {
        Box::pin(async move {
            match tokio::time::timeout(self.deadline, self.transport.test_connection()).await {
                Ok(Ok(true)) => Ok(()),
                Ok(Ok(false)) => Err(MailError::Refused("the connection was closed".to_owned())),
                Ok(Err(error)) => Err(refused(error)),
                Err(_) => Err(self.is_late()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::FromAddress;
    use super::*;

    fn smtp() -> Smtp {
        let from = FromAddress { name: "AidBridge".to_owned(), address: "support@x.example".to_owned() };
        let config = SmtpConfig { host: "localhost".to_owned(), port: 2525, login: None, from };
        Smtp::new(&config).expect("a sender")
    }

    fn message() -> Message {
        Message {
            to: "ada@example.org".to_owned(),
            subject: "Grüße".to_owned(),
            text: "plain".to_owned(),
            html: "<p>rich</p>".to_owned(),
            headers: vec![("List-Unsubscribe".to_owned(), "<https://x.example/u>".to_owned())],
        }
    }

    #[tokio::test]
    async fn a_mail_has_both_parts_the_sender_and_the_extra_headers() {
        let text = String::from_utf8(smtp().email(&message()).expect("an email").formatted()).expect("text");
        for expected in [
            "From: AidBridge <support@x.example>\r\n",
            "To: ada@example.org\r\n",
            "Subject: =?utf-8?b?",
            "List-Unsubscribe: <https://x.example/u>\r\n",
            "multipart/alternative",
            "plain",
            "<p>rich</p>",
        ] {
            assert!(text.contains(expected), "{expected} is missing in\n{text}");
        }
    }

    #[tokio::test]
    async fn undeliverable_mail_is_distinguished_from_an_unreachable_server() {
        let nobody = Message { to: "nobody".to_owned(), ..message() };
        assert!(matches!(smtp().send(&nobody).await, Err(MailError::Unusable(_))));
        let injected = Message { headers: vec![("X".to_owned(), "a\r\nBcc: all@x".to_owned())], ..message() };
        assert!(matches!(smtp().send(&injected).await, Err(MailError::Unusable(_))));
        let closed = Smtp::new(&SmtpConfig {
            host: "127.0.0.1".to_owned(),
            port: 9,
            login: None,
            from: FromAddress { name: String::new(), address: "a@b.example".to_owned() },
        });
        assert!(matches!(closed.expect("a sender").send(&message()).await, Err(MailError::Refused(_))));
    }
}
