use crate::support::{TestApp, send};
use serde_json::json;

#[actix_web::test]
async fn health_says_that_process_and_database_answer() {
    let app = TestApp::start().await;
    let reply = send(app.plain(reqwest::Method::GET, "/health")).await;
    assert_eq!((reply.status, reply.body), (200, json!({ "status": "ok", "database": "ok" })));
    assert!(!reply.headers["x-request-id"].is_empty());
}

#[actix_web::test]
async fn a_callers_request_id_is_kept_when_it_is_plain() {
    let app = TestApp::start().await;
    let kept = send(app.plain(reqwest::Method::GET, "/health").header("x-request-id", "abc-1")).await;
    assert_eq!(kept.header("x-request-id"), "abc-1");
    let replaced = send(app.plain(reqwest::Method::GET, "/health").header("x-request-id", "a b\"c")).await;
    assert_ne!(replaced.header("x-request-id"), "a b\"c");
}
