//! Takes mail by SMTP into the development inbox, as Mailpit does at `[local_smtp] smtp_port` of `supabase start`: for apps that send
//! mails of their own.
//!
//! [`Conversation`] is the protocol without a socket. Commands and data are read by `smtp-proto`; everything that a client sends is
//! bounded: lines by that crate, the rest by the constants below. Neither TLS nor logging in is offered.
//!
//! Reference: RFC 5321, RFC 1870 (SIZE), RFC 2920 (PIPELINING), RFC 2034 (status codes); axllent/mailpit `internal/smtpd`.

use std::borrow::Cow;
use std::net::TcpListener;
use std::slice::Iter;
use std::time::Duration;

use smtp_proto::request::receiver::{DataReceiver, DummyDataReceiver, DummyLineReceiver, RequestReceiver};
use smtp_proto::{Error, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::mime::{self, Envelope};
use super::{loopback_address, queries};
use crate::db::{Pool, replaced};

/// The largest mail, in bytes.
const MAX_MESSAGE: usize = 20 << 20;
/// The most recipients of one mail (RFC 5321, 4.5.3.1.8: at least 100).
const MAX_RECIPIENTS: usize = 100;
/// The most connections at once.
const MAX_CONNECTIONS: usize = 20;
/// The most refused commands before a connection is closed.
const MAX_REFUSALS: usize = 20;
/// How long a client may be silent.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a connection may last, however busy it is.
const CONNECTION_LIMIT: Duration = Duration::from_secs(600);
/// How long accepting pauses after a failure, e.g. if there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

const GREETING: &str = "220 localhost ESMTP Ferrobase inbox\r\n";

/// The running receiver.
pub struct Receiver {
    accepting: JoinHandle<()>,
}

impl Receiver {
    /// Takes mail on `listener`, which must be at a loopback address. Call from a Tokio runtime.
    pub fn spawn(listener: TcpListener, pool: Pool) -> std::io::Result<Self> {
        loopback_address(&listener)?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        Ok(Self { accepting: tokio::spawn(accept(listener, pool)) })
    }

    /// Closes the listener and all connections. Mails in transit were not confirmed, so their senders know.
    pub async fn stop(self) {
        self.accepting.abort();
        // It ends by being aborted.
        let _ = self.accepting.await;
    }
}

async fn accept(listener: tokio::net::TcpListener, pool: Pool) {
    // Dropped with this task, and with it the connections.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() < MAX_CONNECTIONS => {
                    connections.spawn(serve(stream, pool.clone()));
                }
                Ok((stream, _)) => {
                    // The socket's empty buffer takes a line at once.
                    let _ = stream.try_write(b"421 4.3.2 Too many connections\r\n");
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection to the inbox cannot be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn serve(stream: TcpStream, pool: Pool) {
    match timeout(CONNECTION_LIMIT, converse(stream, &pool)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection to the inbox broke off"),
        Err(_) => tracing::debug!("a connection to the inbox lasted too long"),
    }
}

async fn converse(mut stream: TcpStream, pool: &Pool) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(GREETING.as_bytes()).await?;
    let mut conversation = Conversation::default();
    let mut buffer = vec![0; 16 << 10];
    loop {
        let Ok(read) = timeout(IDLE_TIMEOUT, stream.read(&mut buffer)).await else {
            return stream.write_all(b"421 4.4.2 Timeout\r\n").await;
        };
        let read = read?;
        if read == 0 {
            return Ok(());
        }
        let mut bytes = buffer[..read].iter();
        // Of pipelined commands the answers go out together.
        let mut answers = String::new();
        while let Some(answer) = conversation.ingest(&mut bytes) {
            match answer {
                Answer::Line(line) => answers.push_str(&line),
                Answer::Mail(envelope) => answers.push_str(&keep(pool, envelope).await),
                Answer::Close(line) => {
                    answers.push_str(&line);
                    return stream.write_all(answers.as_bytes()).await;
                }
            }
        }
        if !answers.is_empty() {
            // A client that reads no answers must not hold the connection.
            timeout(IDLE_TIMEOUT, stream.write_all(answers.as_bytes())).await??;
        }
    }
}

/// Puts a mail into the inbox. Yields the answer.
async fn keep(pool: &Pool, envelope: Envelope) -> Cow<'static, str> {
    // Large ones take a while.
    let Ok(received) = tokio::task::spawn_blocking(move || mime::read(envelope)).await else {
        return "451 4.3.0 The mail cannot be read\r\n".into();
    };
    let _held = replaced::hold().await;
    match queries::insert_received(pool, &received).await {
        Ok(id) => format!("250 2.0.0 Ok: queued as {id}\r\n").into(),
        Err(error) => {
            tracing::warn!(%error, "a mail cannot be put into the inbox");
            "451 4.3.0 The mail cannot be stored\r\n".into()
        }
    }
}

