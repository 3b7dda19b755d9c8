//! Raw sockets: requests that two parsers would split differently, headers that forge the client or the host, and
//! unexpected line breaks. A second request hidden in the first must never be answered.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::report;
use crate::support::{Actor, TestApp, send};

/// The hidden request. Its answer would contain its id.
const HIDDEN: &str = "GET /health HTTP/1.1\r\nHost: a\r\nX-Request-Id: hidden-request\r\n\r\n";

/// Sends bytes, closes the sending side, and returns everything that is answered.
async fn told(app: &TestApp, bytes: &[u8]) -> String {
    let address = app.base.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.expect("the server accepts");
    // The server may close the connection before it has read everything.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut answer)).await;
    assert!(read.is_ok(), "the connection does not end: {}", String::from_utf8_lossy(&answer));
    String::from_utf8_lossy(&answer).into_owned()
}

fn statuses(answer: &str) -> Vec<u16> {
    let starts = answer.match_indices("HTTP/1.1 ").chain(answer.match_indices("HTTP/1.0 "));
    let mut starts: Vec<usize> = starts.map(|(at, _)| at).collect();
    starts.sort_unstable();
    starts.iter().filter_map(|at| answer.get(at + 9..at + 12)?.parse().ok()).collect()
}

#[actix_web::test]
async fn no_request_is_smuggled_inside_another() {
    let app = TestApp::start().await;
    let post = |headers: &str, body: &str| format!("POST /rest/v1/rpc/me HTTP/1.1\r\nHost: a\r\n{headers}\r\n{body}");
    let length = HIDDEN.len();
    // Two valid requests get two answers, which shows that a hidden one would be detected.
    let honest = format!("GET /health HTTP/1.1\r\nHost: a\r\n\r\n{HIDDEN}");
    let answer = told(&app, honest.as_bytes()).await;
    assert!(answer.contains("hidden-request") && statuses(&answer) == [200, 200], "{answer}");

    let chunked = format!("0\r\n\r\n{HIDDEN}");
    let mut attacks: Vec<(&str, String)> = Vec::new();
    let whole = chunked.len();
    for (what, header) in [
        ("both lengths", format!("Content-Length: {whole}\r\nTransfer-Encoding: chunked\r\n")),
        ("both lengths, the other way round", format!("Transfer-Encoding: chunked\r\nContent-Length: {whole}\r\n")),
        ("both lengths, mixed case", format!("content-length: {whole}\r\ntransfer-ENCODING: ChUnKeD\r\n")),
        ("a blank before the colon", format!("Content-Length: {whole}\r\nTransfer-Encoding : chunked\r\n")),
        ("a tab before the colon", format!("Content-Length: {whole}\r\nTransfer-Encoding\t: chunked\r\n")),
        ("a folded line", format!("Content-Length: {whole}\r\nTransfer-Encoding:\r\n chunked\r\n")),
        ("a coding that is none", format!("Content-Length: {whole}\r\nTransfer-Encoding: xchunked\r\n")),
        ("a coding in quotes", format!("Content-Length: {whole}\r\nTransfer-Encoding: \"chunked\"\r\n")),
        ("a vertical tab", format!("Content-Length: {whole}\r\nTransfer-Encoding: \x0bchunked\r\n")),
        ("chunked and then identity", format!("Content-Length: {whole}\r\nTransfer-Encoding: chunked, identity\r\n")),
        (
            "identity and then chunked",
            format!("Content-Length: {whole}\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"),
        ),
        (
            "chunked twice",
            format!("Content-Length: {whole}\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        ),
        ("a bare CR in the header", format!("Content-Length: {whole}\r\nX: a\rTransfer-Encoding: chunked\r\n")),
        ("a bare LF in the header", format!("Content-Length: {whole}\r\nX: a\nTransfer-Encoding: chunked\r\n")),
        ("a null in the header", format!("Content-Length: {whole}\r\nX\0: a\r\nTransfer-Encoding: chunked\r\n")),
        ("a header without a name", format!("Content-Length: {whole}\r\n: x\r\nTransfer-Encoding: chunked\r\n")),
    ] {
        attacks.push((what, post(&header, &chunked)));
    }
    for (what, header) in [
        ("two lengths", format!("Content-Length: 0\r\nContent-Length: {length}\r\n")),
        ("two lengths, the other way round", format!("Content-Length: {length}\r\nContent-Length: 0\r\n")),
        ("two lengths in one", format!("Content-Length: 0, {length}\r\n")),
        ("a length with a sign", "Content-Length: +0\r\n".to_owned()),
        ("a negative length", "Content-Length: -1\r\n".to_owned()),
        ("a length in hex", "Content-Length: 0x0\r\n".to_owned()),
        ("a length beyond numbers", "Content-Length: 18446744073709551616\r\n".to_owned()),
        ("a length with a blank in it", format!("Content-Length: 0 {length}\r\n")),
        ("a length that is folded", format!("Content-Length: {length}\r\nContent-Length:\r\n 0\r\n")),
        ("an empty length", "Content-Length:\r\n".to_owned()),
        ("a blank before the length's colon", format!("Content-Length : {length}\r\n")),
    ] {
        attacks.push((what, post(&header, HIDDEN)));
    }
    for (what, body) in [
        ("a chunk's length beyond numbers", format!("fffffffffffffffff\r\n{HIDDEN}")),
        ("a chunk's length with a sign", format!("+0\r\n\r\n{HIDDEN}")),
        ("a chunk's length in 0x", format!("0x0\r\n\r\n{HIDDEN}")),
        ("a chunk without its end", format!("1\r\nab0\r\n\r\n{HIDDEN}")),
        ("a chunk's length ended by LF", format!("0\n\n{HIDDEN}")),
        ("a chunk's length ended by CR", format!("0\r\r{HIDDEN}")),
        ("a chunk's extension with LF", format!("0;a=\nb\r\n\r\n{HIDDEN}")),
        ("an end of chunks with LF", format!("0\r\n\n{HIDDEN}")),
        ("a trailer with LF", format!("0\r\nX: a\n\r\n{HIDDEN}")),
        ("a chunk without a length", format!("\r\n\r\n{HIDDEN}")),
        ("a blank chunk's length", format!(" \r\n\r\n{HIDDEN}")),
    ] {
        attacks.push((what, post("Transfer-Encoding: chunked\r\n", &body)));
    }
    for (what, head) in [
        (
            "chunks in HTTP/1.0",
            format!(
                "POST /rest/v1/rpc/me HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}"
            ),
        ),
        ("lines ended by LF", format!("POST /rest/v1/rpc/me HTTP/1.1\nHost: a\nContent-Length: {length}\n\n{HIDDEN}")),
        (
            "a version that is none",
            format!("POST /rest/v1/rpc/me HTTP/1.1x\r\nHost: a\r\nContent-Length: 0\r\n\r\n{HIDDEN}"),
        ),
        ("no version", format!("POST /rest/v1/rpc/me\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{HIDDEN}")),
        (
            "an upgrade that is no socket",
            post(&format!("Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: {length}\r\n"), HIDDEN),
        ),
        ("a tunnel", format!("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n{HIDDEN}")),
        (
            "a socket that is none",
            format!(
                "GET /realtime/v1/websocket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n{HIDDEN}"
            ),
        ),
        ("HTTP/2's greeting", format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{HIDDEN}")),
        ("a body of GET", format!("GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{HIDDEN}")),
        ("an expectation", post(&format!("Expect: 100-continue\r\nContent-Length: {length}\r\n"), HIDDEN)),
        (
            "a line break in the target",
            format!("GET /health?a=\nHost:b HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"),
        ),
        (
            "a CR in the target",
            format!("GET /health?a=\rb HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"),
        ),
    ] {
        attacks.push((what, head));
    }
    let tried = attacks.len();
    for (what, bytes) in attacks {
        let answer = told(&app, bytes.as_bytes()).await;
        assert!(!answer.contains("hidden-request"), "{what}: the hidden request was answered:\n{answer}");
        let statuses = statuses(&answer);
        let last = statuses.iter().filter(|status| **status != 100).count();
        assert!(last <= 1, "{what}: {statuses:?}");
        assert!(statuses.iter().all(|status| *status < 500), "{what}: {statuses:?}");
    }
    // The same byte by byte, as over a slow network.
    let bytes = post(&format!("Content-Length: {whole}\r\nTransfer-Encoding: chunked\r\n"), &chunked);
    let address = app.base.trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.expect("the server accepts");
    stream.set_nodelay(true).expect("at once");
    for byte in bytes.as_bytes() {
        if stream.write_all(&[*byte]).await.is_err() {
            break;
        }
    }
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!String::from_utf8_lossy(&answer).contains("hidden-request"));
    report("smuggled requests, over raw sockets", tried + 1, "none answered");
}

/// The link in a mail to `address`.
async fn link(app: &TestApp, address: &str) -> String {
    crate::auth::take_link(app, address).await
}

#[actix_web::test]
async fn forged_headers_change_neither_links_nor_redirects_nor_the_client_address() {
    let settings = [
        ("GOTRUE_SMTP_MAX_FREQUENCY", "1ns"),
        ("SITE_URL", "https://app.example"),
        ("API_EXTERNAL_URL", "https://api.example"),
    ];
    let app = TestApp::with_settings(&settings).await;
    app.owner
        .batch_execute(
            "create function public.attack_headers() returns jsonb language sql as $$ select current_setting('request.headers')::jsonb $$",
        )
        .await
        .expect("a function");
    crate::support::valve::until("the function is known", async || {
        app.anon().post("/rest/v1/rpc/attack_headers", json!({})).await.status == 200
    })
    .await;
    app.user("ada@test.example").await;
    let lies = [
        ("host", "evil.example"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-server", "evil.example"),
        ("x-original-host", "evil.example"),
        ("forwarded", "for=6.6.6.6;host=evil.example;proto=http"),
        ("x-forwarded-proto", "javascript"),
        ("x-forwarded-for", "6.6.6.6"),
        ("x-real-ip", "6.6.6.6"),
        ("cf-connecting-ip", "6.6.6.6"),
        ("true-client-ip", "6.6.6.6"),
        ("x-original-url", "/auth/v1/admin/users"),
        ("x-rewrite-url", "/auth/v1/admin/users"),
        ("x-http-method-override", "DELETE"),
        ("x-method-override", "DELETE"),
        ("referer", "https://evil.example/"),
        ("origin", "https://evil.example"),
    ];
    let mut tried = 0;
    for (name, value) in lies {
        let ask = |actor: Actor<'_>, method: Method, path: &str| actor.request(method, path).header(name, value);
        let reply =
            send(ask(app.anon(), Method::POST, "/auth/v1/recover").json(&json!({ "email": "ada@test.example" }))).await;
        assert_eq!(reply.status, 200, "{name}: {}", reply.body);
        let link = link(&app, "ada@test.example").await;
        assert!(link.starts_with("https://api.example/auth/v1/verify?") && !link.contains("evil"), "{name}: {link}");
        let verified = send(ask(app.anon(), Method::GET, "/auth/v1/verify?type=recovery&token=x")).await;
        let location = verified.header("location");
        assert!(location.starts_with("https://app.example") && !location.contains("evil"), "{name}: {location}");
        let seen = send(ask(app.anon(), Method::POST, "/rest/v1/rpc/attack_headers").json(&json!({}))).await;
        assert_eq!(seen.body["x-forwarded-for"], "127.0.0.1", "{name}: {}", seen.body);
        let users = send(ask(app.anon(), Method::GET, "/health")).await;
        assert_eq!(users.body["status"], "ok", "{name}: {}", users.body);
        tried += 4;
    }
    report("forged headers about client and host", tried, "none trusted");
}

#[actix_web::test]
async fn no_line_break_reaches_a_header() {
    let app = TestApp::start().await;
    let breaks = [
        "%0d%0aSet-Cookie:%20evil=1",
        "%0aSet-Cookie:%20evil=1",
        "%0d%0a%0d%0a<script>evil=1</script>",
        "%E5%98%8D%E5%98%8ASet-Cookie:evil=1",
        "%00Set-Cookie:evil=1",
    ];
    app.owner
        .batch_execute("insert into storage.buckets (id, name, public) values ('open', 'open', true)")
        .await
        .expect("a bucket");
    send(app.service().request(Method::POST, "/storage/v1/object/open/a.txt").body("x")).await;
    let mut tried = 0;
    for text in breaks {
        for path in [
            format!("/auth/v1/verify?type=recovery&token=x&redirect_to=http://127.0.0.1:54321/{text}"),
            format!("/auth/v1/verify?type={text}&token=x"),
            format!("/auth/v1/authorize?provider={text}"),
            format!("/auth/v1/callback?error={text}&error_description={text}&state=x"),
            format!("/storage/v1/object/public/open/a.txt?download={text}"),
            format!("/storage/v1/object/public/open/{text}"),
            format!("/rest/v1/{text}"),
            format!("/rest/v1/categories?select={text}"),
            format!("/functions/v1/{text}"),
            format!("/realtime/v1/{text}"),
            format!("/{text}"),
            format!("/assets/{text}"),
        ] {
            let request = format!(
                "GET {path} HTTP/1.1\r\nHost: a\r\nApikey: {}\r\nX-Request-Id: x{}\r\nConnection: close\r\n\r\n",
                app.anon_key, "%0d%0aSet-Cookie:evil=1"
            );
            let answer = told(&app, request.as_bytes()).await;
            let head = answer.split("\r\n\r\n").next().unwrap_or_default().to_ascii_lowercase();
            let lines = head.split(['\r', '\n']).filter(|line| line.starts_with("set-cookie")).count();
            assert_eq!(lines, 0, "{path}: {head}");
            let statuses = statuses(&answer);
            assert!(statuses.len() == 1 && statuses[0] < 500, "{path}: {statuses:?}");
            tried += 1;
        }
    }
    report("line breaks in header values", tried, "none got through");
}

#[actix_web::test]
async fn no_path_escapes_its_root() {
    let app = TestApp::start().await;
    let mut tried = 0;
    for root in ["/", "/assets/", "/storage/v1/object/public/open/", "/rest/v1/", "/functions/v1/"] {
        for way in [
            "../../../../etc/passwd",
            "..%2f..%2f..%2f..%2fetc%2fpasswd",
            "%2e%2e/%2e%2e/%2e%2e/etc/passwd",
            "..%252f..%252f..%252fetc%252fpasswd",
            "..\\..\\..\\etc\\passwd",
            "..%5c..%5c..%5cetc%5cpasswd",
            "....//....//....//etc/passwd",
            "%c0%ae%c0%ae/%c0%ae%c0%ae/etc/passwd",
            "/etc/passwd",
            "//etc/passwd",
            "file:///etc/passwd",
            "etc/passwd%00.js",
        ] {
            let request =
                format!("GET {root}{way} HTTP/1.1\r\nHost: a\r\nApikey: {}\r\nConnection: close\r\n\r\n", app.anon_key);
            let answer = told(&app, request.as_bytes()).await;
            assert!(!answer.contains("root:x:"), "{root}{way}: {answer}");
            assert!(statuses(&answer).iter().all(|status| *status < 500), "{root}{way}: {answer}");
            tried += 1;
        }
    }
    // Paths that a proxy in front may consider harmless do not reach routes that need a key.
    for path in [
        "/x/../auth/v1/admin/users",
        "/auth/v1/verify/../admin/users",
        "/auth/v1/verify%2f..%2fadmin/users",
        "//auth/v1/admin/users",
        "/AUTH/v1/admin/users",
        "/auth/v1/admin/users;x",
        "/auth/v1/./admin/users",
        "/auth/v1/admin/users%00",
        "http://a/auth/v1/admin/users",
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let answer = told(&app, request.as_bytes()).await;
        assert!(!answer.contains("\"users\":["), "{path}: {answer}");
        tried += 1;
    }
    report("path traversal", tried, "none succeeded");
}

#[actix_web::test]
async fn every_response_forbids_content_sniffing() {
    let app = TestApp::start().await;
    for path in [
        "/health",
        "/rest/v1/categories",
        "/rest/v1/nothing",
        "/auth/v1/settings",
        "/auth/v1/user",
        "/storage/v1/bucket",
        "/storage/v1/object/public/none/none.svg",
        "/functions/v1/none",
        "/realtime/v1/api/ping",
        "/none/v1/x",
        "/assets/none.js",
    ] {
        let reply = app.anon().get(path).await;
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}: {}", reply.status);
    }
}
