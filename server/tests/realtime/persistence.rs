//! Broadcasts that clients have stored (`persist`): who may, for how long, how many, and that each comes once.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, Got, push_frame, user_token};
use crate::support::valve::until;
use crate::support::{Reply, TestApp, send};

const ANN: &str = "00000000-0000-4000-8000-000000000001";
const BEN: &str = "00000000-0000-4000-8000-000000000002";

/// Everybody signed in may read and send everywhere, but only Ann has messages stored, and only in this room.
const RULES: &str = "
    create policy reads on realtime.messages for select to authenticated using (true);
    create policy sends on realtime.messages for insert to authenticated with check (extension = 'broadcast');
    create policy keeps on realtime.messages for insert to authenticated
      with check (extension = 'persistence' and realtime.topic() = 'room'
                  and auth.uid() = '00000000-0000-4000-8000-000000000001');";

async fn start(settings: &[(&str, &str)]) -> TestApp {
    let app = TestApp::logical(settings).await;
    app.owner.batch_execute(RULES).await.expect("rules");
    app
}

struct Guest {
    client: Client,
    join_ref: String,
    topic: String,
}

impl Guest {
    async fn enter(app: &TestApp, name: &str, who: &str, broadcast: Value) -> Self {
        let mut client = Client::open(app).await;
        let mut config = json!({ "private": true, "broadcast": { "ack": true } });
        for (key, value) in broadcast.as_object().expect("an object") {
            config["broadcast"][key] = value.clone();
        }
        let join_ref = client.join_as(name, config, Some(&user_token(who))).await;
        Self { client, join_ref, topic: format!("realtime:{name}") }
    }

    /// Sends a broadcast with this option; returns the answer.
    async fn keep(&mut self, event: &str, payload: &[u8], persist: Value) -> Value {
        self.send(event, payload, persist).await;
        self.client.reply(event).await
    }

    async fn send(&mut self, event: &str, payload: &[u8], persist: Value) {
        let mut frame = push_frame(&self.join_ref, event, &self.topic, event, b"", payload.starts_with(b"{"));
        let meta = json!({ "persist": persist }).to_string();
        frame[5] = u8::try_from(meta.len()).expect("short");
        frame.extend_from_slice(meta.as_bytes());
        frame.extend_from_slice(payload);
        self.client.send_binary(frame).await;
    }

    async fn hear(&mut self) -> Got {
        self.client.wait_for_event("broadcast").await
    }

    async fn hears_nothing_more(&mut self) {
        let rest = self.client.rest().await;
        assert!(rest.iter().all(|got| got.event != "broadcast"), "{rest:?}");
    }
}

/// What is stored, as JSON, with the seconds until it expires.
async fn stored(app: &TestApp) -> Vec<Value> {
    let sql = "select to_jsonb(m) - '{id,inserted_at,updated_at,expires_at,binary_payload}'::text[]
                 || jsonb_build_object('bytes', encode(binary_payload, 'hex'),
                      'seconds', extract(epoch from expires_at - inserted_at)::int)
               from realtime.messages m order by inserted_at";
    app.owner.query(sql, &[]).await.expect("rows").iter().map(|row| row.get(0)).collect()
}

fn row(event: &str, payload: Value, bytes: Value, seconds: i64) -> Value {
    json!({
        "topic": "room", "extension": "broadcast", "event": event, "payload": payload, "private": true,
        "skip_broadcast": true, "bytes": bytes, "seconds": seconds,
    })
}

fn kept(answer: &Value) -> &str {
    assert_eq!(answer["status"], "ok", "{answer}");
    answer["response"]["id"].as_str().unwrap_or_else(|| panic!("it was not stored: {answer}"))
}

fn not_kept() -> Value {
    json!({ "status": "ok", "response": {} })
}