/// What a client hears.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Line(Cow<'static, str>),
    /// The mail has arrived; the answer depends on whether it can be kept.
    Mail(Envelope),
    /// The last line of the connection.
    Close(Cow<'static, str>),
}

/// The protocol of one connection.
#[derive(Default)]
struct Conversation {
    stage: Stage,
    has_greeted: bool,
    /// Of the current mail.
    sender: Option<String>,
    recipients: Vec<String>,
    refusals: usize,
}

/// What the next bytes are.
enum Stage {
    Commands(RequestReceiver),
    /// The rest of a line that is too long.
    LongLine(DummyLineReceiver),
    Data(DataReceiver, Vec<u8>),
    /// The rest of a mail that is too large.
    LargeData(DummyDataReceiver),
}

impl Default for Stage {
    fn default() -> Self {
        Self::Commands(RequestReceiver::default())
    }
}

impl Conversation {
    /// Reads until there is something to answer; `None` if more bytes are needed.
    fn ingest(&mut self, bytes: &mut Iter<'_, u8>) -> Option<Answer> {
        loop {
            match &mut self.stage {
                Stage::Commands(receiver) => match receiver.ingest(bytes) {
                    Ok(request) => {
                        let request = request.into_owned();
                        return Some(self.answer(request));
                    }
                    Err(Error::NeedsMoreData { .. }) => return None,
                    Err(Error::ResponseTooLong) => self.stage = Stage::LongLine(DummyLineReceiver::default()),
                    Err(error) => return Some(self.refuse_syntax(&error)),
                },
                Stage::LongLine(receiver) => {
                    if !receiver.ingest(bytes) {
                        return None;
                    }
                    self.stage = Stage::default();
                    return Some(self.refuse("500 5.5.2 The line is too long\r\n"));
                }
                Stage::Data(receiver, source) => {
                    let is_complete = receiver.ingest(bytes, source);
                    if source.len() <= MAX_MESSAGE {
                        if !is_complete {
                            return None;
                        }
                        let source = std::mem::take(source);
                        self.stage = Stage::default();
                        let sender = self.sender.take().unwrap_or_default();
                        let recipients = std::mem::take(&mut self.recipients);
                        return Some(Answer::Mail(Envelope { sender, recipients, source }));
                    }
                    if is_complete {
                        return Some(self.too_large());
                    }
                    self.stage = Stage::LargeData(DummyDataReceiver::new_data(receiver));
                }
                Stage::LargeData(receiver) => {
                    if !receiver.ingest(bytes) {
                        return None;
                    }
                    return Some(self.too_large());
                }
            }
        }
    }

    fn answer(&mut self, request: Request<String>) -> Answer {
        match request {
            Request::Ehlo { .. } => {
                self.begin();
                let extensions =
                    "250-localhost\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-ENHANCEDSTATUSCODES";
                Answer::Line(format!("{extensions}\r\n250 SIZE {MAX_MESSAGE}\r\n").into())
            }
            Request::Helo { .. } => {
                self.begin();
                Answer::Line("250 localhost\r\n".into())
            }
            Request::Mail { from } => {
                if !self.has_greeted {
                    return self.refuse("503 5.5.1 Say EHLO first\r\n");
                }
                if self.sender.is_some() {
                    return self.refuse("503 5.5.1 A mail has begun already\r\n");
                }
                if from.size > MAX_MESSAGE {
                    return self.refuse("552 5.3.4 The mail is too large\r\n");
                }
                self.sender = Some(from.address);
                Answer::Line("250 2.1.0 Ok\r\n".into())
            }
            Request::Rcpt { to } => {
                if self.sender.is_none() {
                    return self.refuse("503 5.5.1 MAIL FROM comes first\r\n");
                }
                if self.recipients.len() >= MAX_RECIPIENTS {
                    return self.refuse("452 4.5.3 Too many recipients\r\n");
                }
                self.recipients.push(to.address);
                Answer::Line("250 2.1.5 Ok\r\n".into())
            }
            Request::Data => {
                if self.recipients.is_empty() {
                    return self.refuse("503 5.5.1 RCPT TO comes first\r\n");
                }
                let (mut receiver, mut source) = (DataReceiver::new(), Vec::new());
                // The end of the command's line belongs to the mark of the end (RFC 5321, 4.1.1.4): so an empty mail ends, too.
                receiver.ingest(&mut b"\r\n".iter(), &mut source);
                source.clear();
                self.stage = Stage::Data(receiver, source);
                Answer::Line("354 End with a dot on a line of its own\r\n".into())
            }
            Request::Rset => {
                self.forget();
                Answer::Line("250 2.0.0 Ok\r\n".into())
            }
            Request::Noop { .. } => Answer::Line("250 2.0.0 Ok\r\n".into()),
            Request::Vrfy { .. } => Answer::Line("252 2.5.0 Send it and see the inbox\r\n".into()),
            Request::Help { .. } => Answer::Line("214 2.0.0 Mails to anybody end in the inbox\r\n".into()),
            Request::Quit => Answer::Close("221 2.0.0 Bye\r\n".into()),
            Request::Lhlo { .. }
            | Request::Bdat { .. }
            | Request::Auth { .. }
            | Request::Expn { .. }
            | Request::Etrn { .. }
            | Request::Atrn { .. }
            | Request::Burl { .. }
            | Request::StartTls => self.refuse("502 5.5.1 The inbox does not have this command\r\n"),
        }
    }

