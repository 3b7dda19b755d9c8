//! Simulated outside servers.

use std::sync::Arc;
use std::time::Duration;

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_rustls::TlsAcceptor;

/// Answers every request, given its head and body, for as long as the test runs. Returns the base URL.
pub fn serve<F, A>(answer: F) -> String
where
    F: Fn(HttpRequest, String) -> A + Clone + Send + 'static,
    A: Future<Output = HttpResponse> + 'static,
{
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("free port");
    let base = format!("http://{}", listener.local_addr().expect("address"));
    let app = move || App::new().default_service(web::to(answer.clone()));
    let server = HttpServer::new(app).workers(1).disable_signals().listen(listener).expect("listening").run();
    actix_web::rt::spawn(server);
    base
}

/// [`serve`] on a thread of its own, for tests that block theirs, or that have no runtime of actix.
pub fn serve_apart<F, A>(answer: F) -> String
where
    F: Fn(HttpRequest, String) -> A + Clone + Send + 'static,
    A: Future<Output = HttpResponse> + 'static,
{
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        actix_web::rt::System::new().block_on(async move {
            tell.send(serve(answer)).expect("somebody waits");
            std::future::pending::<()>().await;
        });
    });
    told.recv().expect("its address")
}

/// The certificate authority of [`secure`].
pub const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/tls/authority.pem");

/// TLS with the certificate of this machine.
fn acceptor() -> TlsAcceptor {
    let server = CertificateDer::from_pem_slice(include_bytes!("tls/server.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).expect("a key");
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![server], key)
        .expect("they belong together");
    TlsAcceptor::from(Arc::new(config))
}

/// A TLS proxy to `base`. Returns its base URL.
pub fn secure(base: &str) -> String {
    let acceptor = acceptor();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("free port");
    listener.set_nonblocking(true).expect("asked without waiting");
    let address = listener.local_addr().expect("address");
    let listener = tokio::net::TcpListener::from_std(listener).expect("listening");
    let inside = base.trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, inside) = (acceptor.clone(), inside.clone());
            tokio::spawn(async move {
                let (Ok(mut outer), Ok(mut inner)) =
                    futures_util::join!(acceptor.accept(stream), TcpStream::connect(inside))
                else {
                    return;
                };
                // Either side may close the connection.
                let _ = tokio::io::copy_bidirectional(&mut outer, &mut inner).await;
            });
        }
    });
    format!("https://{address}")
}

/// A mail server that accepts any login and every mail, unless its fields say otherwise.
#[derive(Clone, Copy)]
pub struct MailServer {
    pub address: &'static str,
    /// The answer to each recipient.
    pub recipient: &'static str,
    /// The last line of the answer to EHLO.
    pub extension: &'static str,
    /// Whether it first offers STARTTLS, and only that.
    pub is_encrypted: bool,
    /// Before a mail's content is answered.
    pub pause: Duration,
    pub answers_quit: bool,
}

impl Default for MailServer {
    fn default() -> Self {
        Self {
            address: "127.0.0.1",
            recipient: "250 ok",
            extension: "AUTH PLAIN",
            is_encrypted: false,
            pause: Duration::ZERO,
            answers_quit: true,
        }
    }
}

/// A connection, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl MailServer {
    /// Returns its port, and what each client sent up to the end of each mail.
    pub async fn run(self) -> (u16, UnboundedReceiver<String>) {
        let listener = tokio::net::TcpListener::bind((self.address, 0)).await.expect("a port");
        let port = listener.local_addr().expect("address").port();
        let (deliver, received) = unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(self.converse(Box::new(stream), deliver.clone()));
            }
        });
        (port, received)
    }

    async fn converse(self, stream: Box<dyn Stream>, deliver: UnboundedSender<String>) {
        let mut stream = BufReader::new(stream);
        let (mut in_data, mut is_plain, mut heard) = (false, self.is_encrypted, String::new());
        let mut answer = "220 test".to_owned();
        loop {
            if !answer.is_empty() && stream.write_all(format!("{answer}\r\n").as_bytes()).await.is_err() {
                return;
            }
            let mut line = String::new();
            if stream.flush().await.is_err() || stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim_end_matches(['\r', '\n']);
            heard.push_str(line);
            heard.push('\n');
            answer = match line {
                "." if in_data => {
                    in_data = false;
                    tokio::time::sleep(self.pause).await;
                    let _ = deliver.send(std::mem::take(&mut heard));
                    "250 taken".to_owned()
                }
                _ if in_data => String::new(),
                "DATA" => {
                    in_data = true;
                    "354 go on".to_owned()
                }
                "QUIT" if self.answers_quit => "221 bye".to_owned(),
                "QUIT" => String::new(),
                "STARTTLS" if is_plain => {
                    if stream.write_all(b"220 go\r\n").await.is_err() {
                        return;
                    }
                    let Ok(encrypted) = acceptor().accept(stream.into_inner()).await else { return };
                    stream = BufReader::new(Box::new(encrypted));
                    is_plain = false;
                    String::new()
                }
                hello if hello.starts_with("EHLO") => {
                    format!("250-test\r\n250 {}", if is_plain { "STARTTLS" } else { self.extension })
                }
                login if login.starts_with("AUTH") => "235 welcome".to_owned(),
                to if to.starts_with("RCPT TO:") => self.recipient.to_owned(),
                _ => "250 ok".to_owned(),
            };
        }
    }
}

/// A mail server that answers `recipient` to each recipient.
pub async fn mail_server(recipient: &'static str) -> (u16, UnboundedReceiver<String>) {
    MailServer { recipient, ..MailServer::default() }.run().await
}

/// A mail server that is slow to accept a mail's content.
pub async fn slow_mail_server(pause: Duration) -> (u16, UnboundedReceiver<String>) {
    MailServer { pause, ..MailServer::default() }.run().await
}
