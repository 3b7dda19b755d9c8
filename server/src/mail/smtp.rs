//! Delivery to a mail server.
//!
//! The conversation is led by hand instead of by lettre's transport, which waits for the answer to QUIT and counts a
//! mail as lost that the server has accepted before.

use std::time::Duration;

use futures_util::future::BoxFuture;
use lettre::address::Envelope;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, SinglePart};
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use tokio::net::lookup_host;
use tokio::time::timeout;

use super::config::SmtpConfig;
use super::{ACCEPTANCE, MailError, Message, SEND_DEADLINE, Sender, Told};
use crate::outgoing;

/// The port for implicit TLS.
const IMPLICIT_TLS: u16 = 465;
/// How long to wait for the answer to QUIT, which changes nothing.
const GOODBYE: Duration = Duration::from_secs(2);

/// Sends each message over its own connection to the configured server.
pub struct Smtp {
    host: String,
    port: u16,
    tls: TlsParameters,
    credentials: Option<Credentials>,
    hello_name: ClientId,
    from: Mailbox,
    /// From connecting to the answer to DATA.
    deadline: Duration,
    /// For the mail's content and the answer to it.
    acceptance: Duration,
    /// See [`Smtp::within_request`].
    presumed_after: Option<Duration>,
}

impl Smtp {
    /// A sender for the outbox.
    pub fn new(config: &SmtpConfig) -> Result<Self, MailError> {
        let credentials = config.login.as_ref();
        let name = Some(config.from.name.clone()).filter(|name| !name.is_empty());
        let address = config.from.address.parse().map_err(unusable)?;
        Ok(Self {
            host: config.host.clone(),
            port: config.port,
            tls: trusting_system(&config.host).map_err(refused)?,
            credentials: credentials
                .map(|(user, password)| Credentials::new(user.clone(), password.reveal().to_owned())),
            hello_name: ClientId::default(),
            from: Mailbox::new(name, address),
            deadline: SEND_DEADLINE,
            acceptance: ACCEPTANCE,
            presumed_after: None,
        })
    }

    /// A sender for requests, whose clients do not wait for minutes. If the server has a mail's content for
    /// `presumed_after` and has not said whether it accepts it, the mail counts as sent; a later refusal is only logged.
    ///
    /// Such a server is nearly always slow, as when it scans the content. A failure would undo the request, and the
    /// mail would arrive with a link that does not work.
    pub fn within_request(self, presumed_after: Duration) -> Self {
        Self { presumed_after: Some(presumed_after), ..self }
    }

    /// Replaces the default limits, [`SEND_DEADLINE`] and [`ACCEPTANCE`].
    pub fn with_limits(self, deadline: Duration, acceptance: Duration) -> Self {
        Self { deadline, acceptance, ..self }
    }

    /// Does a part of the conversation that ends before any content is sent.
    async fn in_time<T>(&self, part: impl Future<Output = Result<T, MailError>>) -> Result<T, MailError> {
        let late = || Err(MailError::Refused(format!("no end after {:?}", self.deadline).into()));
        timeout(self.deadline, part).await.unwrap_or_else(|_| late())
    }

    /// Connects, encrypts and logs in.
    async fn connect(&self) -> Result<AsyncSmtpConnection, MailError> {
        let wrapper = (self.port == IMPLICIT_TLS).then(|| self.tls.clone());
        let address = (self.host.as_str(), self.port);
        let mut connection =
            AsyncSmtpConnection::connect_tokio1(address, Some(self.deadline), &self.hello_name, wrapper, None)
                .await
                .map_err(refused)?;
        if connection.can_starttls() {
            connection.starttls(self.tls.clone(), &self.hello_name).await.map_err(refused)?;
        }
        // Who has a login expects it to be used. Without encryption, somebody on the way may have hidden that it is offered.
        if self.credentials.is_some() && !connection.is_encrypted() && self.is_far_away().await {
            leave(connection);
            let told = "it offers no encryption, which a login on a machine outside of this network requires";
            return Err(MailError::Refused(told.into()));
        }
        // As in Supabase Auth, a server that offers no login gets the mail without one.
        let offers_login = connection.server_info().get_auth_mechanism(DEFAULT_MECHANISMS).is_some();
        let Some(credentials) = self.credentials.as_ref().filter(|_| offers_login) else { return Ok(connection) };
        let is_local = matches!(self.host.as_str(), "localhost" | "127.0.0.1" | "::1");
        if !connection.is_encrypted() && !is_local {
            leave(connection);
            let told = "it wants a password and offers no encryption, and to another machine none is sent in the clear";
            return Err(MailError::Refused(told.into()));
        }
        match connection.auth(DEFAULT_MECHANISMS, credentials).await {
            Ok(_) => Ok(connection),
            Err(error) => {
                leave(connection);
                Err(refused(error))
            }
        }
    }

    /// Whether the server has a public address, or one that cannot be found out.
    async fn is_far_away(&self) -> bool {
        let found = lookup_host((self.host.as_str(), self.port)).await;
        found.map_or(true, |mut addresses| addresses.any(|address| outgoing::is_public(address.ip())))
    }