#[actix_web::test]
async fn a_broadcast_is_stored_if_its_sender_asks_for_it_and_a_policy_allows_it() {
    let app = start(&[]).await;
    let mut ann = Guest::enter(&app, "room", ANN, json!({})).await;
    let mut ben = Guest::enter(&app, "room", BEN, json!({ "replication_ready": true })).await;
    ben.client.wait_for_event("system").await;
    let answer = ann.keep("one", br#"{"n":1}"#, json!(true)).await;
    let id = kept(&answer).to_owned();
    let live = ben.hear().await;
    let told = json!({ "type": "broadcast", "event": "one", "payload": { "n": 1 }, "meta": { "id": id } });
    assert_eq!(live.payload, told);
    kept(&ann.keep("two", &[0, 255], json!({ "ttl": 60 })).await);
    assert_eq!(ben.hear().await.bytes, Some(vec![0, 255]));
    // Nobody gets them again from the database, whose later messages come.
    app.owner.batch_execute("select realtime.send('{\"id\": 9}', 'three', 'room')").await.expect("sent");
    for guest in [&mut ann, &mut ben] {
        assert_eq!(guest.hear().await.payload["event"], "three");
        guest.hears_nothing_more().await;
    }
    let rows = stored(&app).await;
    assert_eq!(rows[0], row("one", json!({ "n": 1 }), Value::Null, 259_200));
    assert_eq!(rows[1], row("two", Value::Null, json!("00ff"), 60));

    // Those who come later get them by replay, while they last.
    let mut late = Guest::enter(&app, "room", BEN, json!({ "replay": { "since": 0 } })).await;
    let events: Vec<Value> = [late.hear().await, late.hear().await, late.hear().await]
        .iter()
        .map(|got| json!([got.payload["event"], got.payload["meta"]["replayed"]]))
        .collect();
    assert_eq!(events, [json!(["one", true]), json!(["two", true]), json!(["three", true])]);
    late.hears_nothing_more().await;
    let later = "update realtime.messages set expires_at = now() at time zone 'utc' where event = 'two'";
    app.owner.batch_execute(later).await.expect("time passes");
    for replay in [json!({ "since": 0 }), json!({ "after": id })] {
        let mut late = Guest::enter(&app, "room", BEN, json!({ "replay": replay })).await;
        let first = late.hear().await.payload["event"].clone();
        if first == "one" {
            assert_eq!(late.hear().await.payload["event"], "three");
        } else {
            assert_eq!(first, "three", "after the named one");
        }
        late.hears_nothing_more().await;
    }

    // Without the right or the wish it is sent only; a new token is checked again.
    assert_eq!(ben.keep("four", br#"{"n":4}"#, json!(true)).await, not_kept());
    assert_eq!(ann.hear().await.payload, json!({ "type": "broadcast", "event": "four", "payload": { "n": 4 } }));
    assert_eq!(ann.keep("five", br#"{"n":5}"#, json!(false)).await, not_kept());
    let mut elsewhere = Guest::enter(&app, "elsewhere", ANN, json!({})).await;
    assert_eq!(elsewhere.keep("six", br#"{"n":6}"#, json!(true)).await, not_kept());
    for bad in [json!({ "ttl": 0 }), json!({ "ttl": 259_201 }), json!("soon")] {
        let refused = ann.keep("bad", br#"{"n":7}"#, bad).await;
        assert_eq!(refused, json!({ "status": "error", "response": { "error": "invalid_persist_ttl" } }));
    }
    assert_eq!(ben.hear().await.payload["event"], "five");
    ben.hears_nothing_more().await;
    assert_eq!(stored(&app).await.len(), 3);
    // A role that may not send stores nothing either.
    app.owner.batch_execute("drop policy sends on realtime.messages").await.expect("dropped");
    let mut other = Guest::enter(&app, "room", ANN, json!({})).await;
    let refused = other.keep("seven", br#"{"n":8}"#, json!(true)).await;
    assert_eq!((&refused["status"], &refused["response"]["error"]), (&json!("error"), &json!("unauthorized")));
    assert_eq!(stored(&app).await.len(), 3);
}

#[actix_web::test]
async fn a_stored_broadcast_comes_once_on_another_instance() {
    let one = start(&[]).await;
    let two = one.another(&[]).await;
    let mut ann = Guest::enter(&one, "room", ANN, json!({})).await;
    let mut ben = Guest::enter(&two, "room", BEN, json!({ "replay": { "since": 0 } })).await;
    // Until both know each other.
    let mut heard = Vec::new();
    for n in 0..100 {
        let event = format!("hello {n}");
        ann.keep(&event, b"{}", json!(false)).await;
        heard = ben.client.rest().await;
        if heard.iter().any(|got| got.event == "broadcast") {
            break;
        }
    }
    assert!(heard.iter().any(|got| got.event == "broadcast"), "the instances do not find each other");
    let answer = ann.keep("kept", br#"{"n":1}"#, json!(true)).await;
    let got = ben.hear().await;
    let told = json!({ "type": "broadcast", "event": "kept", "payload": { "n": 1 }, "meta": { "id": kept(&answer) } });
    assert_eq!(got.payload, told);
    ben.hears_nothing_more().await;
}

#[actix_web::test]
async fn broadcasts_by_http_are_stored_on_private_channels_only() {
    let app = start(&[]).await;
    let mut ben = Guest::enter(&app, "room", BEN, json!({})).await;
    let post = async |who: &str, path: &str, body: &'static str| -> Reply {
        let request = app.anon().request(reqwest::Method::POST, &format!("/realtime/v1/api/broadcast/{path}"));
        let request = request.bearer_auth(user_token(who)).header("content-type", "application/json").body(body);
        send(request).await
    };
    assert_eq!(post(ANN, "room/events/one?private=true&persist%5Bttl%5D=60", r#"{"n":1}"#).await.status, 202);
    let live = ben.hear().await;
    assert!(live.payload["meta"]["id"].is_string(), "{live:?}");
    assert_eq!(post(ANN, "room/events/two?private=true&persist=true", r#"{"n":2}"#).await.status, 202);
    assert_eq!(post(BEN, "room/events/three?private=true&persist=true", r#"{"n":3}"#).await.status, 202);
    assert_eq!(post(ANN, "room/events/four?private=true&persist=false", r#"{"n":4}"#).await.status, 202);
    for event in ["two", "three", "four"] {
        assert_eq!(ben.hear().await.payload["event"], event);
    }
    let expected =
        [row("one", json!({ "n": 1 }), Value::Null, 60), row("two", json!({ "n": 2 }), Value::Null, 259_200)];
    assert_eq!(stored(&app).await, expected);
    for (query, sentence) in [
        ("persist=true", "can only be used on private channels"),
        ("private=true&persist%5Bttl%5D=0", "is invalid"),
        ("private=true&persist=soon", "is invalid"),
    ] {
        let reply = post(ANN, &format!("room/events/bad?{query}"), "{}").await;
        assert_eq!((reply.status, reply.body), (422, json!({ "errors": { "persist": [sentence] } })), "{query}");
    }
    ben.hears_nothing_more().await;
}

#[actix_web::test]
async fn stored_broadcasts_have_a_greatest_size_and_can_be_switched_off() {
    let app = start(&[("FERROBASE_REALTIME_MAX_PERSISTED_MB", "2")]).await;
    let mut ann = Guest::enter(&app, "room", ANN, json!({})).await;
    let noise: Vec<u8> = (0..1_500_000).map(|_| rand::random()).collect();
    let mut answers = Vec::new();
    for event in ["a", "b", "c", "d"] {
        answers.push(ann.keep(event, &noise, json!(true)).await);
    }
    // The first ones have room; later ones are sent and not stored.
    kept(&answers[0]);
    assert_eq!(answers[3], not_kept());
    let count = stored(&app).await.len();
    assert!((1..=2).contains(&count), "{count}");
    let off = app.another(&[("FERROBASE_REALTIME_PERSISTENCE", "false")]).await;
    let mut ann = Guest::enter(&off, "room", ANN, json!({})).await;
    assert_eq!(ann.keep("e", b"{}", json!(true)).await, not_kept());
    let refused = ann.keep("f", b"{}", json!({ "ttl": 0 })).await;
    assert_eq!(refused["response"], json!({ "error": "invalid_persist_ttl" }));
    assert_eq!(stored(&app).await.len(), count);
}

/// Lets broadcasts of clients wait while they are stored, as long as [`app.owner`](TestApp) has the lock.
const WAITS: &str = "
    create function public.waits() returns trigger language plpgsql as $$
      begin perform pg_advisory_xact_lock_shared(77); return new; end $$;
    create trigger waits before insert on realtime.messages
      for each row when (new.skip_broadcast) execute function public.waits();
    select pg_advisory_lock(77)";

async fn is_storing(app: &TestApp) -> bool {
    let sql = "select exists (select from pg_locks where locktype = 'advisory' and not granted
                 and database = (select oid from pg_database where datname = current_database()))";
    app.owner.query_one(sql, &[]).await.expect("a row").get(0)
}

#[actix_web::test]
async fn what_a_client_sent_is_stored_and_heard_though_it_closes_its_socket() {
    let app = start(&[]).await;
    let mut ben = Guest::enter(&app, "room", BEN, json!({ "replication_ready": true })).await;
    ben.client.wait_for_event("system").await;
    let mut ann = Guest::enter(&app, "room", ANN, json!({ "ack": false })).await;
    app.owner.batch_execute(WAITS).await.expect("a trigger");
    ann.send("one", br#"{"n":1}"#, json!(true)).await;
    ann.send("two", br#"{"n":2}"#, json!(true)).await;
    ann.send("three", br#"{"n":3}"#, json!(false)).await;
    until("the first is being stored", async || is_storing(&app).await).await;
    ann.client.close().await;
    app.owner.batch_execute("select pg_advisory_unlock(77)").await.expect("unlocked");
    for event in ["one", "two", "three"] {
        let heard = ben.hear().await.payload;
        assert_eq!(heard["event"], event);
        assert_eq!(heard["meta"]["id"].is_string(), event != "three", "{heard}");
    }
    ben.hears_nothing_more().await;
    assert_eq!(stored(&app).await.len(), 2);
}

#[actix_web::test]
async fn a_broadcast_by_http_that_is_being_stored_is_heard_though_its_sender_is_gone() {
    let app = start(&[]).await;
    let mut ben = Guest::enter(&app, "room", BEN, json!({ "replication_ready": true })).await;
    ben.client.wait_for_event("system").await;
    app.owner.batch_execute(WAITS).await.expect("a trigger");
    let path = "/realtime/v1/api/broadcast/room/events/one?private=true&persist=true";
    let request = app.anon().request(reqwest::Method::POST, path).bearer_auth(user_token(ANN));
    let request = request.header("content-type", "application/json").body("{}").send();
    tokio::select! {
        answer = request => panic!("it is not stored yet: {answer:?}"),
        () = until("it is being stored", async || is_storing(&app).await) => {}
    }
    // The connection was dropped with the request. Time for the server to notice:
    tokio::time::sleep(Duration::from_millis(500)).await;
    app.owner.batch_execute("select pg_advisory_unlock(77)").await.expect("unlocked");
    assert!(ben.hear().await.payload["meta"]["id"].is_string());
    ben.hears_nothing_more().await;
    assert_eq!(stored(&app).await.len(), 1);
}
