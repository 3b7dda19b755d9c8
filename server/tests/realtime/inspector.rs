//! The inspector: shows a topic's frames to authorised viewers, without tokens.

use actix_web::http::header::{AUTHORIZATION, HOST};
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use base64::Engine as _;
use serde_json::json;

use super::client::{Client, token, user_token};
use crate::support::TestApp;

const ANN: &str = "00000000-0000-4000-8000-000000000001";

/// Status and text of the page for a request from this address, with this host and authorization.
async fn page(
    app: &TestApp,
    is_development: bool,
    query: &str,
    (peer, host, authorization): (&str, &str, &str),
) -> (u16, String) {
    let service =
        actix_web::App::new().configure(|service| app.realtime.clone().configure_inspector(is_development, service));
    let service = init_service(service).await;
    let request = TestRequest::get()
        .uri(&format!("/realtime{query}"))
        .peer_addr(peer.parse().expect("an address"))
        .insert_header((HOST, host));
    let request =
        if authorization.is_empty() { request } else { request.insert_header((AUTHORIZATION, authorization)) };
    let reply = call_service(&service, request.to_request()).await;
    if reply.status() == 200 {
        let policy = reply.headers().get("content-security-policy").expect("a policy").to_str().expect("text");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    }
    (reply.status().as_u16(), String::from_utf8(read_body(reply).await.to_vec()).expect("text"))
}

const NEAR: (&str, &str, &str) = ("127.0.0.1:5", "localhost:54330", "");

#[actix_web::test]
async fn the_inspector_shows_frames_from_the_first_view_on_without_tokens() {
    let app = TestApp::start().await;
    let look = async || page(&app, true, "?topic=room%201", NEAR).await.1;
    let mut client = Client::open(&app).await;
    let ann = user_token(ANN);
    let message = |text: &str| json!({ "type": "broadcast", "event": "e", "payload": { "x": text } });
    let join_ref = client.join_as("room 1", json!({ "broadcast": { "self": true } }), Some(&ann)).await;
    client.push(&join_ref, "realtime:room 1", "broadcast", message("too early")).await;
    client.wait_for_event("broadcast").await;
    let text = look().await;
    assert!(text.contains("1 socket, 1 channel.") && text.contains("None since you look"), "{text}");
    assert!(text.contains("/realtime?topic=room%201") && text.contains(ANN), "{text}");
    let join_ref = client.join_as("room 1", json!({ "broadcast": { "self": true } }), Some(&ann)).await;
    client.push(&join_ref, "realtime:room 1", "broadcast", message("<script>alert(1)</script>")).await;
    client.wait_for_event("broadcast").await;
    client.join("elsewhere", json!({})).await;
    let text = look().await;
    for part in
        ["phx_join {", "(token)", "phx_reply", "phx_close", "&lt;script&gt;alert(1)", "from a client", "to 1 client"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    for part in ["too early", ann.as_str(), "<script>alert"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("realtime:elsewhere"), "frames of another topic");
    let list = page(&app, true, "", NEAR).await.1;
    assert!(list.contains("elsewhere") && list.contains("Choose a topic"), "{list}");
}

#[actix_web::test]
async fn only_local_clients_in_development_and_service_keys_have_access() {
    let app = TestApp::start().await;
    let basic =
        |key: &str| format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("anybody:{key}")));
    let (service, anon) = (basic(&app.service_key), basic(&app.anon_key));
    let expired = token(json!({ "role": "service_role", "exp": 1 }));
    let bearer = format!("bearer {}", app.service_key);
    let far = "203.0.113.9:5";
    for (is_development, whence, expected) in [
        (true, NEAR, 200),
        (true, ("[::1]:5", "[::1]:54330", ""), 200),
        (false, NEAR, 401),
        (true, (far, "localhost:54330", ""), 401),
        (true, ("127.0.0.1:5", "rebound.example:54330", ""), 401),
        (false, (far, "ops.example", service.as_str()), 200),
        (false, (far, "ops.example", bearer.as_str()), 200),
        (false, (far, "ops.example", anon.as_str()), 401),
        (false, (far, "ops.example", &basic(&expired)), 401),
        (false, (far, "ops.example", &basic("")), 401),
        (false, (far, "ops.example", "Basic !"), 401),
        (false, (far, "ops.example", app.service_key.as_str()), 401),
    ] {
        let (status, text) = page(&app, is_development, "?topic=x", whence).await;
        assert_eq!(status, expected, "{is_development} {whence:?}: {text}");
        assert_eq!(text.contains("<h1>"), expected == 200);
    }
}
