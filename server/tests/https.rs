//! HTTPS by the server itself: certificates from files, HTTP/2, WebSockets, and the way there from HTTP.

#![cfg(feature = "https")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair, SerialNumber};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::support::TestApp;
use crate::support::ports::free_port;
use crate::support::valve::until;

/// An authority, and a folder with a certificate that it gave.
struct House {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    root: Certificate,
    port: u16,
}

impl House {
    fn new(name: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = std::env::temp_dir().join(format!("ferrobase-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let root = params.self_signed(&key).expect("a root");
        let house = Self { folder, issuer: Issuer::new(params, key), root, port: free_port() };
        house.renew(1);
        house
    }

    fn chain(&self) -> PathBuf {
        self.folder.join("chain.pem")
    }

    fn key(&self) -> PathBuf {
        self.folder.join("key.pem")
    }

    /// A certificate and its key, as PEM.
    fn certificate(&self, serial: u64) -> (String, String) {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &self.issuer).expect("signed").pem(), key.serialize_pem())
    }

    fn renew(&self, serial: u64) {
        let (chain, key) = self.certificate(serial);
        put(&self.chain(), &chain);
        put(&self.key(), &key);
    }

    async fn app(&self, more: &[(&str, &str)]) -> TestApp {
        let (listen, chain, key) = (format!("127.0.0.1:{}", self.port), self.chain(), self.key());
        let mut settings = vec![
            ("FERROBASE_TLS_LISTEN", &*listen),
            ("FERROBASE_TLS_CERT", chain.to_str().expect("text")),
            ("FERROBASE_TLS_KEY", key.to_str().expect("text")),
        ];
        settings.extend_from_slice(more);
        TestApp::with_settings(&settings).await
    }

