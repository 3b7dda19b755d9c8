//! HTTP from unusual clients: pipelined, half-closed, or malformed.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::rest_isolation::fixture::Fixture;

/// Everything until the server closes the connection, which it does within some seconds.
async fn rest_of(client: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let reading = tokio::time::timeout(Duration::from_secs(15), client.read_to_end(&mut all)).await;
    reading.expect("the connection ends").expect("and not by a reset");
    String::from_utf8_lossy(&all).into_owned()
}

const GOOD: &str = "GET /clients?select=id&id=eq.1 HTTP/1.1\r\nHost: x\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn garbage_after_a_request_does_not_prevent_its_answer() {
    let fixture = Fixture::start(&[]).await;
    let mut client = fixture.raw(&format!("{GOOD}no request at all\r\n\r\n")).await;
    let answers = rest_of(&mut client).await;
    assert!(answers.starts_with("HTTP/1.1 200") && answers.contains("[{\"id\":1}]"), "{answers}");
    assert_eq!(answers.matches("HTTP/1.1 400").count(), 1, "{answers}");

    let last = GOOD.replace("Host: x", "Host: x\r\nConnection: close");
    let mut client = fixture.raw(&format!("{GOOD}{GOOD}{last}{GOOD}")).await;
    let answers = rest_of(&mut client).await;
    let heads: Vec<&str> = answers.split("HTTP/1.1 200").skip(1).collect();
    assert_eq!(heads.len(), 3, "{answers}");
    let closes: Vec<bool> = heads.iter().map(|head| head.contains("connection: close")).collect();
    assert_eq!(closes, [false, false, true]);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_closed_clients_get_answers_and_closed_ones_are_noticed() {
    let fixture = Fixture::start(&[("DB_POOL", "1")]).await;
    let mut client = fixture.raw(GOOD).await;
    client.shutdown().await.expect("half closed");
    let answer = rest_of(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("[{\"id\":1}]"), "{answer}");

    let body = r#"{"seconds": 0.5}"#;
    let nap = format!(
        "POST /rpc/nap HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut client = fixture.raw(&nap).await;
    client.shutdown().await.expect("half closed");
    let answer = rest_of(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");

    let mut client = fixture.raw(&nap.replace("0.5", "30 ").replace("16", "15")).await;
    client.flush().await.expect("sent");
    drop(client);
    let since = Instant::now();
    let next = fixture.request("anon", "GET", "/clients?id=eq.1").timeout(Duration::from_secs(20));
    assert_eq!(fixture.send(next).await.status, 200);
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_requests_are_answered_at_once() {
    let fixture = Fixture::start(&[]).await;
    for (strange, status) in [
        ("\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03", Some("HTTP/1.1 400")),
        ("GET /clients?select=id&id=eq.1 HTTP/1.1\nHost: x\nConnection: close\n\n", None),
    ] {
        let mut client = fixture.raw(strange).await;
        let since = Instant::now();
        let answer = rest_of(&mut client).await;
        assert!(since.elapsed() < Duration::from_secs(5), "{strange:?}: {:?}", since.elapsed());
        assert!(answer.starts_with(status.unwrap_or("HTTP/1.1 ")), "{strange:?}: {answer}");
    }
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_status_set_in_sql_has_no_reason_phrase() {
    let fixture = Fixture::start(&[]).await;
    let odd = "create function odd() returns int language plpgsql stable as \
               $$ begin perform set_config('response.status', '299', true); return 1; end $$";
    fixture.reload_with(odd, "/rpc/add?a=1").await;
    for _ in 0..100 {
        let mut client = fixture.raw("GET /rpc/odd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        let answer = rest_of(&mut client).await;
        if answer.starts_with("HTTP/1.1 404") {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        }
        assert!(answer.starts_with("HTTP/1.1 299 \r\n"), "{answer}");
        break;
    }
    fixture.stop().await;
}