    fn begin(&mut self) {
        self.has_greeted = true;
        self.forget();
    }

    /// Ends the current mail.
    fn forget(&mut self) {
        self.sender = None;
        self.recipients.clear();
    }

    fn too_large(&mut self) -> Answer {
        self.stage = Stage::default();
        self.forget();
        self.refuse("552 5.3.4 The mail is too large\r\n")
    }

    fn refuse_syntax(&mut self, error: &Error) -> Answer {
        match error {
            // A page in the developer's browser could send a form here, with commands in its fields.
            Error::UnknownCommand if !self.has_greeted => Answer::Close("421 5.5.1 This is SMTP\r\n".into()),
            Error::UnknownCommand => self.refuse("500 5.5.1 There is no such command\r\n"),
            Error::InvalidSenderAddress => self.refuse("553 5.1.7 The sender's address is not valid\r\n"),
            Error::InvalidRecipientAddress => self.refuse("553 5.1.3 The recipient's address is not valid\r\n"),
            Error::SyntaxError { syntax } => self.refuse(format!("501 5.5.4 Write {syntax}\r\n")),
            Error::InvalidParameter { .. } => self.refuse("501 5.5.4 A parameter is not valid\r\n"),
            Error::UnsupportedParameter { .. } => self.refuse("555 5.5.4 There is no such parameter\r\n"),
            Error::NeedsMoreData { .. } | Error::ResponseTooLong | Error::InvalidResponse { .. } => {
                self.refuse("500 5.5.2 The command cannot be read\r\n")
            }
        }
    }

