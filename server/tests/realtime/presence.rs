//! Presence: state, diffs, keys, several tabs, lost sockets.

use serde_json::{Value, json};

use super::client::Client;
use crate::support::TestApp;

fn track(payload: Value) -> Value {
    json!({ "type": "presence", "event": "track", "payload": payload })
}

fn config(key: &str) -> Value {
    json!({ "presence": { "key": key, "enabled": true } })
}

#[actix_web::test]
async fn members_see_joins_changes_and_leaves() {
    let app = TestApp::start().await;
    let (mut ann, mut ben) = (Client::open(&app).await, Client::open(&app).await);
    let ann_ref = ann.join("room", config("ann")).await;
    assert_eq!(ann.wait_for_event("presence_state").await.payload, json!({}));
    assert_eq!(ann.ask(&ann_ref, "realtime:room", "presence", track(json!({ "at": 1 }))).await["status"], "ok");
    let diff = ann.wait_for_event("presence_diff").await.payload;
    let first = diff["joins"]["ann"]["metas"][0].clone();
    assert_eq!((&first["at"], &diff["leaves"]), (&json!(1), &json!({})));
    // Tracking the same state again sends nothing.
    ann.ask(&ann_ref, "realtime:room", "presence", track(json!({ "at": 1 }))).await;

    let ben_ref = ben.join("room", config("ben")).await;
    assert_eq!(ben.wait_for_event("presence_state").await.payload, json!({ "ann": { "metas": [first] } }));
    ann.ask(&ann_ref, "realtime:room", "presence", track(json!({ "at": 2 }))).await;
    for client in [&mut ann, &mut ben] {
        let diff = client.wait_for_event("presence_diff").await.payload;
        assert_eq!(diff["joins"]["ann"]["metas"][0]["phx_ref_prev"], first["phx_ref"]);
        assert_eq!(diff["leaves"]["ann"]["metas"], json!([first]));
    }
    ben.ask(&ben_ref, "realtime:room", "presence", track(json!({}))).await;
    ann.wait_for_event("presence_diff").await;
    let untrack = json!({ "type": "presence", "event": "UNTRACK" });
    assert_eq!(ben.ask(&ben_ref, "realtime:room", "presence", untrack).await["status"], "ok");
    let diff = ann.wait_for_event("presence_diff").await.payload;
    assert_eq!((diff["leaves"]["ben"]["metas"].as_array().map(Vec::len), &diff["joins"]), (Some(1), &json!({})));
}

#[actix_web::test]
async fn two_tabs_share_a_key_and_a_lost_socket_leaves_one() {
    let app = TestApp::start().await;
    let (mut watcher, mut one, mut two) =
        (Client::open(&app).await, Client::open(&app).await, Client::open(&app).await);
    watcher.join("room", config("watcher")).await;
    for (tab, number) in [(&mut one, 1), (&mut two, 2)] {
        let join_ref = tab.join("room", config("ann")).await;
        tab.ask(&join_ref, "realtime:room", "presence", track(json!({ "tab": number }))).await;
        watcher.wait_for_event("presence_diff").await;
    }
    let mut late = Client::open(&app).await;
    late.join("room", config("late")).await;
    let state = late.wait_for_event("presence_state").await.payload;
    let tabs: Vec<_> =
        state["ann"]["metas"].as_array().expect("metas").iter().map(|meta| meta["tab"].clone()).collect();
    assert_eq!(tabs, [json!(1), json!(2)]);
    drop(one);
    let diff = watcher.wait_for_event("presence_diff").await.payload;
    assert_eq!(diff["leaves"]["ann"]["metas"][0]["tab"], 1);
    assert_eq!(diff["leaves"]["ann"]["metas"].as_array().map(Vec::len), Some(1));
}

#[actix_web::test]
async fn invalid_presences_are_refused() {
    let app = TestApp::with_settings(&[
        ("FERROBASE_REALTIME_MAX_PAYLOAD_KB", "1"),
        ("FERROBASE_REALTIME_MAX_CLIENT_PRESENCE_EVENTS", "3"),
    ])
    .await;
    let mut client = Client::open(&app).await;
    let join_ref = client.join("room", json!({})).await;
    let answer = client.ask(&join_ref, "realtime:room", "presence", track(json!("me"))).await;
    assert_eq!(answer["response"]["reason"], "Presence track payload must be a map");
    let answer = client.ask(&join_ref, "realtime:room", "presence", json!({ "event": "dance" })).await;
    assert_eq!(answer, json!({ "status": "error", "response": {} }));
    client.push(&join_ref, "realtime:room", "presence", track(json!({ "a": "x".repeat(2000) }))).await;
    assert_eq!(client.wait_for_event("system").await.payload["message"], "Track message size exceeded");
    client.wait_for_event("phx_close").await;
    let join_ref = client.join("room", json!({})).await;
    for n in 0..4 {
        client.push(&join_ref, "realtime:room", "presence", track(json!({ "n": n }))).await;
    }
    assert_eq!(client.wait_for_event("system").await.payload["message"], "Client presence rate limit exceeded");
    client.wait_for_event("phx_close").await;
}
