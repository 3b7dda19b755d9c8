//! Handshakes, frames, joins, tokens, limits.

use serde_json::{Value, json};

use super::client::{Client, token};
use crate::support::TestApp;

/// Seconds since 1970.
fn now() -> i64 {
    chrono::Utc::now().timestamp()
}

#[actix_web::test]
async fn a_handshake_without_a_key_is_refused_by_the_gateway() {
    let app = TestApp::start().await;
    let upgrade = |path: &str| {
        app.plain(reqwest::Method::GET, path)
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "x3JJHMbDL1EzLkh9GBhXDw==")
    };
    let reply = crate::support::send(upgrade("/realtime/v1/websocket")).await;
    assert_eq!((reply.status, &reply.body["message"]), (401, &json!("No API key found in request")));
    let reply = crate::support::send(upgrade("/realtime/v1/websocket?apikey=x")).await;
    assert_eq!((reply.status, &reply.body["message"]), (401, &json!("Invalid API key")));
    let reply = crate::support::send(upgrade(&format!("/realtime/v1/websocket?apikey={}&vsn=3", app.anon_key))).await;
    assert_eq!(reply.status, 400);
}

#[actix_web::test]
async fn both_serializers_can_join_heartbeat_and_leave() {
    let app = TestApp::start().await;
    for version in ["1.0.0", "2.0.0"] {
        let mut client = Client::with(&app, &app.anon_key, version).await;
        let beat = client.ask("", "phoenix", "heartbeat", json!({})).await;
        assert_eq!(beat, json!({ "status": "ok", "response": {} }));
        let (join_ref, answer) = client.try_join("a:b", json!({}), None).await;
        assert_eq!(answer, json!({ "status": "ok", "response": { "postgres_changes": [] } }));
        let answer = client.ask(&join_ref, "realtime:a:b", "phx_leave", json!({})).await;
        assert_eq!(answer["status"], "ok");
        let closed = client.wait_for_event("phx_close").await;
        assert_eq!((closed.reference, closed.payload), (json!(join_ref), json!({})));
        let answer = client.ask(&join_ref, "realtime:a:b", "broadcast", json!({})).await;
        assert_eq!(answer, json!({ "status": "error", "response": { "reason": "unmatched topic" } }));
        assert_eq!(client.ask("", "realtime:a:b", "phx_leave", json!({})).await["status"], "ok");
    }
}

#[actix_web::test]
async fn a_refused_rejoin_ends_the_previous_channel() {
    let app = TestApp::start().await;
    let mut client = Client::open(&app).await;
    let former = client.join("room", json!({})).await;
    let (_, answer) = client.try_join("room", json!({}), Some("no token")).await;
    assert_eq!(answer["status"], "error");
    let closed = |got: &super::client::Got| got.event == "phx_close" && got.reference == json!(former);
    client.wait_for(closed).await;
}

