//! Requests beyond a limit get a clear 4xx, and those just within it succeed.

#![allow(clippy::expect_used)]

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rest::house::{Ground, House};
use crate::support::wire::{Reply, UPGRADE, send, tunnel};

async fn get(house: &House, target: &str) -> Reply {
    send(&house.address, "GET", target, &[], b"").await
}

fn refusal(reply: &Reply) -> (u16, String, String) {
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or(Value::Null);
    let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
    (reply.status, text("code"), text("message"))
}

fn told(status: u16, code: &str, message: &str) -> (u16, String, String) {
    (status, code.to_owned(), message.to_owned())
}

/// `select` with nested embeds.
fn embeds(depth: usize) -> String {
    let mut select = "id".to_owned();
    for level in 0..depth {
        let target = if (depth - level) % 2 == 1 { "constellations" } else { "stars" };
        select = format!("id,{target}({select})");
    }
    select
}

#[actix_web::test]
async fn requests_beyond_limits_get_clear_errors() {
    // Limits on embeds are tested elsewhere.
    let house = House::open(&[
        ("FERROBASE_REST_DEPTH", "0"),
        ("FERROBASE_REST_ANON_DEPTH", "0"),
        ("FERROBASE_REST_ANON_COST", "0"),
    ])
    .await;
    let filters = |number: usize| format!("/labels?select=id&limit=1&{}", vec!["id=gt.0"; number].join("&"));
    assert_eq!(refusal(&get(&house, &filters(1001)).await), told(400, "PGRST100", "Too many query parameters"));
    assert_eq!(get(&house, &filters(900)).await.status, 200);

    let tree =
        |depth: usize| format!("/labels?select=id&or={}id.eq.1{}", "(and".repeat(depth) + "(", ")".repeat(depth + 1));
    let deep = told(400, "PGRST100", "The query string is nested too deeply");
    assert_eq!(refusal(&get(&house, &tree(101)).await), deep);
    assert_eq!(get(&house, &tree(50)).await.status, 200);

    let select = |depth: usize| format!("/stars?limit=1&select={}", embeds(depth));
    assert_eq!(refusal(&get(&house, &select(101)).await), deep);
    let reply = get(&house, &select(12)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());

    let long = |length: usize| format!("/labels?select=id&word=eq.{}", "x".repeat(length));
    assert_eq!(refusal(&get(&house, &long(61_000)).await), told(414, "PGRST100", "The request URL is too long"));
    assert_eq!(get(&house, &long(50_000)).await.status, 200);
    let reply = get(&house, &long(70_000)).await;
    assert!((400..500).contains(&reply.status), "{}", reply.status);

    let member = [("Authorization".to_owned(), format!("Bearer {}", House::token(r#"{"role":"sky_member"}"#)))];
    let json = |depth: usize| format!("{{\"id\": 9, \"jb\": {}{}}}", "[".repeat(depth), "]".repeat(depth));
    // PostgreSQL's own limit comes later and would look like a server error.
    let reply = send(&house.address, "POST", "/zoo", &member, json(9_000).as_bytes()).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    let reply = send(&house.address, "POST", "/zoo", &member, json(1_000_000).as_bytes()).await;
    assert_eq!(refusal(&reply), told(400, "PGRST102", "The request body is nested too deeply"));
    let rows = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let reply = send(&house.address, "POST", "/zoo", &member, rows.as_bytes()).await;
    assert_eq!((reply.status, refusal(&reply).1.as_str()), (400, "PGRST102"));

    let headers: Vec<(String, String)> = (0..200).map(|n| (format!("X-{n}"), "x".to_owned())).collect();
    let reply = send(&house.address, "GET", "/labels?select=id", &headers, b"").await;
    assert!((400..500).contains(&reply.status), "{}", reply.status);
    assert_eq!(get(&house, "/labels?select=id&id=eq.1").await.text(), "[{\"id\":1}]", "the server still answers");
}

#[actix_web::test]
async fn a_body_with_an_oversized_length_is_refused_before_it_is_sent() {
    let house = House::open(&[]).await;
    let mut stream = tokio::net::TcpStream::connect(&house.address).await.expect("the server accepts");
    let head = "POST /zoo HTTP/1.1\r\nHost: sky.example\r\nContent-Length: 134217729\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = vec![0; 4096];
    let length = stream.read(&mut answer).await.expect("an answer");
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("PGRST102") && answer.contains("The request body is too large"), "{answer}");
}

#[actix_web::test]
async fn a_chunked_oversized_body_is_refused() {
    let house = House::open(&[]).await;
    let mut stream = tokio::net::TcpStream::connect(&house.address).await.expect("the server accepts");
    let head = "POST /diary HTTP/1.1\r\nHost: sky.example\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("sent");
    let (mut reading, mut writing) = stream.into_split();
    let sending = tokio::spawn(async move {
        let chunk = [b"100000\r\n".as_slice(), &vec![b' '; 1 << 20], b"\r\n"].concat();
        // The server closes the connection in the middle.
        while writing.write_all(&chunk).await.is_ok() {}
    });
    let mut answer = vec![0; 4096];
    let length = reading.read(&mut answer).await.expect("an answer");
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    sending.abort();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[actix_web::test]
async fn tunnel_requests_are_answered_before_any_data_arrives() {
    let house = House::open(&[]).await;
    let greeting = r#"{"who": "there"}"#;
    for (line, headers, body, status) in [
        ("GET /labels?select=id&id=eq.1", UPGRADE.to_owned(), "", 200),
        ("GET /nothing", UPGRADE.to_owned(), "", 404),
        ("CONNECT /labels", String::new(), "", 405),
        ("CONNECT sky.example:443", String::new(), "", 405),
        ("POST /rpc/greet", format!("Content-Length: {}\r\n{UPGRADE}", greeting.len()), greeting, 200),
        // HTTP/2 upgrade requests on a plain connection.
        ("GET /labels?select=id", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n".to_owned(), "", 200),
        ("GET /labels?select=id", "Connection: upgrade\r\n".to_owned(), "", 200),
    ] {
        let reply = tunnel(&house.address, &format!("{line}\r\n{headers}"), body).await;
        assert_eq!(reply.status, status, "{line}: {}", reply.text());
    }
}

/// Regression: the answer announced chunks but had none.
#[actix_web::test]
async fn long_answers_to_tunnel_requests_are_readable() {
    let long = "create view sky.horizon as select n, repeat('x', 100) as word from generate_series(1, 20000) as n;
                grant select on sky.horizon to sky_visitor";
    let house = House::build(&[], &Ground::new(Some(long)).await).await;
    let reply = tunnel(&house.address, &format!("GET /horizon\r\n{UPGRADE}"), "").await;
    assert!(reply.body.len() > 2_000_000, "{}", reply.body.len());
    let rows: Value = serde_json::from_slice(&reply.body).expect("JSON");
    assert_eq!(rows.as_array().map(Vec::len), Some(20_000));
}

/// Regression: if it was closed while the client was sending, the connection was reset and the answer lost.
#[actix_web::test]
async fn a_refusal_reaches_clients_that_read_only_after_sending_everything() {
    let house = House::open(&[]).await;
    let token = [("Authorization".to_owned(), "Bearer nonsense".to_owned())];
    let reply = send(&house.address, "POST", "/zoo", &token, &vec![b' '; 4 << 20]).await;
    assert_eq!((reply.status, refusal(&reply).1.as_str()), (401, "PGRST301"), "{}", reply.text());
}

/// Regression: the names were compared with those of all functions at their whole length, which took seconds and gigabytes, and
/// then came back twice.
#[actix_web::test]
async fn names_that_nothing_can_have_are_not_compared_and_are_cut_in_the_error() {
    let house = House::open(&[]).await;
    let json = ("Content-Type".to_owned(), "application/json".to_owned());
    let member = ("Authorization".to_owned(), format!("Bearer {}", House::token(r#"{"role":"sky_member"}"#)));
    let long = "n".repeat(4 << 20);
    let many: Vec<String> = (0..19_000).map(|n| format!("\"{n:0>500}\":1")).collect();
    for (target, headers, body, code, begins) in [
        (
            "/rpc/plus",
            vec![json.clone()],
            format!("{{\"{long}\":1}}"),
            "PGRST202",
            "Could not find the function sky.plus(nnn",
        ),
        (
            "/rpc/plus",
            vec![json.clone()],
            format!("{{{}}}", many.join(",")),
            "PGRST202",
            "Could not find the function sky.plus(000",
        ),
        ("/labels", vec![json, member], format!("{{\"{long}\":1}}"), "PGRST204", "Could not find the 'nnn"),
    ] {
        let reply = send(&house.address, "POST", target, &headers, body.as_bytes()).await;
        let (_, told, message) = refusal(&reply);
        assert_eq!(told, code, "{target}");
        assert!(message.starts_with(begins) && message.contains('…'), "{target}: {} bytes", message.len());
        assert!(
            message.ends_with("in the schema cache") && reply.body.len() < 20_000,
            "{target}: {}",
            reply.body.len()
        );
    }
}

/// Regression: each connection kept the texts of 256 statements, however long, and of refused ones too.
#[actix_web::test]
async fn long_statements_are_not_prepared() {
    let function = "create function sky.prepared() returns json language sql volatile security definer as $$
                      select json_build_array(max(length(statement)), count(*) filter (where statement ~ 'labels'))
                      from pg_prepared_statements where name <> '' $$;";
    let house = House::build(&[("PGRST_DB_POOL", "1")], &Ground::new(Some(function)).await).await;
    let select = |columns: usize| format!("/labels?id=eq.1&select={}", vec!["id"; columns].join(","));
    for columns in [2, 1000] {
        for _ in 0..3 {
            assert_eq!(get(&house, &select(columns)).await.status, 200);
        }
    }
    let reply = send(&house.address, "POST", "/rpc/prepared", &[], b"").await;
    let found: Value = serde_json::from_slice(&reply.body).expect("JSON");
    assert_eq!(found[1], 1, "the short one: {found}");
    assert!(found[0].as_i64().is_some_and(|length| length < 16 << 10), "{found}");
}
