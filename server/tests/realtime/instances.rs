//! Several servers of one project: broadcasts and presence cross between them, through the database's WAL or over NATS.

use serde_json::{Value, json};

use super::broker::{Broker, RealServer};
use super::client::{Client, push_frame};
use crate::support::TestApp;
use crate::support::valve::until;

fn message(event: &str, payload: Value) -> Value {
    json!({ "type": "broadcast", "event": event, "payload": payload })
}

fn config(key: &str) -> Value {
    json!({ "presence": { "enabled": true, "key": key }, "broadcast": { "ack": true } })
}

/// A client in the channel, on one of the instances.
struct Guest {
    client: Client,
    join_ref: String,
}

impl Guest {
    async fn enter(app: &TestApp, key: &str) -> Self {
        let mut client = Client::open(app).await;
        let join_ref = client.join("room", config(key)).await;
        Self { client, join_ref }
    }

    async fn say(&mut self, event: &str, payload: Value) {
        let answer = self.client.ask(&self.join_ref, "realtime:room", "broadcast", message(event, payload)).await;
        assert_eq!(answer["status"], "ok");
    }

    async fn track(&mut self, payload: Value) {
        let track = json!({ "event": "track", "payload": payload });
        let answer = self.client.ask(&self.join_ref, "realtime:room", "presence", track).await;
        assert_eq!(answer["status"], "ok");
    }

    /// The next broadcast of this event.
    async fn hear(&mut self, event: &str) -> Value {
        let fits = |got: &super::client::Got| got.event == "broadcast" && got.payload["event"] == event;
        self.client.wait_for(fits).await.payload["payload"].clone()
    }
}

/// Waits until messages from one reach the other, so that both instances know each other.
async fn acquainted(from: &mut Guest, to: &mut Guest) {
    for n in 0..100 {
        from.say("hello", json!(n)).await;
        if to.client.rest().await.iter().any(|got| got.event == "broadcast") {
            return;
        }
    }
    panic!("the instances do not find each other");
}

/// Everything that crosses between three freshly started instances.
async fn all_crosses(one: &TestApp, two: &TestApp, three: &TestApp) {
    let mut guests = [Guest::enter(one, "ann").await, Guest::enter(two, "ben").await, Guest::enter(three, "cem").await];
    for (from, to) in [(0, 1), (1, 2), (2, 0), (0, 2), (2, 1), (1, 0)] {
        let [from, to] = guests.get_disjoint_mut([from, to]).expect("two");
        acquainted(from, to).await;
    }
    for guest in &mut guests {
        guest.client.rest().await;
    }
    let [ann, ben, cem] = &mut guests;
    for n in 0..50 {
        ann.say("count", json!(n)).await;
    }
    for other in [&mut *ben, &mut *cem] {
        for n in 0..50 {
            assert_eq!(other.hear("count").await, n, "in order, each once");
        }
    }
    let frame = push_frame(&ann.join_ref, "1", "realtime:room", "raw", &[1, 0, 2], false);
    ann.client.send_binary(frame).await;
    for other in [&mut *ben, &mut *cem] {
        assert_eq!(other.client.wait_for_event("broadcast").await.bytes, Some(vec![1, 0, 2]));
    }
    // The maximum size of a broadcast.
    let long = "x".repeat(2_900_000);
    ben.say("long", json!(long)).await;
    assert_eq!(cem.hear("long").await, json!(long));
    assert_eq!(ann.hear("long").await, json!(long));
    // By HTTP, through the third instance.
    let batch = json!({ "messages": [{ "topic": "room", "event": "http", "payload": { "n": 1 } }] });
    assert_eq!(three.service().post("/realtime/v1/api/broadcast", batch).await.status, 202);
    assert_eq!(ann.hear("http").await, json!({ "n": 1 }));

    ann.track(json!({ "at": 1 })).await;
    for other in [&mut *ben, &mut *cem] {
        let diff = other.client.wait_for_event("presence_diff").await.payload;
        assert_eq!(diff["joins"]["ann"]["metas"][0]["at"], 1);
    }
    ann.track(json!({ "at": 2 })).await;
    let diff = ben.client.wait_for_event("presence_diff").await.payload;
    assert_eq!(diff["joins"]["ann"]["metas"][0]["phx_ref_prev"], diff["leaves"]["ann"]["metas"][0]["phx_ref"]);
    // A new member on another instance gets the whole state.
    let mut dan = Guest::enter(two, "dan").await;
    assert_eq!(dan.client.wait_for_event("presence_state").await.payload["ann"]["metas"][0]["at"], 2);
    // The presences of a stopping instance disappear.
    dan.track(json!({})).await;
    cem.track(json!({ "at": 3 })).await;
    three.realtime.stop();
    for other in [&mut *ann, &mut *ben] {
        let gone = |got: &super::client::Got| got.event == "presence_diff" && got.payload["leaves"]["cem"].is_object();
        assert_eq!(other.client.wait_for(gone).await.payload["leaves"]["cem"]["metas"][0]["at"], 3);
    }
    // The others continue.
    ann.say("after", json!(1)).await;
    assert_eq!(ben.hear("after").await, 1);
}