/// An app that removes a channel twice ended the one that it had subscribed in between.
#[actix_web::test]
async fn leaving_a_former_channel_does_not_end_the_present_one() {
    let app = TestApp::start().await;
    let mut client = Client::open(&app).await;
    let former = client.join("room", json!({})).await;
    client.ask(&former, "realtime:room", "phx_leave", json!({})).await;
    let present = client.join("room", json!({ "broadcast": { "self": true } })).await;
    assert_eq!(client.ask(&former, "realtime:room", "phx_leave", json!({})).await["status"], "ok");
    let message = json!({ "type": "broadcast", "event": "e", "payload": {} });
    client.push(&present, "realtime:room", "broadcast", message).await;
    client.wait_for_event("broadcast").await;
    // A client that names none means the present one.
    client.send_text(r#"[null,"99","realtime:room","phx_leave",{}]"#).await;
    assert_eq!(client.reply("99").await["status"], "ok");
    let closed = |got: &super::client::Got| got.event == "phx_close" && got.reference == json!(present);
    client.wait_for(closed).await;
}

#[actix_web::test]
async fn frames_sent_with_the_handshake_are_not_lost() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let app = TestApp::start().await;
    let address = app.base.trim_start_matches("http://");
    // Clients must mask their frames; this mask is the identity.
    let beat = |reference: u8| {
        let text = format!(r#"[null,"{reference}","phoenix","heartbeat",{{}}]"#);
        let mut frame = vec![0x81, 0x80 | u8::try_from(text.len()).expect("short"), 0, 0, 0, 0];
        frame.extend_from_slice(text.as_bytes());
        frame
    };
    let head = format!(
        "GET /realtime/v1/websocket?apikey={}&vsn=2.0.0 HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        app.anon_key
    );
    // The first frame whole, the second split in two.
    for cut in [1, 20] {
        let mut stream = tokio::net::TcpStream::connect(address).await.expect("a connection");
        let second = beat(2);
        let early = [head.as_bytes(), &beat(1), &second[..cut]].concat();
        stream.write_all(&early).await.expect("sent");
        let mut seen = String::new();
        let mut is_cut = true;
        while !seen.contains(r#"[null,"2","phoenix","phx_reply""#) {
            let mut part = [0; 4096];
            let read = tokio::time::timeout(std::time::Duration::from_secs(20), stream.read(&mut part)).await;
            let length = read.expect("an answer").expect("open");
            assert!(length > 0, "{seen}");
            seen.push_str(&String::from_utf8_lossy(&part[..length]));
            if is_cut && seen.contains(r#"[null,"1","phoenix","phx_reply""#) {
                is_cut = false;
                stream.write_all(&second[cut..]).await.expect("sent");
            }
        }
        assert!(seen.starts_with("HTTP/1.1 101 "), "{seen}");
    }
}

#[actix_web::test]
async fn malformed_frames_are_dropped_and_the_socket_stays() {
    let app = TestApp::start().await;
    let mut client = Client::open(&app).await;
    for text in ["", "{", "[]", "[1,2,3,4,5]", r#"["1"]"#, "null", "\u{0}"] {
        client.send_text(text).await;
    }
    for bytes in [vec![], vec![3], vec![3, 255, 255, 255, 255, 255, 1], vec![9; 100]] {
        client.send_binary(bytes).await;
    }
    assert_eq!(client.ask("", "phoenix", "heartbeat", json!({})).await["status"], "ok");
    let answer = client.ask("", "nonsense", "phx_join", json!({})).await;
    assert_eq!(answer["response"]["reason"], "unmatched topic");
}

#[actix_web::test]
async fn an_oversized_frame_ends_only_its_socket() {
    let app = TestApp::start().await;
    let (mut bad, mut good) = (Client::open(&app).await, Client::open(&app).await);
    let _ = bad.send_text(&"x".repeat(5_000_001)).await;
    assert_eq!(bad.wait_for_close().await, Some(1009));
    assert_eq!(good.ask("", "phoenix", "heartbeat", json!({})).await["status"], "ok");
}

#[actix_web::test]
async fn refused_joins_get_upstreams_errors() {
    let app = TestApp::start().await;
    let mut client = Client::open(&app).await;
    let forged = {
        let key = jsonwebtoken::EncodingKey::from_secret(b"another-secret-of-thirty-two-bytes!!");
        let claims = json!({ "role": "service_role", "exp": now() + 60 });
        jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("a token")
    };
    for (token, reason) in [
        (token(json!({ "role": "anon", "exp": now() - 10 })), "InvalidJWTToken: Token has expired 1"),
        (token(json!({ "role": "anon" })), "InvalidJWTToken: Fields `role` and `exp` are required in JWT"),
        (token(json!({ "exp": now() + 60 })), "InvalidJWTToken: Fields `role` and `exp` are required in JWT"),
        ("nonsense".to_owned(), "MalformedJWT: The token provided is not a valid JWT"),
        (forged, "JwtSignatureError: Failed to validate JWT signature"),
    ] {
        let (_, answer) = client.try_join("x", json!({}), Some(&token)).await;
        assert_eq!(answer["status"], "error", "{token}");
        let told = answer["response"]["reason"].as_str().expect("a reason");
        assert!(told.starts_with(reason), "{told}");
    }
    let (_, answer) = client.try_join("", json!({}), None).await;
    assert_eq!(answer["response"]["reason"], "TopicNameRequired: You must provide a topic name");
    // An opaque key in place of a token is ignored.
    let (_, answer) = client.try_join("x", json!({}), Some("sb_publishable_x")).await;
    assert_eq!(answer["status"], "ok");
}

#[actix_web::test]
async fn rejoining_closes_the_old_instance_of_the_channel() {
    let app = TestApp::start().await;
    let mut client = Client::open(&app).await;
    let first = client.join("x", json!({})).await;
    let second = client.join("x", json!({ "broadcast": { "self": true } })).await;
    let closed = client.wait_for_event("phx_close").await;
    assert_eq!((&closed.join_ref, &closed.reference), (&json!(first), &json!(first)));
    client.push(&second, "realtime:x", "broadcast", json!({ "type": "broadcast", "event": "e" })).await;
    client.wait_for_event("broadcast").await;
    assert!(client.rest().await.is_empty(), "once, and no other close");
}

#[actix_web::test]
async fn a_channel_ends_with_its_token_and_the_socket_stays() {
    let app = TestApp::start().await;
    let mut client = Client::open(&app).await;
    let short = token(json!({ "role": "anon", "exp": now() + 2 }));
    let join_ref = client.join_as("short", json!({}), Some(&short)).await;
    let other = client.join("long", json!({})).await;
    let told = client.wait_for_event("system").await;
    assert_eq!(told.payload["status"], "error");
    assert_eq!(told.payload["channel"], "short");
    let text = told.payload["message"].as_str().expect("text");
    assert!(text.starts_with("Token has expired ") && text.ends_with(" seconds ago"), "{text}");
    assert_eq!(client.wait_for_event("phx_close").await.join_ref, json!(join_ref));
    // The other channel continues; an invalid new token ends it.
    client.push(&other, "realtime:long", "access_token", json!({ "access_token": null })).await;
    client.push(&other, "realtime:long", "access_token", json!({ "access_token": "sb_x" })).await;
    assert_eq!(client.ask("", "phoenix", "heartbeat", json!({})).await["status"], "ok");
    client.push(&other, "realtime:long", "access_token", json!({ "access_token": "bad" })).await;
    let told = client.wait_for_event("system").await;
    assert_eq!(told.payload["message"], "The token provided is not a valid JWT");
    client.wait_for_event("phx_close").await;
}

#[actix_web::test]
async fn limits_are_configurable_and_use_upstreams_errors() {
    let settings = [
        ("FERROBASE_REALTIME_MAX_CONCURRENT_USERS", "2"),
        ("TENANT_MAX_CHANNELS_PER_CLIENT", "2"),
        ("FERROBASE_REALTIME_MAX_JOINS_PER_SECOND", "4"),
    ];
    let app = TestApp::with_settings(&settings).await;
    let (mut first, mut second, mut third) =
        (Client::open(&app).await, Client::open(&app).await, Client::open(&app).await);
    first.join("a", json!({})).await;
    first.join("b", json!({})).await;
    let (_, answer) = first.try_join("c", json!({}), None).await;
    assert_eq!(answer["response"]["reason"], "ChannelRateLimitReached: Too many channels");
    second.join("a", json!({})).await;
    let (_, answer) = third.try_join("a", json!({}), None).await;
    assert_eq!(answer["response"]["reason"], "ConnectionRateLimitReached: Too many connected users");
    drop(first);
    // There is room again.
    loop {
        let (_, answer) = third.try_join("a", json!({}), None).await;
        if answer["status"] == "ok" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    }
    for _ in 0..10 {
        third.push("", "realtime:a", "phx_join", json!({ "config": {} })).await;
    }
    let reached = |got: &super::client::Got| got.payload["response"]["reason"].to_string().contains("Too many joins");
    let refused = third.wait_for(reached).await;
    assert_eq!(refused.payload["response"]["reason"], "ClientJoinRateLimitReached: Too many joins per second");
    third.wait_for_close().await;
}

#[actix_web::test]
async fn a_flood_of_one_socket_ends_its_channel() {
    let app = TestApp::with_settings(&[("FERROBASE_REALTIME_MAX_EVENTS_PER_SOCKET", "10")]).await;
    let (mut loud, mut quiet) = (Client::open(&app).await, Client::open(&app).await);
    let join_ref = loud.join("x", json!({})).await;
    quiet.join("x", json!({})).await;
    for _ in 0..150 {
        loud.push(&join_ref, "realtime:x", "broadcast", json!({ "type": "broadcast", "event": "e" })).await;
    }
    let told = loud.wait_for_event("system").await;
    assert_eq!(told.payload["message"], "Too many messages per second");
    loud.wait_for_event("phx_close").await;
    assert_eq!(quiet.ask("", "phoenix", "heartbeat", json!({})).await["status"], "ok");
}

#[actix_web::test]
async fn a_silent_socket_is_closed() {
    let app = TestApp::with_settings(&[("FERROBASE_REALTIME_IDLE_TIMEOUT", "1")]).await;
    let mut client = Client::open(&app).await;
    client.join("x", json!({})).await;
    assert_eq!(client.wait_for_close().await, Some(1000));
}

#[actix_web::test]
async fn a_server_that_stops_closes_its_sockets() {
    let app = TestApp::start().await;
    let mut client = Client::open(&app).await;
    client.join("x", json!({})).await;
    app.realtime.stop();
    assert_eq!(client.wait_for_close().await, Some(1012));
    let refused = crate::support::send(app.anon().request(reqwest::Method::GET, "/realtime/v1/websocket")).await;
    assert_eq!(refused.status, 503);
}

#[actix_web::test]
async fn metrics_are_exported() {
    let app = TestApp::start().await;
    let mut client = Client::open(&app).await;
    client.join("x", json!({})).await;
    let text = app.realtime.metrics();
    for line in ["ferrobase_realtime_sockets 1", "ferrobase_realtime_joins_total{outcome=\"ok\"} 1"] {
        assert!(text.lines().any(|other| other == line), "{text}");
    }
    let _: Value = client.ask("", "phoenix", "heartbeat", json!({})).await;
    // Deliveries by message kind and channel class.
    let mut service = Client::with_key(&app, &app.service_key).await;
    let config = |private: bool| json!({ "private": private, "broadcast": { "self": true } });
    for (private, count) in [(false, 1), (true, 2)] {
        let join_ref = service.join("y", config(private)).await;
        for _ in 0..count {
            let message = json!({ "type": "broadcast", "event": "e", "payload": {} });
            service.push(&join_ref, "realtime:y", "broadcast", message).await;
            service.wait_for_event("broadcast").await;
        }
    }
    let join_ref = service.join("z", json!({ "presence": { "enabled": true } })).await;
    service.ask(&join_ref, "realtime:z", "presence", json!({ "event": "track", "payload": {} })).await;
    let text = app.realtime.metrics();
    for (kind, class, count) in [
        ("broadcast", "public", 1),
        ("broadcast", "private", 2),
        ("presence", "public", 1),
        ("presence", "private", 0),
        ("change", "public", 0),
    ] {
        let line = format!("ferrobase_realtime_deliveries_total{{kind=\"{kind}\",channel=\"{class}\"}} {count}");
        assert!(text.lines().any(|other| other == line), "{line}: {text}");
    }
}

#[actix_web::test]
async fn addresses_with_repeatedly_refused_joins_are_throttled() {
    let app = TestApp::with_settings(&[("FERROBASE_REALTIME_MAX_REFUSALS_PER_ADDRESS", "1")]).await;
    let (mut guessing, mut honest) = (Client::open(&app).await, Client::open(&app).await);
    honest.try_join("", json!({}), None).await;
    honest.join("x", json!({})).await;
    for _ in 0..20 {
        guessing.try_send_text(r#"["1","1","realtime:","phx_join",{}]"#).await;
    }
    assert_eq!(guessing.wait_for_close().await, Some(1008));
    let url = super::client::socket_url(&app, &app.anon_key, "2.0.0");
    let Err(tokio_tungstenite::tungstenite::Error::Http(refused)) = tokio_tungstenite::connect_async(url).await else {
        panic!("a socket");
    };
    assert_eq!(refused.status(), 429);
    // Existing members stay.
    assert_eq!(honest.ask("", "phoenix", "heartbeat", json!({})).await["status"], "ok");
}
