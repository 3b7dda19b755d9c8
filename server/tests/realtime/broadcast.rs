//! Broadcasts: over the socket, by HTTP, and from the database; separation of public and private channels.

use serde_json::{Value, json};

use super::client::{Client, push_frame};
use crate::support::{TestApp, send};

fn message(event: &str, payload: Value) -> Value {
    json!({ "type": "broadcast", "event": event, "payload": payload })
}

#[actix_web::test]
async fn a_broadcast_reaches_the_others_and_with_self_its_sender() {
    let app = TestApp::start().await;
    let (mut ann, mut ben) = (Client::open(&app).await, Client::open(&app).await);
    let ann_ref = ann.join("room", json!({})).await;
    let ben_ref = ben.join("room", json!({ "broadcast": { "self": true, "ack": true } })).await;
    ann.push(&ann_ref, "realtime:room", "broadcast", message("hi", json!({ "n": 1 }))).await;
    let got = ben.wait_for_event("broadcast").await;
    assert_eq!((got.topic.as_str(), &got.payload), ("realtime:room", &message("hi", json!({ "n": 1 }))));
    let answer = ben.ask(&ben_ref, "realtime:room", "broadcast", message("yo", json!({}))).await;
    assert_eq!(answer, json!({ "status": "ok", "response": {} }));
    assert_eq!(ben.wait_for_event("broadcast").await.payload["event"], "yo");
    assert_eq!(ann.wait_for_event("broadcast").await.payload["event"], "yo");
    assert!(ann.rest().await.is_empty() && ben.rest().await.is_empty(), "without ack no answer, without self no echo");
}