/// A fourth instance learns the state from before it started.
async fn a_newcomer_learns(one: &TestApp) {
    let mut ann = Guest::enter(one, "early").await;
    ann.track(json!({ "at": 1 })).await;
    let four = one.another(&[]).await;
    let mut eve = Guest::enter(&four, "eve").await;
    acquainted(&mut eve, &mut ann).await;
    // The first instance sends this after its presences.
    acquainted(&mut ann, &mut eve).await;
    let mut fay = Guest::enter(&four, "fay").await;
    assert_eq!(fay.client.wait_for_event("presence_state").await.payload["early"]["metas"][0]["at"], 1);
    drop(ann);
    let gone = |got: &super::client::Got| got.event == "presence_diff" && got.payload["leaves"]["early"].is_object();
    fay.client.wait_for(gone).await;
}

#[actix_web::test]
async fn broadcasts_and_presence_cross_two_instances_through_the_wal() {
    let one = TestApp::logical(&[]).await;
    a_newcomer_learns(&one).await;
}

#[actix_web::test]
async fn broadcasts_and_presence_cross_three_instances_through_the_wal() {
    let one = TestApp::logical(&[]).await;
    let (two, three) = (one.another(&[]).await, one.another(&[]).await);
    all_crosses(&one, &two, &three).await;
}

#[actix_web::test]
async fn broadcasts_and_presence_cross_three_instances_over_nats() {
    let broker = Broker::start().await;
    let settings = [("FERROBASE_BUS_URL", broker.url.as_str())];
    // This database has no logical WAL.
    let one = TestApp::with_settings(&settings).await;
    let (two, three) = (one.another(&settings).await, one.another(&settings).await);
    all_crosses(&one, &two, &three).await;
}

#[actix_web::test]
#[ignore = "needs nats-server: just test-tools nats"]
async fn broadcasts_and_presence_cross_two_and_three_instances_over_a_real_nats_server() {
    let server = RealServer::start().await;
    let settings = [("FERROBASE_BUS_URL", server.url.as_str())];
    let one = TestApp::with_settings(&settings).await;
    let two = one.another(&settings).await;
    let (mut ann, mut ben) = (Guest::enter(&one, "ann").await, Guest::enter(&two, "ben").await);
    acquainted(&mut ann, &mut ben).await;
    acquainted(&mut ben, &mut ann).await;
    drop((ann, ben));
    let three = one.another(&settings).await;
    all_crosses(&one, &two, &three).await;
}

