//! `serve --only auth` as a process: what it needs to start, where it listens, and mail through a server of mails.

use std::io::Read as _;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::support::outside::mail_server;
use crate::support::{PASSWORD, TestApp};
use crate::wire;

const REQUIRED: [(&str, &str); 4] = [
    ("GOTRUE_DB_DRIVER", "postgres"),
    ("GOTRUE_SITE_URL", "https://app.example"),
    ("GOTRUE_API_EXTERNAL_URL", "https://api.example"),
    ("GOTRUE_JWT_SECRET", "a secret of the drop-in, longer than thirty-two"),
];

/// The server, ended with this value.
struct DropIn(Child);

impl DropIn {
    /// Once it answers.
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
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(settings: &[(&str, &str)]) -> DropIn {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ferrobase"));
    command.args(["serve", "--only", "auth"]).env_clear().envs(settings.iter().copied());
    DropIn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs"))
}

/// What a server that does not start says.
fn refusal(settings: &[(&str, &str)]) -> String {
    let mut server = start(settings);
    let mut said = String::new();
    server.0.stderr.take().expect("its output").read_to_string(&mut said).expect("text");
    assert!(!server.0.wait().expect("it ends").success(), "{said}");
    said
}

fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("address").port().to_string()
}

#[actix_web::test]
async fn mail_leaves_through_the_server_that_is_set_under_the_name_that_is_set() {
    let app = TestApp::start().await;
    let (mail_port, mut received) = mail_server("250 ok").await;
    let mail_port = mail_port.to_string();
    let port = free_port();
    let headers = r#"{"X-Kind": ["$messageType"]}"#;
    let mut settings = REQUIRED.to_vec();
    settings.extend([
        ("GOTRUE_DB_DATABASE_URL", app.auth_url.as_str()),
        ("GOTRUE_DB_NAMESPACE", "auth"),
        ("GOTRUE_API_HOST", "127.0.0.1"),
        ("GOTRUE_API_PORT", &port),
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
    ] {
        assert!(letter.contains(part), "{part} is not in\n{letter}");
    }
    assert!(letter.contains("https://api.example/verify?"), "the link of a drop-in\n{letter}");
}

#[test]
fn what_is_missing_keeps_a_drop_in_from_starting_and_is_named() {
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
async fn who_asks_a_drop_in_for_a_tunnel_is_answered_without_waiting_for_what_comes_through_it() {
    let app = TestApp::start().await;
    let port = free_port();
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