#[actix_web::test]
async fn binary_frames_are_relayed_and_converted_for_the_old_version() {
    let app = TestApp::start().await;
    let mut sender = Client::open(&app).await;
    let mut new = Client::open(&app).await;
    let mut old = Client::with(&app, &app.anon_key, "1.0.0").await;
    let join_ref = sender.join("größe", json!({ "broadcast": { "ack": true } })).await;
    new.join("größe", json!({})).await;
    let old_ref = old.join("größe", json!({})).await;
    let topic = "realtime:größe";
    sender.send_binary(push_frame(&join_ref, "71", topic, "ü", r#"{"a":"ß"}"#.as_bytes(), true)).await;
    assert_eq!(sender.reply("71").await["status"], "ok");
    assert_eq!(new.wait_for_event("broadcast").await.payload, message("ü", json!({ "a": "ß" })));
    assert_eq!(old.wait_for_event("broadcast").await.payload, message("ü", json!({ "a": "ß" })));
    sender.send_binary(push_frame(&join_ref, "72", topic, "raw", &[0, 255, 1], false)).await;
    sender.reply("72").await;
    let got = new.wait_for_event("broadcast").await;
    assert_eq!((got.payload["event"].as_str(), got.bytes), (Some("raw"), Some(vec![0, 255, 1])));
    // Phoenix' own binary push.
    let mut push =
        vec![0, u8::try_from(join_ref.len()).expect("short"), 2, u8::try_from(topic.len()).expect("short"), 9];
    push.extend_from_slice(format!("{join_ref}73{topic}broadcast").as_bytes());
    push.extend_from_slice(&[9, 0]);
    sender.send_binary(push).await;
    sender.reply("73").await;
    let got = new.wait_for_event("broadcast").await;
    assert_eq!((got.topic.as_str(), got.payload, got.bytes), (topic, Value::Null, Some(vec![9, 0])));
    // From an old client to a new one, as text.
    old.push(&old_ref, topic, "broadcast", message("old", json!([1]))).await;
    assert_eq!(new.wait_for_event("broadcast").await.payload, message("old", json!([1])));
    assert!(old.rest().await.is_empty(), "the old version cannot carry bytes");
}

#[actix_web::test]
async fn an_oversized_message_is_dropped_and_reported_with_ack() {
    let app = TestApp::with_settings(&[("FERROBASE_REALTIME_MAX_PAYLOAD_KB", "1")]).await;
    let (mut ann, mut ben) = (Client::open(&app).await, Client::open(&app).await);
    let ann_ref = ann.join("room", json!({ "broadcast": { "ack": true } })).await;
    ben.join("room", json!({})).await;
    let answer = ann.ask(&ann_ref, "realtime:room", "broadcast", message("big", json!("x".repeat(2000)))).await;
    assert_eq!(
        answer,
        json!({ "status": "error", "response": { "reason": "payload_size_exceeded", "error": "payload_size_exceeded" } })
    );
    assert!(ben.rest().await.is_empty());
}

#[actix_web::test]
async fn batches_and_single_events_can_be_sent_by_http() {
    let app = TestApp::start().await;
    let mut client = Client::open(&app).await;
    client.join("room", json!({})).await;
    let path = "/realtime/v1/api/broadcast";
    let batch = json!({ "messages": [
        { "topic": "room", "event": "one", "payload": { "n": 1 } },
        { "topic": "other", "event": "lost", "payload": {} },
        { "topic": "room", "event": "two", "payload": { "n": 2 }, "private": true },
    ] });
    let reply = app.service().post(path, batch).await;
    assert_eq!((reply.status, reply.body.as_str()), (202, Some("")));
    assert_eq!(reply.header("access-control-allow-origin"), "*");
    assert_eq!(client.wait_for_event("broadcast").await.payload, message("one", json!({ "n": 1 })));
    let reply = app.anon().post(path, json!({ "messages": [{ "topic": "room", "event": "e" }] })).await;
    assert_eq!(reply.status, 422);
    assert_eq!(reply.body, json!({ "errors": { "messages": [{ "payload": ["can't be blank"] }] } }));
    // Single messages: JSON and bytes.
    let one = |kind: &'static str, body: Vec<u8>| {
        let request = app.anon().request(reqwest::Method::POST, &format!("{path}/room/events/e%20v"));
        send(request.header("content-type", kind).body(body))
    };
    assert_eq!(one("application/json", br#"{"x":[1]}"#.to_vec()).await.status, 202);
    assert_eq!(client.wait_for_event("broadcast").await.payload, message("e v", json!({ "x": [1] })));
    assert_eq!(one("application/octet-stream", vec![7, 0]).await.status, 202);
    assert_eq!(client.wait_for_event("broadcast").await.bytes, Some(vec![7, 0]));
    assert_eq!(one("text/plain", vec![]).await.status, 415);
    assert_eq!(one("application/json", b"{".to_vec()).await.status, 422);
    assert!(client.rest().await.is_empty(), "the private world is another");
}

#[actix_web::test]
async fn private_broadcasts_by_http_need_a_policy() {
    let app = TestApp::start().await;
    let path = "/realtime/v1/api/broadcast";
    let batch = json!({ "messages": [
        { "topic": "room", "event": "a", "payload": {}, "private": true },
        { "topic": "room", "event": "b", "payload": {} },
    ] });
    let reply = app.anon().post(path, batch).await;
    assert_eq!((reply.status, reply.header("x-refused-messages")), (202, "0"));
    let reply = app.anon().post(&format!("{path}/room/events/e?private=true"), json!({})).await;
    assert_eq!((reply.status, &reply.body), (403, &json!({ "message": "Unauthorized" })));
    let reply = app.service().post(&format!("{path}/room/events/e?private=true"), json!({})).await;
    assert_eq!(reply.status, 202);
    let request = app.anon().request(reqwest::Method::POST, path).bearer_auth("forged").json(&json!({}));
    let reply = send(request).await;
    assert_eq!((reply.status, &reply.body), (401, &json!({ "message": "Unauthorized" })));
}

#[actix_web::test]
async fn a_slow_reader_is_disconnected_without_delaying_others() {
    let app = TestApp::with_settings(&[("FERROBASE_REALTIME_MAX_QUEUE_KB", "512")]).await;
    let (mut ann, mut slow, mut ben) = (Client::open(&app).await, Client::open(&app).await, Client::open(&app).await);
    let ann_ref = ann.join("room", json!({ "broadcast": { "ack": true } })).await;
    slow.join("room", json!({})).await;
    ben.join("room", json!({})).await;
    const COUNTED: &str = "drops_total{reason=\"slow_reader\"} 1";
    // Sockets buffer some megabytes, and the slow client reads nothing.
    let payload = "x".repeat(400_000);
    for n in 0..60 {
        let answer = ann.ask(&ann_ref, "realtime:room", "broadcast", message("m", json!([n, payload]))).await;
        assert_eq!(answer["status"], "ok");
        assert_eq!(ben.wait_for_event("broadcast").await.payload["payload"][0], n);
        if app.realtime.metrics().contains(COUNTED) {
            break;
        }
    }
    assert!(app.realtime.metrics().contains(COUNTED), "{}", app.realtime.metrics());
    // It may reconnect once it can read.
    assert_eq!(slow.wait_for_close().await, Some(1013));
}

#[actix_web::test]
async fn twenty_clients_get_ten_thousand_messages_in_order() {
    const CLIENTS: usize = 20;
    const TOPICS: usize = 4;
    const SENDERS: usize = 2;
    /// Per sender and topic; 10,000 in all.
    const MESSAGES: u64 = 1250;
    let app = TestApp::with_settings(&[("FERROBASE_REALTIME_MAX_EVENTS_PER_SOCKET", "0")]).await;
    let mut senders = Vec::new();
    for _ in 0..SENDERS {
        let mut sender = Client::open(&app).await;
        let mut joins = Vec::new();
        for topic in 0..TOPICS {
            joins.push(sender.join(&format!("room {topic}"), json!({})).await);
        }
        senders.push((sender, joins));
    }
    let mut readers = Vec::new();
    for _ in 0..CLIENTS {
        let mut reader = Client::open(&app).await;
        for topic in 0..TOPICS {
            reader.join(&format!("room {topic}"), json!({})).await;
        }
        readers.push(actix_web::rt::spawn(async move {
            let mut seen = [[0; SENDERS]; TOPICS];
            while seen != [[MESSAGES; SENDERS]; TOPICS] {
                let got = reader.wait_for_event("broadcast").await;
                let part = |at: usize| got.payload["payload"][at].as_u64().expect("a number");
                let (topic, sender) = (part(0), usize::try_from(part(1)).expect("small"));
                assert_eq!(got.topic, format!("realtime:room {topic}"));
                let seen = &mut seen[usize::try_from(topic).expect("small")][sender];
                assert_eq!(part(2), *seen, "messages of a topic come in their order, none twice, none left out");
                *seen += 1;
            }
        }));
    }
    for n in 0..MESSAGES {
        for (place, (sender, joins)) in senders.iter_mut().enumerate() {
            for (topic, join_ref) in joins.iter().enumerate() {
                let payload = message("m", json!([topic, place, n]));
                sender.push(join_ref, &format!("realtime:room {topic}"), "broadcast", payload).await;
            }
        }
    }
    for reader in readers {
        reader.await.expect("all came");
    }
    for (mut sender, _) in senders {
        // Each has received the other's message, but not its own.
        let got = sender.rest().await;
        assert_eq!(got.len(), TOPICS * usize::try_from(MESSAGES).expect("small"));
    }
}
