//! Malicious clients: malformed, oversized and endless frames, joins and presences; others' topics and tokens. Each is
//! refused without affecting other clients.

use futures_util::SinkExt as _;
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::client::{Client, push_frame, socket_url, token, user_token};
use crate::support::{TestApp, send};

const ANN: &str = "00000000-0000-4000-8000-000000000001";

/// Seconds since 1970.
fn now() -> i64 {
    chrono::Utc::now().timestamp()
}

/// A client in a channel that must not be affected.
struct Bystander {
    client: Client,
    join_ref: String,
}

impl Bystander {
    async fn enter(app: &TestApp) -> Self {
        let mut client = Client::open(app).await;
        let join_ref = client.join("calm", json!({ "broadcast": { "self": true } })).await;
        Self { client, join_ref }
    }

    async fn goes_on(&mut self) {
        let message = json!({ "type": "broadcast", "event": "e", "payload": {} });
        self.client.push(&self.join_ref, "realtime:calm", "broadcast", message).await;
        self.client.wait_for_event("broadcast").await;
        assert!(self.client.rest().await.is_empty());
    }
}

#[actix_web::test]
async fn joins_with_arbitrary_payloads_are_answered() {
    let app = TestApp::start().await;
    let mut bystander = Bystander::enter(&app).await;
    let mut client = Client::open(&app).await;
    let deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    for payload in [
        "null",
        "[]",
        "\"x\"",
        &deep,
        r#"{"config":{"broadcast":[],"presence":7,"postgres_changes":{},"private":[true]}}"#,
        r#"{"config":{"presence":{"key":"","enabled":"yes"}},"access_token":{}}"#,
        r#"{"config":null}"#,
    ] {
        client.send_text(&format!(r#"["9","9","realtime:odd","phx_join",{payload}]"#)).await;
        let answer = client.reply("9").await;
        assert_eq!(answer["status"], "ok", "{}", &payload[..payload.len().min(80)]);
    }
    bystander.goes_on().await;
}

#[actix_web::test]
async fn large_joins_are_refused() {
    let app = TestApp::start().await;
    let mut client = Client::open(&app).await;
    let (_, answer) = client.try_join(&"t".repeat(1025), json!({}), None).await;
    assert_eq!(answer["response"]["reason"], "TopicNameTooLong: A topic name may have 1024 bytes");
    let config = json!({ "presence": { "key": "k".repeat(70_000) } });
    let (_, answer) = client.try_join("x", config, None).await;
    assert_eq!(answer["response"]["reason"], "InvalidJoinPayload: A join may have 65536 bytes");
    let entry = json!({ "event": "*", "schema": "public" });
    client.join("x", json!({ "postgres_changes": vec![entry; 101] })).await;
    let told = client.wait_for_event("system").await.payload;
    let text = "Too many subscriptions to changes: a channel may have 100";
    assert_eq!((&told["status"], &told["message"]), (&json!("error"), &json!(text)));
    let filter = vec!["id=gt.1"; 33].join(",");
    let entry = json!({ "event": "*", "schema": "public", "table": "t", "filter": filter });
    client.join("y", json!({ "postgres_changes": [entry] })).await;
    let told = client.wait_for_event("system").await.payload;
    assert_eq!(told["message"], "Error parsing `filter` params: a filter may have 32 conditions");
}

#[actix_web::test]
async fn an_endless_fragmented_message_ends_only_its_socket() {
    let app = TestApp::start().await;
    let mut bystander = Bystander::enter(&app).await;
    let (mut stream, _) = connect_async(socket_url(&app, &app.anon_key, "2.0.0")).await.expect("a socket");
    let piece = vec![b'x'; 1 << 20];
    let first = Frame::message(piece.clone(), OpCode::Data(Data::Text), false);
    stream.send(Message::Frame(first)).await.expect("sent");
    let mut is_open = true;
    for _ in 0..8 {
        let next = Frame::message(piece.clone(), OpCode::Data(Data::Continue), false);
        is_open = is_open && stream.send(Message::Frame(next)).await.is_ok();
    }
    let mut code = None;
    while let Some(Ok(message)) = futures_util::StreamExt::next(&mut stream).await {
        if let Message::Close(frame) = message {
            code = frame.map(|frame| u16::from(frame.code));
        }
    }
    assert_eq!(code, Some(1009));
    bystander.goes_on().await;
}

#[actix_web::test]
async fn floods_of_frames_without_a_channel_end_their_socket() {
    let app = TestApp::with_settings(&[("FERROBASE_REALTIME_MAX_EVENTS_PER_SOCKET", "10")]).await;
    let mut bystander = Bystander::enter(&app).await;
    for text in ["{", r#"[null,"1","phoenix","heartbeat",{}]"#] {
        let mut flood = Client::open(&app).await;
        for _ in 0..150 {
            flood.try_send_text(text).await;
        }
        assert_eq!(flood.wait_for_close().await, Some(1008), "{text}");
    }
    bystander.goes_on().await;
}

#[actix_web::test]
async fn a_full_presence_room_accepts_no_more() {
    let app = TestApp::with_settings(&[("FERROBASE_REALTIME_MAX_QUEUE_KB", "1000")]).await;
    let track = |size: usize| json!({ "event": "track", "payload": { "x": "y".repeat(size) } });
    let mut guests = Vec::new();
    for size in [300_000, 300_000] {
        let mut guest = Client::open(&app).await;
        let join_ref = guest.join("room", json!({})).await;
        let answer = guest.ask(&join_ref, "realtime:room", "presence", track(size)).await;
        guests.push((guest, join_ref, answer));
    }
    assert_eq!(guests[0].2["status"], "ok");
    assert_eq!(guests[1].2["response"]["reason"], "Too many presences on this channel");
    // A member that leaves makes room; each member's own entry counts once.
    let (first, first_ref, _) = &mut guests[0];
    assert_eq!(first.ask(first_ref, "realtime:room", "presence", track(250_000)).await["status"], "ok");
    assert_eq!(first.ask(first_ref, "realtime:room", "presence", track(100)).await["status"], "ok");
    let (second, second_ref, _) = &mut guests[1];
    assert_eq!(second.ask(second_ref, "realtime:room", "presence", track(300_000)).await["status"], "ok");
}

#[actix_web::test]
async fn the_presences_of_a_socket_are_bounded_in_all_its_channels() {
    let app = TestApp::with_settings(&[("FERROBASE_REALTIME_MAX_QUEUE_KB", "1000")]).await;
    // Parsed, each member of the list would take many times its text.
    let track = |size: usize| json!({ "event": "track", "payload": { "x": vec![json!({ "": 0 }); size / 7] } });
    let mut client = Client::open(&app).await;
    let mut answers = Vec::new();
    for room in ["a", "b", "c", "d"] {
        let join_ref = client.join(room, json!({})).await;
        let topic = format!("realtime:{room}");
        answers.push((client.ask(&join_ref, &topic, "presence", track(300_000)).await, topic, join_ref));
    }
    assert!(answers[..3].iter().all(|(answer, ..)| answer["status"] == "ok"), "{answers:?}");
    assert_eq!(answers[3].0["response"]["reason"], "Too many presences on this connection");
    // Each entry that ends or becomes smaller makes room, and so does another socket.
    client.ask(&answers[0].2, &answers[0].1, "presence", json!({ "event": "untrack" })).await;
    assert_eq!(client.ask(&answers[3].2, &answers[3].1, "presence", track(300_000)).await["status"], "ok");
    assert_eq!(client.ask(&answers[1].2, &answers[1].1, "presence", track(200_000)).await["status"], "ok");
    let mut other = Client::open(&app).await;
    let join_ref = other.join("a", json!({})).await;
    assert_eq!(other.ask(&join_ref, "realtime:a", "presence", track(300_000)).await["status"], "ok");
}

/// Sockets of one address filled what there is for all.
#[actix_web::test]
async fn the_presences_of_an_address_are_bounded_in_all_its_sockets() {
    let settings = [("FERROBASE_REALTIME_MAX_QUEUE_KB", "200"), ("FERROBASE_REALTIME_MAX_QUEUES_MB", "4")];
    let app = TestApp::with_settings(&settings).await;
    let track = |size: usize| json!({ "event": "track", "payload": { "x": "y".repeat(size) } });
    let mut guests = Vec::new();
    for room in ["a", "b", "c", "d"] {
        let mut guest = Client::open(&app).await;
        let join_ref = guest.join(room, json!({})).await;
        let topic = format!("realtime:{room}");
        let answer = guest.ask(&join_ref, &topic, "presence", track(80_000)).await;
        guests.push((guest, join_ref, topic, answer));
    }
    assert!(guests[..3].iter().all(|(.., answer)| answer["status"] == "ok"));
    assert_eq!(guests[3].3["response"]["reason"], "Too many presences of this address");
    // One that is gone makes room.
    drop(guests.remove(0));
    let (guest, join_ref, topic, _) = &mut guests[2];
    crate::support::valve::until("there is room", async || {
        guest.ask(join_ref, topic, "presence", track(80_000)).await["status"] == "ok"
    })
    .await;
}

#[actix_web::test]
async fn topics_of_others_can_be_neither_received_nor_sent_to() {
    let app = TestApp::start().await;
    app.owner
        .batch_execute(
            "create policy own on realtime.messages for all to authenticated
             using (realtime.topic() = auth.uid()::text) with check (realtime.topic() = auth.uid()::text)",
        )
        .await
        .expect("rules");
    let private = || json!({ "private": true, "broadcast": { "ack": true } });
    let mut ann = Client::open(&app).await;
    ann.join_as(ANN, private(), Some(&user_token(ANN))).await;
    let mut mallory = Client::open(&app).await;
    let other = user_token("00000000-0000-4000-8000-00000000000f");
    // Names that PostgreSQL might take for Ann's.
    for topic in [
        ANN.to_owned(),
        format!("{ANN}\0"),
        format!("\0{ANN}"),
        format!("{ANN}' or 'a' = 'a"),
        format!("{ANN}:x"),
        format!(" {ANN}"),
    ] {
        let (_, answer) = mallory.try_join(&topic, private(), Some(&other)).await;
        let reason = answer["response"]["reason"].as_str().expect("a reason");
        assert!(reason.starts_with("Unauthorized: You do not have permissions to read"), "{topic:?}: {reason}");
    }
    // Without joining, with every kind of frame.
    let topic = format!("realtime:{ANN}");
    let message = json!({ "type": "broadcast", "event": "forged", "payload": {} });
    for event in ["broadcast", "presence", "access_token", "anything"] {
        let answer = mallory.ask("1", &topic, event, message.clone()).await;
        assert_eq!(answer["response"]["reason"], "unmatched topic", "{event}");
    }
    mallory.send_binary(push_frame("1", "77", &topic, "forged", b"{}", true)).await;
    assert_eq!(mallory.reply("77").await["response"]["reason"], "unmatched topic");
    // On the public channel with that name, and by HTTP.
    let public = mallory.join_as(ANN, json!({}), Some(&other)).await;
    mallory.push(&public, &topic, "broadcast", message).await;
    let path = format!("/realtime/v1/api/broadcast/{ANN}/events/forged?private=true");
    let request = app.anon().request(reqwest::Method::POST, &path).bearer_auth(&other).json(&json!({}));
    assert_eq!(send(request).await.status, 403);
    let batch = json!({ "messages": [
        { "topic": ANN, "event": "forged", "payload": {}, "private": true },
        { "topic": format!("{ANN}\0"), "event": "forged", "payload": {}, "private": true },
    ] });
    let request = app.anon().request(reqwest::Method::POST, "/realtime/v1/api/broadcast").bearer_auth(&other);
    let reply = send(request.json(&batch)).await;
    assert_eq!((reply.status, reply.header("x-refused-messages")), (202, "0,1"));
    assert!(ann.rest().await.is_empty());
}

/// A token with algorithm none, or with a changed header.
fn with_header(header: &Value, claims: &Value) -> String {
    use base64::Engine as _;
    let encode = |value: &Value| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.", encode(header), encode(claims))
}

#[actix_web::test]
async fn expired_forged_and_downgraded_tokens_end_only_their_channel() {
    let app = TestApp::start().await;
    let mut bystander = Bystander::enter(&app).await;
    let mut client = Client::open(&app).await;
    let stays = client.join("stays", json!({ "broadcast": { "self": true } })).await;
    let claims = json!({ "role": "service_role", "exp": now() + 600 });
    let forged = {
        let key = jsonwebtoken::EncodingKey::from_secret(b"another-secret-of-thirty-two-bytes!!");
        jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("a token")
    };
    let mut edited: Vec<String> = user_token(ANN).split('.').map(str::to_owned).collect();
    edited[1] = with_header(&claims, &claims).split('.').next().expect("a part").to_owned();
    for (bad, told) in [
        (token(json!({ "role": "anon", "exp": now() - 5 })), "Token has expired "),
        (token(json!({ "role": "anon" })), "Fields `role` and `exp` are required in JWT"),
        (token(json!({ "exp": now() + 60 })), "Fields `role` and `exp` are required in JWT"),
        (forged, "Failed to validate JWT signature"),
        (edited.join("."), "Failed to validate JWT signature"),
        (with_header(&json!({ "alg": "none", "typ": "JWT" }), &claims), "The token provided is not a valid JWT"),
        (with_header(&json!({ "alg": "HS256", "typ": "JWT" }), &claims), ""),
        ("x".repeat(10_000), "The token provided is not a valid JWT"),
    ] {
        let join_ref = client.join("ends", json!({})).await;
        client.push(&join_ref, "realtime:ends", "access_token", json!({ "access_token": bad })).await;
        let message = client.wait_for_event("system").await.payload["message"].clone();
        assert!(message.as_str().expect("a text").starts_with(told), "{bad}: {message}");
        assert_eq!(client.wait_for_event("phx_close").await.join_ref, json!(join_ref));
        // It cannot be used to join either.
        let (_, answer) = client.try_join("ends", json!({}), Some(&bad)).await;
        assert_eq!(answer["status"], "error", "{bad}");
    }
    // Anything but a token is ignored.
    for payload in [json!({}), json!({ "access_token": 7 }), json!({ "access_token": ["x"] }), json!([1])] {
        client.push(&stays, "realtime:stays", "access_token", payload).await;
    }
    let message = json!({ "type": "broadcast", "event": "e", "payload": {} });
    client.push(&stays, "realtime:stays", "broadcast", message).await;
    client.wait_for_event("broadcast").await;
    bystander.goes_on().await;
}

#[actix_web::test]
async fn without_the_projects_key_all_requests_are_refused() {
    let app = TestApp::start().await;
    let post = |path: &str| app.plain(reqwest::Method::POST, path).json(&json!({ "messages": [] }));
    for path in ["/realtime/v1/api/broadcast", "/realtime/v1/api/broadcast/t/events/e"] {
        let reply = send(post(path)).await;
        assert_eq!((reply.status, &reply.body["message"]), (401, &json!("No API key found in request")), "{path}");
        let reply = send(post(path).header("apikey", "wrong")).await;
        assert_eq!((reply.status, &reply.body["message"]), (401, &json!("Invalid API key")), "{path}");
        // A valid key does not make a forged bearer token valid.
        let reply = send(post(path).header("apikey", &app.anon_key).bearer_auth("a.b.c")).await;
        assert_eq!((reply.status, &reply.body["message"]), (401, &json!("Unauthorized")), "{path}");
    }
    // A user's token is not the project's key.
    let url = socket_url(&app, &user_token(ANN), "2.0.0");
    let Err(tokio_tungstenite::tungstenite::Error::Http(refused)) = connect_async(url).await else {
        panic!("a socket without the project's key");
    };
    assert_eq!(refused.status(), 401);
    // Upstream's administration API is not served.
    for path in ["/realtime/v1/api/tenants", "/realtime/v1/socket/websocket", "/realtime/v1/api/openapi"] {
        assert_eq!(send(app.anon().request(reqwest::Method::GET, path)).await.status, 404, "{path}");
    }
}

#[actix_web::test]
async fn an_oversized_batch_is_refused_as_a_whole() {
    let app = TestApp::start().await;
    let message = json!({ "topic": "room", "event": "e", "payload": {} });
    let reply = app.service().post("/realtime/v1/api/broadcast", json!({ "messages": vec![message; 1001] })).await;
    assert_eq!(reply.status, 429);
    assert_eq!(reply.body["message"], "Too many messages to broadcast, please reduce the batch size");
}

#[actix_web::test]
async fn changes_dropped_by_the_rate_limit_are_reported() {
    let app = TestApp::logical(&[("FERROBASE_REALTIME_MAX_EVENTS_PER_SECOND", "1")]).await;
    app.owner
        .batch_execute("create table public.t (id int primary key); alter publication supabase_realtime add table t")
        .await
        .expect("a table");
    let mut client = Client::open(&app).await;
    let entry = json!({ "event": "INSERT", "schema": "public", "table": "t" });
    client.join("x", json!({ "postgres_changes": [entry] })).await;
    client.wait_for_event("system").await;
    app.owner.batch_execute("insert into t select generate_series(1, 300)").await.expect("rows");
    let told = client.wait_for_event("system").await.payload;
    let text = "Too many messages per second: changes are left out";
    assert_eq!((&told["status"], &told["message"]), (&json!("error"), &json!(text)));
    let rest = client.rest().await;
    let changes = rest.iter().filter(|got| got.event == "postgres_changes").count();
    // The average over a minute is one per second, rounded down.
    assert!((60..=120).contains(&changes), "{changes}");
    assert!(rest.iter().all(|got| got.event != "system"), "reported once, not for each");
}

#[actix_web::test]
async fn slow_filters_delay_the_changes_of_others_only_for_a_bounded_time() {
    let app = TestApp::logical(&[]).await;
    app.owner
        .batch_execute(
            "create domain public.slow as text check (pg_sleep(0.3)::text = '');
             create table public.s (id int primary key, x slow); create table public.t (id int primary key, n numeric);
             alter publication supabase_realtime add table s, t",
        )
        .await
        .expect("tables");
    let mut calm = Client::open(&app).await;
    let entry = json!({ "event": "INSERT", "schema": "public", "table": "t", "filter": "n=gt.1.5" });
    calm.join("x", json!({ "postgres_changes": [entry] })).await;
    assert_eq!(calm.wait_for_event("system").await.payload["status"], "ok");
    let mut slow = Client::open(&app).await;
    let entry =
        |n: usize| json!({ "event": "INSERT", "schema": "public", "table": "s", "filter": format!("x=like.{n}%") });
    slow.join("x", json!({ "postgres_changes": (0..20).map(entry).collect::<Vec<_>>() })).await;
    assert_eq!(slow.wait_for_event("system").await.payload["status"], "ok");
    let since = std::time::Instant::now();
    app.owner.batch_execute("insert into s values (1, 'x'); insert into t values (1, 2)").await.expect("rows");
    assert_eq!(calm.change().await["data"]["record"]["id"], 1);
    // Each comparison sleeps twice; together they have five seconds.
    assert!(since.elapsed().as_secs_f64() < 9.0, "{:?}", since.elapsed());
    // Changes that were not compared in time are not left out silently.
    let told = slow.wait_for_event("system").await.payload;
    assert_eq!(told["message"], "Changes could not be checked against the database");
    slow.wait_for_event("phx_error").await;
    assert!(calm.rest().await.is_empty());
}

#[actix_web::test]
async fn the_comparisons_of_a_socket_are_bounded_in_all_its_channels() {
    let app = TestApp::logical(&[]).await;
    app.owner
        .batch_execute(
            "create table public.t (id int primary key, n numeric); alter publication supabase_realtime add table t",
        )
        .await
        .expect("a table");
    let entry = |begin: usize| {
        let filter: Vec<_> = (begin..begin + 30).map(|n| format!("n=neq.{n}.5")).collect();
        json!({ "event": "*", "schema": "public", "table": "t", "filter": filter.join(",") })
    };
    let config = |begins: &[usize]| json!({ "postgres_changes": begins.iter().map(|n| entry(*n)).collect::<Vec<_>>() });
    let mut client = Client::open(&app).await;
    let text = "Too many different conditions that the database has to compare: a connection may have 200";
    let mut refs = Vec::new();
    for (name, begins, refused) in [
        ("all", &[0, 30, 60, 90, 120, 150, 180][..], true),
        ("a", &[0, 30, 60], false),
        ("b", &[90, 120, 150], false),
        ("c", &[180], true),
        // Equal conditions are compared once, and a repeated join replaces its channel.
        ("d", &[0, 90], false),
        ("b", &[180, 210], false),
    ] {
        refs.push(client.join(name, config(begins)).await);
        let told = client.wait_for_event("system").await.payload;
        let message = if refused { text } else { "Subscribed to PostgreSQL" };
        assert_eq!(told["message"], message, "{name}");
    }
    // A new token does not count them twice.
    let token = json!({ "access_token": user_token(ANN) });
    client.push(&refs[1], "realtime:a", "access_token", token).await;
    assert_eq!(client.wait_for_event("system").await.payload["message"], "Subscribed to PostgreSQL");
    app.owner.batch_execute("insert into t values (1, 1)").await.expect("a row");
    for _ in 0..3 {
        assert_eq!(client.change().await["data"]["record"]["id"], 1);
    }
}

#[actix_web::test]
async fn endless_token_exchanges_do_not_affect_others() {
    let app = TestApp::logical(&[("FERROBASE_REALTIME_MAX_EVENTS_PER_SOCKET", "0")]).await;
    // The token is exchanged during the query.
    app.owner
        .batch_execute(
            "create table public.t (id int primary key); alter table t enable row level security;
             create policy slow on t for select using ((select true from pg_sleep(0.2)));
             alter publication supabase_realtime add table t",
        )
        .await
        .expect("a table");
    let config = || json!({ "postgres_changes": [{ "event": "INSERT", "schema": "public", "table": "t" }] });
    let mut calm = Client::open(&app).await;
    calm.join_as("x", config(), Some(&user_token(ANN))).await;
    calm.wait_for_event("system").await;
    let mut restless = Client::open(&app).await;
    let join_ref = restless.join("x", config()).await;
    let tokens = [user_token("00000000-0000-4000-8000-00000000000f"), app.anon_key.clone()];
    let exchanging = actix_web::rt::spawn(async move {
        for token in tokens.iter().cycle() {
            restless.push(&join_ref, "realtime:x", "access_token", json!({ "access_token": token })).await;
            restless.ask("", "phoenix", "heartbeat", json!({})).await;
            if restless.has_read("phx_error") {
                return;
            }
        }
    });
    app.owner.batch_execute("insert into t values (1)").await.expect("a row");
    assert_eq!(calm.change().await["data"]["record"]["id"], 1);
    // Its rights are unknown, so it has to rejoin and read again.
    exchanging.await.expect("ended");
    assert!(calm.rest().await.is_empty());
}
