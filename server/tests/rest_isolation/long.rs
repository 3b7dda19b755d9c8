//! Long answers: they reach slow clients completely, block nothing in the database meanwhile, and never end unnoticed.

use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::rest_isolation::fixture::{Fixture, token};

/// 20 MB as JSON.
const STORY: &str = "create table story as select n as id, repeat('x', 200) as text from generate_series(1, 90000) n; \
                     grant select on story to studio_visitor";

async fn with_story(settings: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::start(settings).await;
    fixture.reload_with(STORY, "/story?limit=1").await;
    fixture
}

/// The head of an answer.
async fn read_head(client: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.expect("a head"));
    }
    String::from_utf8(head).expect("text")
}

/// The rest of a chunked answer, and whether it was terminated.
async fn read_chunks(client: &mut TcpStream) -> (String, bool) {
    let mut all = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    while !all.ends_with(b"0\r\n\r\n") {
        match client.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => all.extend_from_slice(&buffer[..count]),
        }
    }
    let (mut body, mut rest) = (Vec::new(), &all[..]);
    loop {
        let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else { return (text(body), false) };
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).expect("digits"), 16).expect("a length");
        if length == 0 {
            return (text(body), true);
        }
        let Some(chunk) = rest.get(end + 2..end + 2 + length) else { return (text(body), false) };
        body.extend_from_slice(chunk);
        rest = rest.get(end + 4 + length..).unwrap_or_default();
    }
}

fn text(body: Vec<u8>) -> String {
    String::from_utf8(body).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_client_gets_the_whole_answer_without_holding_locks_or_a_connection() {
    let fixture = with_story(&[("DB_POOL", "1")]).await;
    let role = "do $$ begin create role studio_slow; exception when duplicate_object then null; end $$; grant studio_slow to studio_gate; alter role studio_slow set statement_timeout = '6s'; \
                grant usage on schema public to studio_slow; grant select on story to studio_slow; \
                create view ready as select 1 as x; grant select on ready to studio_visitor";
    fixture.reload_with(role, "/ready").await;
    // The role's statement timeout is 6 s; the client takes longer.
    let head = format!("GET /story HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n", token("slow", "s"));
    let mut slow = fixture.raw(&head).await;
    let head = read_head(&mut slow).await;
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("transfer-encoding: chunked"), "{head}");
    let since = Instant::now();
    fixture.one("alter table story add column more int").await;
    assert_eq!(fixture.send(fixture.request("anon", "GET", "/clients?id=eq.1")).await.status, 200);
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    tokio::time::sleep(Duration::from_secs(7)).await;
    let (body, is_whole) = read_chunks(&mut slow).await;
    assert!(is_whole);
    let rows: serde_json::Value = serde_json::from_str(&body).expect("json");
    assert_eq!(rows.as_array().map(Vec::len), Some(90_000));
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_limit_keeps_its_content_range() {
    let fixture = with_story(&[]).await;
    let reply = fixture.send(fixture.request("anon", "GET", "/story?limit=50000&offset=5")).await;
    assert_eq!((reply.status, reply.header("content-range")), (200, Some("5-50004/*")));
    assert_eq!(reply.header("content-length"), Some(reply.body.len().to_string().as_str()));
    assert_eq!(reply.json().as_array().map(Vec::len), Some(50_000));
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_failing_in_the_middle_is_not_terminated() {
    let fixture = with_story(&[]).await;
    let broken = "create view broken as select id, 1 / (60000 - id) as x, text from story; grant select on broken to studio_visitor";
    fixture.reload_with(broken, "/broken?limit=1").await;
    let mut client = fixture.raw("GET /broken HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let head = read_head(&mut client).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let (body, is_whole) = read_chunks(&mut client).await;
    assert!(!is_whole && body.starts_with("[{\"id\":1,"), "{}", body.len());
    let limited = fixture.send(fixture.request("anon", "GET", "/broken?limit=80000&order=id")).await;
    assert_eq!((limited.status, limited.json()["code"].as_str()), (400, Some("22012")));
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn csv_is_streamed_row_by_row() {
    let fixture = with_story(&[]).await;
    let csv = |target: &str| fixture.request("anon", "GET", target).header("Accept", "text/csv");
    let reply = fixture.send(csv("/story?select=id,text")).await;
    assert_eq!((reply.status, reply.header("transfer-encoding")), (200, Some("chunked")));
    let mut lines = reply.body.split('\n');
    assert_eq!(lines.next(), Some("id,text"));
    assert_eq!(lines.next(), Some(format!("1,{}", "x".repeat(200)).as_str()));
    assert_eq!(lines.count(), 89_999);
    for (target, body) in [
        ("/clients?select=id,city&order=id", "id,city\n1,Oslo\n2,Rome\n3,"),
        ("/clients?select=id,city&id=eq.9", "\n"),
        ("/clients?select=city&id=eq.3", "city\n"),
        ("/projects?select=name&id=eq.4", "name\n\"Drift, \"\"x\"\"\""),
    ] {
        // With a small limit, PostgreSQL builds the whole body.
        for limit in ["", "&limit=5"] {
            assert_eq!(fixture.send(csv(&format!("{target}{limit}"))).await.body, body, "{target}{limit}");
        }
    }
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_answers_fill_the_buffers_other_requests_get_retry_after() {
    let fixture = with_story(&[("FERROBASE_SPILL_MB", "1")]).await;
    let mut slow = fixture.raw("GET /story HTTP/1.1\r\nHost: x\r\n\r\n").await;
    read_head(&mut slow).await;
    let since = Instant::now();
    let refused = loop {
        let reply = fixture.send(fixture.request("anon", "GET", "/story?limit=11000")).await;
        if reply.status != 200 {
            break reply;
        }
        assert!(since.elapsed() < Duration::from_secs(8), "the room is not full");
    };
    assert_eq!((refused.status, refused.json()["code"].as_str()), (503, Some("PGRST003")));
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert_eq!(fixture.send(fixture.request("anon", "GET", "/clients")).await.status, 200, "short ones are served");
    // The started answer is finally aborted, recognizably incomplete.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (_, is_whole) = read_chunks(&mut slow).await;
    assert!(!is_whole);
    assert_eq!(fixture.send(fixture.request("anon", "GET", "/story?limit=11000")).await.status, 200);
    fixture.stop().await;
}