    /// Connects and announces a mail, up to the answer to DATA.
    async fn announce(&self, envelope: &Envelope, is_ascii: bool) -> Result<AsyncSmtpConnection, MailError> {
        let mut connection = self.connect().await?;
        match announce_on(&mut connection, envelope, is_ascii).await {
            Ok(()) => Ok(connection),
            Err(error) => {
                leave(connection);
                Err(error)
            }
        }
    }

    async fn send_now(&self, message: &Message) -> Result<(), MailError> {
        let email = self.email(message)?;
        let content = email.formatted();
        let connection = self.in_time(self.announce(email.envelope(), content.is_ascii())).await?;
        let handed_over = hand_over(connection, content, self.acceptance);
        match self.presumed_after {
            None => handed_over.await,
            Some(limit) => presumed(handed_over, limit).await,
        }
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
    let code = error.status().map(u16::from);
    let told = Told { text: error.to_string(), code: code.map(i64::from) };
    let is_about_login = code.is_some_and(|code| LOGIN_REPLIES.contains(&code));
    if error.is_permanent() && !is_about_login { MailError::Rejected(told) } else { MailError::Refused(told) }
}

/// TLS that trusts the authorities of the system, as all our requests to others do, and Mozilla's, which are there on a
/// system without any.
fn trusting_system(host: &str) -> Result<TlsParameters, lettre::transport::smtp::Error> {
    let builder = TlsParameters::builder(host.to_owned()).certificate_store(CertificateStore::WebpkiRoots);
    let authorities = outgoing::system_certificates();
    let builder = authorities.into_iter().try_fold(builder, |builder, authority| {
        Ok(builder.add_root_certificate(Certificate::from_der(authority.to_vec())?))
    });
    builder?.build()
}

async fn announce_on(
    connection: &mut AsyncSmtpConnection,
    envelope: &Envelope,
    is_ascii: bool,
) -> Result<(), MailError> {
    let mut parameters = Vec::new();
    let mut addresses = envelope.from().into_iter().chain(envelope.to());
    if !addresses.all(|address| AsRef::<str>::as_ref(address).is_ascii()) {
        require(connection, Extension::SmtpUtfEight, "SMTPUTF8, which the address needs")?;
        parameters.push(MailParameter::SmtpUtfEight);
    }
    if !is_ascii {
        require(connection, Extension::EightBitMime, "8BITMIME, which the content needs")?;
        parameters.push(MailParameter::Body(MailBodyParameter::EightBitMime));
    }
    connection.command(Mail::new(envelope.from().cloned(), parameters)).await.map_err(refused)?;
    for recipient in envelope.to() {
        connection.command(Rcpt::new(recipient.clone(), Vec::new())).await.map_err(refused)?;
    }
    connection.command(Data).await.map_err(refused)?;
    Ok(())
}

fn require(connection: &AsyncSmtpConnection, extension: Extension, what: &str) -> Result<(), MailError> {
    if connection.server_info().supports_feature(extension) {
        return Ok(());
    }
    Err(MailError::Refused(format!("it does not offer {what}").into()))
}

/// Sends the content of an announced mail. Once this is accepted, the mail is the server's.
async fn hand_over(mut connection: AsyncSmtpConnection, content: Vec<u8>, limit: Duration) -> Result<(), MailError> {
    let Ok(answer) = timeout(limit, connection.message(&content)).await else {
        return Err(MailError::Refused(format!("no answer to the content after {limit:?}").into()));
    };
    leave(connection);
    answer.map(drop).map_err(refused)
}

/// Says goodbye, for which nobody waits.
fn leave(mut connection: AsyncSmtpConnection) {
    tokio::spawn(async move {
        // The mail has been accepted or refused before.
        let _ = timeout(GOODBYE, connection.quit()).await;
    });
}

/// Waits for `handed_over` for `limit`, then takes it for successful while it goes on.
async fn presumed(
    handed_over: impl Future<Output = Result<(), MailError>> + Send + 'static,
    limit: Duration,
) -> Result<(), MailError> {
    let mut task = tokio::spawn(handed_over);
    match timeout(limit, &mut task).await {
        Ok(Ok(outcome)) => return outcome,
        Ok(Err(error)) => return Err(MailError::Refused(error.to_string().into())),
        Err(_) => {}
    }
    tracing::warn!(?limit, "a mail counts as sent, although the mail server has not accepted it yet");
    tokio::spawn(async move {
        if let Ok(Err(error)) = task.await {
            tracing::error!(outcome = error.outline(), "a mail that counted as sent was refused");
        }
    });
    Ok(())
}

impl Sender for Smtp {
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), MailError>> {
        Box::pin(self.send_now(message))
    }

    fn rehearse(&self) -> BoxFuture<'_, Result<(), MailError>> {
        Box::pin(self.in_time(async {
            let mut connection = self.connect().await?;
            let is_alive = connection.test_connected().await;
            leave(connection);
            if is_alive { Ok(()) } else { Err(MailError::Refused("the connection was closed".into())) }
        }))
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
    async fn only_servers_with_public_addresses_are_far_away() {
        for (host, is_far) in [
            ("8.8.8.8", true),
            ("127.0.0.2", false),
            ("10.1.2.3", false),
            ("fd00::1", false),
            ("nowhere.invalid", true),
        ] {
            let smtp = Smtp { host: host.to_owned(), ..smtp() };
            assert_eq!(smtp.is_far_away().await, is_far, "{host}");
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