    async fn connect(&self, protocols: &[&str]) -> TlsStream<TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.root.der().clone()).expect("a root");
        let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let stream = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], self.port))).await.expect("a connection");
        let name = ServerName::try_from("localhost").expect("a name");
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("a handshake")
    }

    /// The serial number of the certificate in use.
    async fn serial(&self) -> Vec<u8> {
        use x509_cert::der::Decode as _;
        let stream = self.connect(&[]).await;
        let chain = stream.get_ref().1.peer_certificates().expect("a certificate").to_vec();
        let certificate = x509_cert::Certificate::from_der(&chain[0]).expect("readable");
        certificate.tbs_certificate.serial_number.as_bytes().to_vec()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Replaces a file as tools that renew certificates do.
fn put(path: &Path, text: &str) {
    let partial = path.with_extension("partial");
    std::fs::write(&partial, text).expect("written");
    std::fs::rename(partial, path).expect("replaced");
}

/// A request as HTTP/1.1, and the whole answer.
async fn http1(mut stream: TlsStream<TcpStream>, head: &str) -> String {
    stream.write_all(format!("{head}\r\nconnection: close\r\n\r\n").as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

type Http2 = h2::client::SendRequest<Bytes>;

async fn http2(house: &House) -> Http2 {
    let stream = house.connect(&["h2", "http/1.1"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    tokio::spawn(connection);
    client.ready().await.expect("ready")
}

async fn ask(client: &Http2, method: &str, path: &str, key: &str, body: Option<&Value>) -> (u16, Value) {
    let request = http_0_2::Request::builder().method(method).uri(format!("https://localhost{path}"));
    let request = request.header("apikey", key).header("content-type", "application/json").body(()).expect("a request");
    let mut client = client.clone().ready().await.expect("ready");
    let (answer, mut sending) = client.send_request(request, body.is_none()).expect("sent");
    if let Some(body) = body {
        sending.send_data(body.to_string().into(), true).expect("sent");
    }
    let answer = answer.await.expect("an answer");
    let status = answer.status().as_u16();
    let mut body = answer.into_body();
    let mut bytes = Vec::new();
    while let Some(part) = body.data().await {
        let part = part.expect("a part");
        let _ = body.flow_control().release_capacity(part.len());
        bytes.extend_from_slice(&part);
    }
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

#[actix_web::test]
async fn every_protocol_works_over_tls() {
    let house = House::new("https-protocols");
    let app = house.app(&[]).await;
    let key = app.anon_key.clone();

    let stream = house.connect(&["http/1.1"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let answer = http1(stream, "GET /health HTTP/1.1\r\nhost: localhost").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.to_lowercase().contains("strict-transport-security: max-age=31536000\r\n"), "{answer}");
    // Targets that are not escaped pass here as well.
    let head = format!("GET /auth/v1/settings?x=\"y\" HTTP/1.1\r\nhost: localhost\r\napikey: {key}");
    let answer = http1(house.connect(&[]).await, &head).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");

    let client = http2(&house).await;
    let (status, body) = ask(&client, "GET", "/auth/v1/settings?a=b", &key, None).await;
    assert_eq!((status, body["disable_signup"].clone()), (200, json!(false)));
    let bucket = json!({ "id": "over-http2", "name": "over-http2" });
    let (status, body) = ask(&client, "POST", "/storage/v1/bucket", &app.service_key, Some(&bucket)).await;
    assert_eq!((status, body), (200, json!({ "name": "over-http2" })));
    // Many requests at a time on one connection, and more than it may have.
    let many = (0..20).map(|_| ask(&client, "GET", "/rest/v1/", &app.service_key, None));
    for (status, _) in futures_util::future::join_all(many).await {
        assert_eq!(status, 200);
    }

    let mut request =
        format!("wss://localhost/realtime/v1/websocket?apikey={key}&vsn=1.0.0").into_client_request().expect("a URL");
    request.headers_mut().insert("host", "localhost".parse().expect("a name"));
    let (mut socket, answer) =
        tokio_tungstenite::client_async(request, house.connect(&["http/1.1"]).await).await.expect("a socket");
    assert_eq!(answer.status().as_u16(), 101);
    use futures_util::{SinkExt as _, StreamExt as _};
    let beat = json!({ "topic": "phoenix", "event": "heartbeat", "payload": {}, "ref": "1" }).to_string();
    socket.send(beat.into()).await.expect("sent");
    let heard =
        tokio::time::timeout(Duration::from_secs(10), socket.next()).await.expect("in time").expect("a message");
    assert!(heard.expect("a message").to_text().expect("text").contains("phx_reply"));

    // What is no TLS is closed.
    let mut plain = TcpStream::connect(("127.0.0.1", house.port)).await.expect("a connection");
    plain.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("sent");
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[actix_web::test]
async fn concurrent_requests_per_connection_are_limited() {
    let house = House::new("https-streams");
    let app = house.app(&[]).await;
    let client = http2(&house).await;
    let mut open = Vec::new();
    // Their bodies never come.
    for _ in 0..128 {
        let request = http_0_2::Request::builder().method("POST").uri("https://localhost/auth/v1/signup");
        let request = request.header("apikey", &app.anon_key).body(()).expect("a request");
        let mut client = client.clone().ready().await.expect("ready");
        open.push(client.send_request(request, false).expect("sent"));
    }
    let another = async || {
        let request = http_0_2::Request::builder().uri("https://localhost/auth/v1/settings");
        let request = request.header("apikey", &app.anon_key).body(()).expect("a request");
        let mut client = client.clone().ready().await.expect("ready");
        client.send_request(request, true).expect("sent").0.await
    };
    let refused = another().await.expect_err("there is no room").reason();
    assert_eq!(refused, Some(h2::Reason::REFUSED_STREAM), "a client may send it again");
    drop(open);
    until("there is room again", async || another().await.is_ok_and(|answer| answer.status() == 200)).await;
}

/// How many sessions of the test's own database sleep.
async fn sleeping(app: &TestApp) -> i64 {
    let sql = "select count(*) from pg_stat_activity where datname = current_database() and query like '%sleeps%' \
               and state = 'active' and pid <> pg_backend_pid()";
    app.owner.query_one(sql, &[]).await.expect("the activity").get(0)
}

/// They ran to their end: only HTTP/1.1 noticed.
#[actix_web::test]
async fn requests_reset_over_http2_are_cancelled() {
    let house = House::new("https-given-up");
    let app = house.app(&[]).await;
    let slow = "create function public.sleeps() returns void language sql as 'select pg_sleep(60)'; notify pgrst, 'reload schema'";
    app.owner.batch_execute(slow).await.expect("a slow function");
    #[allow(clippy::async_yields_async, reason = "the answer is not waited for")]
    let begin = async |client: &Http2| {
        let request = http_0_2::Request::builder().method("POST").uri("https://localhost/rest/v1/rpc/sleeps");
        let request = request.header("apikey", &app.service_key).body(()).expect("a request");
        client.clone().ready().await.expect("ready").send_request(request, true).expect("sent").0
    };
    let client = http2(&house).await;
    let mut given_up = begin(&client).await;
    until("the function is known and runs", async || {
        if futures_util::poll!(&mut given_up).is_ready() {
            given_up = begin(&client).await;
        }
        sleeping(&app).await == 1
    })
    .await;
    drop(given_up);
    until("the statement is cancelled", async || sleeping(&app).await == 0).await;
    assert_eq!(ask(&client, "GET", "/auth/v1/settings", &app.anon_key, None).await.0, 200, "the connection stays");

    let stream = house.connect(&["h2"]).await;
    let (client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let _under_way = begin(&client).await;
    until("the function runs", async || sleeping(&app).await == 1).await;
    connection.abort();
    until("the statement is cancelled", async || sleeping(&app).await == 0).await;
}

/// Beginning and resetting a request costs the server more than the client ("rapid reset").
#[actix_web::test]
async fn a_client_that_only_resets_requests_is_disconnected() {
    /// Two batches are fewer than a connection may have at a time.
    const BATCH: usize = 60;
    let house = House::new("https-resets");
    let app = house.app(&[]).await;
    let (client, connection) = h2::client::handshake(house.connect(&["h2"]).await).await.expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let send = async |method: &str, path: &str, is_whole: bool| {
        let request = http_0_2::Request::builder().method(method).uri(format!("https://localhost{path}"));
        let request = request.header("apikey", &app.anon_key).body(()).expect("a request");
        client.clone().ready().await?.send_request(request, is_whole)
    };
    // Their bodies never come. Once the last request is answered, the server has begun all of them.
    let give_up = async || {
        let mut open = Vec::new();
        for _ in 0..BATCH {
            open.push(send("POST", "/auth/v1/signup", false).await?);
        }
        let answer = send("GET", "/auth/v1/settings", true).await?.0.await?;
        Ok::<_, h2::Error>(answer.status().as_u16())
    };
    let mut given_up = 0;
    let error = loop {
        match give_up().await {
            Ok(status) => assert_eq!(status, 200, "after {given_up}"),
            Err(error) => break error,
        }
        given_up += BATCH;
        assert!(given_up < 20_000, "it goes on for ever");
    };
    assert!(given_up > 1000, "browsers may leave a page, again and again: {given_up}, {error}");
    // What the client still sends while the server closes the connection resets it, and then the reason is lost.
    let farewell = connection.await.expect("a task").expect_err("the server has ended it");
    assert!(farewell.is_io() || (farewell.is_go_away() && farewell.is_remote()), "{farewell:?}");
    assert!(farewell.is_io() || farewell.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM), "{farewell:?}");

    let other = http2(&house).await;
    assert_eq!(ask(&other, "GET", "/auth/v1/settings", &app.anon_key, None).await.0, 200, "only that connection");
}

#[actix_web::test]
async fn http_redirects_to_https_if_configured() {
    let house = House::new("https-redirect");
    let app = house.app(&[("FERROBASE_TLS_REDIRECT", "true"), ("FERROBASE_TLS_HSTS", "0")]).await;
    let asked = app.plain(reqwest::Method::POST, "/rest/v1/x?a=eq.1").header("host", "localhost");
    let answer = asked.send().await.expect("an answer");
    let location = answer.headers().get("location").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let expected = format!("https://localhost:{}/rest/v1/x?a=eq.1", house.port);
    assert_eq!((answer.status().as_u16(), location), (308, Some(expected)));
    // Edge functions of this server do too, at an address that no certificate is for.
    let own = app.plain(reqwest::Method::POST, "/rest/v1/x?a=eq.1").send().await.expect("an answer");
    assert_eq!(own.status().as_u16(), 401);
    // Load balancers ask as they can.
    let health = app.plain(reqwest::Method::GET, "/health").send().await.expect("an answer");
    assert_eq!(health.status().as_u16(), 200);
    assert!(!health.headers().contains_key("strict-transport-security"));
    let answer = http1(house.connect(&[]).await, "GET /health HTTP/1.1\r\nhost: localhost").await;
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && !answer.to_lowercase().contains("strict-transport"),
        "{answer}"
    );
}

#[actix_web::test]
async fn a_renewed_certificate_is_used_without_a_restart() {
    let house = House::new("https-renewed");
    let app = house.app(&[]).await;
    assert_eq!(house.serial().await, [1]);
    let before = http2(&house).await;
    // One of two, as a tool that renews them may leave it for a moment: they do not fit.
    let (chain, key) = house.certificate(2);
    put(&house.chain(), &chain);
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(house.serial().await, [1], "the old one stays");
    put(&house.key(), &key);
    until("the new certificate is used", async || house.serial().await == [2]).await;
    assert_eq!(ask(&before, "GET", "/auth/v1/settings", &app.anon_key, None).await.0, 200, "connections stay");
}