#[actix_web::test]
async fn instances_reconnect_after_losing_nats() {
    let broker = Broker::start().await;
    let settings = [("FERROBASE_BUS_URL", broker.url.as_str())];
    let one = TestApp::with_settings(&settings).await;
    let two = one.another(&settings).await;
    let (mut ann, mut ben) = (Guest::enter(&one, "ann").await, Guest::enter(&two, "ben").await);
    acquainted(&mut ann, &mut ben).await;
    ann.track(json!({ "at": 1 })).await;
    ben.client.wait_for_event("presence_diff").await;
    ann.client.rest().await;

    broker.go_down();
    until("both know", async || {
        [&one, &two].iter().all(|app| app.realtime.metrics().contains("ferrobase_realtime_bus_up 0\n"))
    })
    .await;
    // Sockets and their own instance keep working meanwhile.
    let mut cem = Guest::enter(&one, "cem").await;
    ann.say("alone", json!(1)).await;
    assert_eq!(cem.hear("alone").await, 1);
    ann.track(json!({ "at": 2 })).await;
    cem.track(json!({ "at": 3 })).await;
    broker.come_back();
    // Only actual changes are sent: members who stayed do not leave and rejoin.
    let told = |got: &super::client::Got| got.event == "presence_diff" && got.payload["joins"]["cem"].is_object();
    ben.client.wait_for(told).await;
    acquainted(&mut ben, &mut ann).await;
    acquainted(&mut ann, &mut ben).await;
    let mut dan = Guest::enter(&two, "dan").await;
    let state = dan.client.wait_for_event("presence_state").await.payload;
    assert_eq!((&state["ann"]["metas"][0]["at"], &state["cem"]["metas"][0]["at"]), (&json!(2), &json!(3)));
}

#[actix_web::test]
async fn a_single_instance_sends_nothing_and_ignores_foreign_messages() {
    let broker = Broker::start().await;
    let settings = [("FERROBASE_BUS_URL", broker.url.as_str())];
    let one = TestApp::with_settings(&settings).await;
    let mut ann = Guest::enter(&one, "ann").await;
    until("it is on the bus", async || one.realtime.metrics().contains("ferrobase_realtime_bus_up 1\n")).await;
    until("it has said hello", async || broker.published() > 0).await;
    ann.client.rest().await;
    let before = broker.published();
    for n in 0..20 {
        ann.say("alone", json!(n)).await;
    }
    ann.client.rest().await;
    assert_eq!(broker.published(), before);
    // Messages of another project on the same bus are not received.
    let other = TestApp::with_settings(&[
        ("FERROBASE_BUS_URL", broker.url.as_str()),
        ("JWT_SECRET", "another-secret-of-at-least-thirty-two-characters"),
    ])
    .await;
    until("the other is on the bus", async || broker.published() > before).await;
    let batch = json!({ "messages": [{ "topic": "room", "event": "foreign", "payload": {} }] });
    assert_eq!(other.service().post("/realtime/v1/api/broadcast", batch).await.status, 202);
    assert!(ann.client.rest().await.is_empty());
}

#[actix_web::test]
async fn instance_messages_in_the_wal_cannot_be_forged() {
    let one = TestApp::logical(&[]).await;
    let two = one.another(&[]).await;
    let (mut ann, mut ben) = (Guest::enter(&one, "ann").await, Guest::enter(&two, "ben").await);
    acquainted(&mut ann, &mut ben).await;
    ben.client.rest().await;
    for forged in ["", "short", &"0".repeat(300)] {
        one.owner
            .execute("select pg_logical_emit_message(true, 'ferrobase.realtime', convert_to($1, 'utf8'))", &[&forged])
            .await
            .expect("written");
    }
    ann.say("after", json!(1)).await;
    assert_eq!(ben.hear("after").await, 1);
    let lost = "drops_total{reason=\"between_instances\"} 3";
    assert!(two.realtime.metrics().contains(lost), "{}", two.realtime.metrics());
}

#[actix_web::test]
async fn an_invalid_bus_prevents_startup() {
    let app = TestApp::start().await;
    for settings in [[("FERROBASE_BUS_URL", "redis://user:hidden@host")], [("FERROBASE_BUS_SUBJECT", "a.*")]] {
        let mut settings = settings.to_vec();
        if settings[0].0 == "FERROBASE_BUS_SUBJECT" {
            settings.push(("FERROBASE_BUS_URL", "nats://127.0.0.1:1"));
        }
        let Err(error) = app.try_another(&settings).await else { panic!("{settings:?} starts") };
        let told = format!("{error:#}");
        assert!(told.contains(settings[0].0) && !told.contains("hidden"), "{told}");
    }
}