    fn refuse(&mut self, line: impl Into<Cow<'static, str>>) -> Answer {
        self.refusals += 1;
        if self.refusals > MAX_REFUSALS {
            return Answer::Close("421 4.7.0 Too many refused commands\r\n".into());
        }
        Answer::Line(line.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `text` in pieces of `size` bytes. Yields the mails, and the answers, of whose lines only the codes are kept.
    fn converse(text: &[u8], size: usize) -> (Vec<Envelope>, Vec<String>) {
        let mut conversation = Conversation::default();
        let (mut mails, mut codes) = (Vec::new(), Vec::new());
        for piece in text.chunks(size) {
            let mut bytes = piece.iter();
            while let Some(answer) = conversation.ingest(&mut bytes) {
                match answer {
                    Answer::Line(line) => codes.push(line[..3].to_owned()),
                    Answer::Mail(mail) => {
                        mails.push(mail);
                        codes.push("mail".to_owned());
                    }
                    Answer::Close(line) => {
                        codes.push(format!("{} closed", &line[..3]));
                        return (mails, codes);
                    }
                }
            }
        }
        (mails, codes)
    }

    const ENVELOPE: &str = "EHLO me\r\nMAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA\r\n";

    #[test]
    fn a_mail_is_the_same_however_it_is_split() {
        let text = "EHLO me\r\nmail from:<a@x.example> SIZE=100 BODY=8BITMIME\r\nRCPT TO:<b@x.example>\r\nRCPT TO:<C@x.example>\r\n\
                    DATA\r\nSubject: Hello\r\n\r\n..a dot\r\n.\r\nRSET\r\nMAIL FROM:<>\r\nRCPT TO:<b@x.example>\r\nDATA\r\n.\r\nQUIT\r\n";
        for size in [1, 2, 3, 7, 64, 4096] {
            let (mails, codes) = converse(text.as_bytes(), size);
            let of = |sender: &str, recipients: &[&str], source: &str| Envelope {
                sender: sender.to_owned(),
                recipients: recipients.iter().map(|address| (*address).to_owned()).collect(),
                source: source.into(),
            };
            let expected = [
                of("a@x.example", &["b@x.example", "C@x.example"], "Subject: Hello\r\n\r\n.a dot\r\n"),
                of("", &["b@x.example"], ""),
            ];
            assert_eq!(mails, expected, "{size}");
            let expected = "250 250 250 250 354 mail 250 250 250 354 mail 221 closed";
            assert_eq!(codes.join(" "), expected, "{size}");
        }
    }

    #[test]
    fn only_a_dot_on_a_line_of_its_own_ends_a_mail() {
        // Other servers take some of these for the end, and what follows for commands.
        for end in ["\n.\n", "\n.\r\n", "\r.\r", "\r\n.\n", "\r\n. \r\n"] {
            let text = format!("{ENVELOPE}one{end}MAIL FROM:<evil@x.example>\r\n.\r\n");
            let (mails, codes) = converse(text.as_bytes(), 5);
            assert_eq!((mails.len(), codes.last().map(String::as_str)), (1, Some("mail")), "{end:?} {codes:?}");
            assert!(mails[0].source.ends_with(b"MAIL FROM:<evil@x.example>\r\n"), "{end:?}");
        }
        let (mails, _) = converse(format!("{ENVELOPE}..first\r\n.second\r\n.\r\n").as_bytes(), 64);
        assert_eq!(mails[0].source, b".first\r\nsecond\r\n");
    }

    #[test]
    fn commands_have_an_order() {
        for (text, expected) in [
            ("MAIL FROM:<a@x.example>\r\n", "503"),
            ("HELO me\r\nRCPT TO:<a@x.example>\r\n", "250 503"),
            ("HELO me\r\nMAIL FROM:<a@x.example>\r\nDATA\r\n", "250 250 503"),
            ("HELO me\r\nMAIL FROM:<a@x.example>\r\nMAIL FROM:<a@x.example>\r\n", "250 250 503"),
            ("HELO me\r\nMAIL FROM:<a@x.example>\r\nRSET\r\nRCPT TO:<b@x.example>\r\n", "250 250 250 503"),
            ("HELO me\r\nMAIL FROM:<a@x.example> SIZE=99999999999\r\n", "250 552"),
            ("HELO me\r\nMAIL FROM:<a b>\r\nMAIL FROM a@x.example\r\nRCPT\r\n", "250 553 501 501"),
            (
                "HELO me\r\nSTARTTLS\r\nAUTH PLAIN AGEAYg==\r\nVRFY ada\r\nNOOP\r\nHELP\r\nWHAT\r\n",
                "250 502 502 252 250 214 500",
            ),
        ] {
            assert_eq!(converse(text.as_bytes(), 1024).1.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn client_input_is_bounded() {
        let long = format!("EHLO me\r\nNOOP {}\r\nNOOP\r\n", "x".repeat(100_000));
        for size in [1000, 16 << 10] {
            assert_eq!(converse(long.as_bytes(), size).1, ["250", "500", "250"], "{size}");
        }
        let many = format!("EHLO me\r\nMAIL FROM:<>\r\n{}", "RCPT TO:<a@x.example>\r\n".repeat(MAX_RECIPIENTS + 1));
        assert_eq!(converse(many.as_bytes(), 4096).1.last().map(String::as_str), Some("452"));
        let large = format!("{ENVELOPE}{}.\r\nNOOP\r\n", "y\r\n".repeat(MAX_MESSAGE / 3 + 1));
        for size in [16 << 10, large.len()] {
            let (mails, codes) = converse(large.as_bytes(), size);
            assert_eq!((mails.len(), codes.join(" ")), (0, "250 250 250 354 552 250".to_owned()), "{size}");
        }
        let wrong = format!("EHLO me\r\n{}", "WHAT\r\n".repeat(MAX_REFUSALS + 5));
        let (_, codes) = converse(wrong.as_bytes(), 4096);
        assert_eq!((codes.len(), codes.last().map(String::as_str)), (MAX_REFUSALS + 2, Some("421 closed")));
    }

    #[test]
    fn a_web_form_is_not_accepted_as_mail() {
        let form = "POST / HTTP/1.1\r\nHost: 127.0.0.1:54325\r\n\r\nEHLO me\r\nMAIL FROM:<a@x.example>\r\n";
        assert_eq!(converse(form.as_bytes(), 1024).1, ["421 closed"]);
    }
}
