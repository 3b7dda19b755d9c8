//! `serve --only auth` as a process: required settings, listening, and mail over SMTP.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::auth::text;
use crate::auth::tokens::{claims_of, signed};
use crate::support::outside::{mail_server, slow_mail_server};
use crate::support::ports::free_port;
use crate::support::wire;
use crate::support::{PASSWORD, TestApp};

const REQUIRED: [(&str, &str); 4] = [
    ("GOTRUE_DB_DRIVER", "postgres"),
    ("GOTRUE_SITE_URL", "https://app.example"),
    ("GOTRUE_API_EXTERNAL_URL", "https://api.example"),
    ("GOTRUE_JWT_SECRET", "a secret of the drop-in, longer than thirty-two"),
];

/// The server; killed when dropped.
struct DropIn(Child);

impl DropIn {
    /// Waits until it answers.
    async fn ready(mut self, address: &str) -> Self {
        while std::net::TcpStream::connect(address).is_err() {
            assert!(self.0.try_wait().expect("a child").is_none(), "the server ended");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        self
    }
}

impl Drop for DropIn {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(settings: &[(&str, &str)]) -> DropIn {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ferrobase"));
    command.args(["serve", "--only", "auth"]).env_clear().envs(settings.iter().copied());
    DropIn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs"))
}

/// The error message of a server that does not start.
fn refusal(settings: &[(&str, &str)]) -> String {
    let mut server = start(settings);
    let mut said = String::new();
    server.0.stderr.take().expect("its output").read_to_string(&mut said).expect("text");
    assert!(!server.0.wait().expect("it ends").success(), "{said}");
    said
}

#[actix_web::test]
async fn mail_is_sent_with_the_configured_server_and_sender() {
    let app = TestApp::start().await;
    let (mail_port, mut received) = mail_server("250 ok").await;
    let mail_port = mail_port.to_string();
    let port = free_port().to_string();
    let headers = r#"{"X-Kind": ["$messageType"], "X-Tag": ["one", "", "$messageType"]}"#;
    let mut settings = REQUIRED.to_vec();
    settings.extend([
        ("GOTRUE_DB_DATABASE_URL", app.auth_url.as_str()),
        ("GOTRUE_DB_NAMESPACE", "auth"),
        ("GOTRUE_API_HOST", "127.0.0.1"),
        ("GOTRUE_API_PORT", &port),
        // One is enough, since no connection is held while mail is sent.
        ("GOTRUE_DB_MAX_POOL_SIZE", "1"),
        ("GOTRUE_SMTP_HOST", "127.0.0.1"),
        ("GOTRUE_SMTP_PORT", &mail_port),
        ("GOTRUE_SMTP_USER", "postman"),
        ("GOTRUE_SMTP_PASS", "letters"),
        ("GOTRUE_SMTP_ADMIN_EMAIL", "club@app.example"),
        ("GOTRUE_SMTP_SENDER_NAME", "The Club"),
        ("GOTRUE_SMTP_HEADERS", headers),
    ]);
    let address = format!("127.0.0.1:{port}");
    let _server = start(&settings).ready(&address).await;
    let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
    let body = json!({ "email": "ada@test.example", "password": PASSWORD }).to_string();
    let reply = wire::send(&address, "POST", "/signup", &headers, body.as_bytes()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let letter = received.recv().await.expect("a conversation");
    // "\0postman\0letters" in base64.
    for part in [
        "AUTH PLAIN AHBvc3RtYW4AbGV0dGVycw==",
        "MAIL FROM:<club@app.example>",
        "RCPT TO:<ada@test.example>",
        "From: \"The Club\" <club@app.example>",
        "X-Kind: confirm",
        "X-Tag: one, confirmation",
    ] {
        assert!(letter.contains(part), "{part} is not in\n{letter}");
    }
    assert!(letter.contains("https://api.example/verify?"), "the link of a drop-in\n{letter}");
    // The mailed token matches the stored one.
    let stored = "select confirmation_token from auth.users where email = 'ada@test.example'";
    let stored: String = app.owner.query_one(stored, &[]).await.expect("the user").get(0);
    assert!(letter.replace("=\n", "").contains(&stored), "{stored} is not in\n{letter}");
    assert!(received.try_recv().is_err(), "one mail");
}

/// Without `GOTRUE_JWT_AUD`, tokens have the audience `""`, which is not the same as none.
#[actix_web::test]
async fn a_drop_in_without_an_audience_accepts_its_own_tokens() {
    let app = TestApp::start().await;
    let port = free_port().to_string();
    let mut settings = REQUIRED.to_vec();
    settings.extend([
        ("GOTRUE_DB_DATABASE_URL", app.auth_url.as_str()),
        ("GOTRUE_API_HOST", "127.0.0.1"),
        ("PORT", &port),
        ("GOTRUE_MAILER_AUTOCONFIRM", "true"),
    ]);
    let address = format!("127.0.0.1:{port}");
    let _server = start(&settings).ready(&address).await;
    let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
    let body = json!({ "email": "ada@test.example", "password": PASSWORD }).to_string();
    let session = wire::send(&address, "POST", "/signup", &headers, body.as_bytes()).await;
    let session: Value = serde_json::from_slice(&session.body).expect("a session");
    let token = text(&session, "access_token");
    let claims = claims_of(token);
    assert_eq!(claims["aud"], json!(""));
    let user = async |token: &str| {
        let headers = [("Authorization".to_owned(), format!("Bearer {token}"))];
        wire::send(&address, "GET", "/user", &headers, b"").await
    };
    let own = user(token).await;
    assert_eq!(own.status, 200, "{}", own.text());
    let mut without = claims.clone();
    without.as_object_mut().expect("claims").remove("aud");
    let secret = REQUIRED.iter().find(|(name, _)| *name == "GOTRUE_JWT_SECRET").expect("a secret").1;
    let without = user(&signed(&json!({ "alg": "HS256" }), &without, secret)).await;
    assert_eq!(without.status, 400, "{}", without.text());
}

#[actix_web::test]
async fn a_drop_in_trusts_the_configured_proxies() {
    let app = TestApp::start().await;
    let forwarded = "203.0.113.6, 198.51.100.9:4711, 192.0.2.7";
    for (number, (name, value, client)) in [
        // As upstream: the directly connected client.
        ("FERROBASE_TRUSTED_HOPS", "0", "203.0.113.6"),
        ("FERROBASE_TRUSTED_HOPS", "1", "192.0.2.7"),
        ("FERROBASE_TRUSTED_HOPS", "2", "198.51.100.9"),
        ("FERROBASE_TRUSTED_PROXIES", "127.0.0.1,192.0.2.7", "198.51.100.9"),
        ("FERROBASE_TRUSTED_PROXIES", "192.0.2.7", "127.0.0.1"),
    ]
    .into_iter()
    .enumerate()
    {
        let port = free_port().to_string();
        let mut settings = REQUIRED.to_vec();
        settings.extend([
            ("GOTRUE_DB_DATABASE_URL", app.auth_url.as_str()),
            ("GOTRUE_API_HOST", "127.0.0.1"),
            ("PORT", &port),
            ("GOTRUE_MAILER_AUTOCONFIRM", "true"),
            (name, value),
        ]);
        let address = format!("127.0.0.1:{port}");
        let _server = start(&settings).ready(&address).await;
        let headers = [("Content-Type", "application/json"), ("X-Forwarded-For", forwarded)];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let email = format!("p{number}@test.example");
        let body = json!({ "email": email, "password": PASSWORD }).to_string();
        let reply = wire::send(&address, "POST", "/signup", &headers, body.as_bytes()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let session = "select host(s.ip) from auth.sessions s join auth.users u on u.id = s.user_id where u.email = $1";
        let seen: String = app.owner.query_one(session, &[&email]).await.expect("a session").get(0);
        assert_eq!(seen, client, "{name}={value}");
    }
}

/// A drop-in on the database of `app`, where `known@test.example` has a confirmed account; its SMTP server is at
/// `mail_port`.
async fn that_mails(app: &TestApp, mail_port: u16) -> (DropIn, String) {
    let (port, mail_port) = (free_port().to_string(), mail_port.to_string());
    let mut settings = REQUIRED.to_vec();
    settings.extend([
        ("GOTRUE_DB_DATABASE_URL", app.auth_url.as_str()),
        ("GOTRUE_API_HOST", "127.0.0.1"),
        ("PORT", &port),
        ("GOTRUE_JWT_AUD", "authenticated"),
        ("GOTRUE_SMTP_HOST", "127.0.0.1"),
        ("GOTRUE_SMTP_PORT", &mail_port),
        ("GOTRUE_SMTP_ADMIN_EMAIL", "club@app.example"),
        ("GOTRUE_SMTP_MAX_FREQUENCY", "1ns"),
    ]);
    let address = format!("127.0.0.1:{port}");
    (start(&settings).ready(&address).await, address)
}

async fn post(address: &str, path: &str, body: serde_json::Value) -> wire::Reply {
    let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
    wire::send(address, "POST", path, &headers, body.to_string().as_bytes()).await
}

/// Requests that send no mail but look like requests that do.
fn unmailed() -> [(&'static str, serde_json::Value); 4] {
    [
        ("/recover", json!({ "email": "unknown@test.example" })),
        ("/resend", json!({ "type": "signup", "email": "unknown@test.example" })),
        ("/resend", json!({ "type": "signup", "email": "known@test.example" })),
        ("/signup", json!({ "email": "known@test.example", "password": PASSWORD })),
    ]
}

#[actix_web::test]
async fn answers_without_mail_are_not_faster_than_those_with_mail() {
    let app = TestApp::start().await;
    app.user("known@test.example").await;
    let pause = std::time::Duration::from_millis(400);
    let (mail_port, mut received) = slow_mail_server(pause).await;
    let (_server, address) = that_mails(&app, mail_port).await;
    let reply = post(&address, "/recover", json!({ "email": "known@test.example" })).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(received.recv().await.is_some(), "one is mailed");
    for (path, body) in unmailed() {
        let begun = std::time::Instant::now();
        let reply = post(&address, path, body.clone()).await;
        assert_eq!(reply.status, 200, "{path} {body}: {}", reply.text());
        assert!(begun.elapsed() >= pause, "{path} {body}: {:?}", begun.elapsed());
    }
    assert!(received.try_recv().is_err(), "and nobody else");
}

#[actix_web::test]
async fn an_unreachable_mail_server_reveals_no_accounts() {
    let app = TestApp::start().await;
    app.user("known@test.example").await;
    let (_server, address) = that_mails(&app, free_port()).await;
    let shown = |reply: wire::Reply| {
        let body: Value = serde_json::from_slice(&reply.body).expect("JSON");
        (reply.status, text(&body, "error_code").to_owned(), text(&body, "msg").to_owned())
    };
    let known = shown(post(&address, "/recover", json!({ "email": "known@test.example" })).await);
    assert_eq!(known, (500, "unexpected_failure".to_owned(), "Error sending recovery email".to_owned()));
    let new = shown(post(&address, "/signup", json!({ "email": "new@test.example", "password": PASSWORD })).await);
    assert_eq!(new.2, "Error sending confirmation email");
    for (path, body) in unmailed() {
        let reply = shown(post(&address, path, body.clone()).await);
        assert_eq!(reply, if path == "/recover" { known.clone() } else { new.clone() }, "{path} {body}");
    }
}

#[test]
fn missing_settings_are_reported_at_startup() {
    for (index, (name, said)) in
        [("GOTRUE_SITE_URL", "GOTRUE_SITE_URL"), ("GOTRUE_API_EXTERNAL_URL", "API_EXTERNAL_URL")]
            .into_iter()
            .chain([("GOTRUE_JWT_SECRET", "GOTRUE_JWT_SECRET"), ("GOTRUE_DB_DATABASE_URL", "DATABASE_URL")])
            .enumerate()
    {
        let mut settings = REQUIRED.to_vec();
        settings.push(("GOTRUE_DB_DATABASE_URL", "postgresql://supabase_auth_admin@127.0.0.1:9/none"));
        settings.retain(|(known, _)| *known != name);
        let text = refusal(&settings);
        assert!(text.contains(&format!("{said} is not set")), "{index}: {text}");
    }
    let mut settings = REQUIRED.to_vec();
    settings.push(("GOTRUE_DB_DATABASE_URL", "postgresql://supabase_auth_admin@127.0.0.1:9/none"));
    settings.push(("GOTRUE_DB_NAMESPACE", "elsewhere"));
    assert!(refusal(&settings).contains("DB_NAMESPACE must be auth"));
}

#[actix_web::test]
async fn a_drop_in_answers_tunnel_requests_without_waiting_for_their_data() {
    let app = TestApp::start().await;
    let port = free_port().to_string();
    let mut settings = REQUIRED.to_vec();
    let own = [("GOTRUE_DB_DATABASE_URL", app.auth_url.as_str()), ("GOTRUE_API_HOST", "127.0.0.1"), ("PORT", &port)];
    settings.extend(own);
    let address = format!("127.0.0.1:{port}");
    let _server = start(&settings).ready(&address).await;
    let login = r#"{"email": "a@test.example", "password": "x"}"#;
    let length = format!("Content-Length: {}\r\n", login.len());
    for (line, headers, body, status) in [
        ("GET /health", wire::UPGRADE.to_owned(), "", 200),
        ("GET /nothing", wire::UPGRADE.to_owned(), "", 404),
        ("POST /token?grant_type=password", format!("{length}{}", wire::UPGRADE), login, 400),
        ("CONNECT /health", String::new(), "", 405),
        ("CONNECT sky.example:443", String::new(), "", 404),
    ] {
        let reply = wire::tunnel(&address, &format!("{line}\r\n{headers}"), body).await;
        assert_eq!(reply.status, status, "{line}: {}", reply.text());
    }
}
