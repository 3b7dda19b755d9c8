//! What is too much is refused with a clear 4xx, and what is just not too much is answered.

#![allow(clippy::expect_used)]

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::house::House;
use crate::wire::{Reply, send};

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

/// `select` with embeds within embeds.
fn embeds(depth: usize) -> String {
    let mut select = "id".to_owned();
    for level in 0..depth {
        let target = if (depth - level) % 2 == 1 { "constellations" } else { "stars" };
        select = format!("id,{target}({select})");
    }
    select
}

#[actix_web::test]
async fn too_much_is_refused_with_a_clear_answer() {
    let house = House::open(&[]).await;
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
    // PostgreSQL's own limit comes later, and would look like a fault of ours.
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
async fn a_body_that_says_it_is_too_long_is_refused_before_it_is_sent() {
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
async fn a_body_that_turns_out_too_long_is_refused() {
    let house = House::open(&[]).await;
    let mut stream = tokio::net::TcpStream::connect(&house.address).await.expect("the server accepts");
    let head = "POST /zoo HTTP/1.1\r\nHost: sky.example\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("sent");
    let (mut reading, mut writing) = stream.into_split();
    let sending = tokio::spawn(async move {
        let chunk = [b"100000\r\n".as_slice(), &vec![b' '; 1 << 20], b"\r\n"].concat();
        // The server hangs up in the middle.
        while writing.write_all(&chunk).await.is_ok() {}
    });
    let mut answer = vec![0; 4096];
    let length = reading.read(&mut answer).await.expect("an answer");
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    sending.abort();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[actix_web::test]
async fn who_asks_for_a_tunnel_is_answered_without_waiting_for_what_comes_through_it() {
    let house = House::open(&[]).await;
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    let heads = [
        ("GET /labels?select=id&id=eq.1 HTTP/1.1\r\n", upgrade, "", "200 OK"),
        ("CONNECT /labels HTTP/1.1\r\n", "", "", "405 Method Not Allowed"),
        ("CONNECT sky.example:443 HTTP/1.1\r\n", "", "", "405 Method Not Allowed"),
        ("POST /rpc/greet HTTP/1.1\r\nContent-Length: 16\r\n", upgrade, "{\"who\": \"there\"}", "200 OK"),
    ];
    for (line, headers, body, status) in heads {
        let mut stream = tokio::net::TcpStream::connect(&house.address).await.expect("the server accepts");
        stream.write_all(format!("{line}Host: sky.example\r\n{headers}\r\n{body}").as_bytes()).await.expect("sent");
        let mut answer = vec![0; 4096];
        // The client keeps its side open; were the server to wait for more, this would not end.
        let length = stream.read(&mut answer).await.expect("an answer");
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{line}{answer}");
    }
}
