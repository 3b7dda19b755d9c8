//! The gateway of all APIs: keys, request ids, CORS, paths at the root.

use crate::support::wire::{UPGRADE, tunnel};
use crate::support::{TestApp, send};
use serde_json::{Value, json};

#[actix_web::test]
async fn health_reports_process_and_database() {
    let app = TestApp::start().await;
    let reply = send(app.plain(reqwest::Method::GET, "/health")).await;
    assert_eq!((reply.status, reply.body), (200, json!({ "status": "ok", "database": "ok" })));
    assert!(!reply.headers["x-request-id"].is_empty());
}

#[actix_web::test]
async fn a_clients_request_id_is_kept_if_it_is_valid() {
    let app = TestApp::start().await;
    let kept = send(app.plain(reqwest::Method::GET, "/health").header("x-request-id", "abc-1")).await;
    assert_eq!(kept.header("x-request-id"), "abc-1");
    let replaced = send(app.plain(reqwest::Method::GET, "/health").header("x-request-id", "a b\"c")).await;
    assert_ne!(replaced.header("x-request-id"), "a b\"c");
}

/// Regression: they were answered with the web app's page and status 200.
#[actix_web::test]
async fn an_api_that_is_not_served_gets_404_after_the_key_check() {
    let app = TestApp::start().await;
    for path in ["/analytics/v1/endpoints", "/graphql/v1"] {
        assert_eq!(send(app.plain(reqwest::Method::GET, path)).await.status, 401, "{path}");
        let reply = app.anon().get(path).await;
        let missing = json!({ "message": "no Route matched with those values" });
        assert_eq!((reply.status, reply.body), (404, missing), "{path}");
    }
}

#[actix_web::test]
async fn auth_server_metadata_is_served_at_the_root_without_a_key() {
    let app = TestApp::with_settings(&[("GOTRUE_OAUTH_SERVER_ENABLED", "true")]).await;
    let reply = send(app.plain(reqwest::Method::GET, "/.well-known/oauth-authorization-server")).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert!(reply.body["token_endpoint"].is_string(), "{}", reply.body);
    // As RFC 8414 forms it of the issuer `…/auth/v1`.
    let formed = send(app.plain(reqwest::Method::GET, "/.well-known/oauth-authorization-server/auth/v1")).await;
    assert_eq!((formed.status, &formed.body), (200, &reply.body));
    let formed = send(app.plain(reqwest::Method::GET, "/.well-known/openid-configuration/auth/v1?x=1")).await;
    let own = send(app.plain(reqwest::Method::GET, "/auth/v1/.well-known/openid-configuration")).await;
    assert_eq!((formed.status, formed.body), (200, own.body));
    let closed = TestApp::start().await;
    for path in ["oauth-authorization-server", "oauth-authorization-server/auth/v1", "oauth-protected-resource"] {
        let reply = send(closed.plain(reqwest::Method::GET, &format!("/.well-known/{path}"))).await;
        assert_eq!(reply.status, 404, "not the web app's page: {}", reply.body);
    }
}

/// Regression: storage sent no CORS headers, so pages of other origins could not use it.
#[actix_web::test]
async fn pages_of_other_origins_may_use_every_api() {
    let app = TestApp::start().await;
    for path in ["/auth/v1/health", "/rest/v1/", "/storage/v1/object/list/x", "/functions/v1/x"] {
        let asked = app
            .plain(reqwest::Method::OPTIONS, path)
            .header("origin", "https://other.example")
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "apikey,authorization,content-type,x-client-info,x-mine,a-mine");
        let reply = send(asked).await;
        assert!(matches!(reply.status, 200 | 204), "{path}: {}", reply.status);
        assert_eq!(reply.header("access-control-allow-origin"), "*", "{path}");
        // Any added headers, in any order: `createClient(…, { global: { headers: { "x-mine": "1" } } })`.
        for name in ["apikey", "x-mine", "a-mine"] {
            assert!(reply.header("access-control-allow-headers").to_lowercase().contains(name), "{path} {name}");
        }
        let request = app.anon().request(reqwest::Method::GET, path).header("origin", "https://other.example");
        assert_eq!(send(request).await.header("access-control-allow-origin"), "*", "{path}");
    }
}

#[actix_web::test]
async fn without_a_database_every_api_and_health_report_it() {
    let app = TestApp::start().await;
    app.lose_database().await;
    for method in [reqwest::Method::GET, reqwest::Method::HEAD] {
        // Regression: HEAD was answered by the web app's page.
        assert_eq!(send(app.plain(method, "/health")).await.status, 503);
    }
    let rest = app.anon().get("/rest/v1/categories").await;
    assert!(matches!(rest.status, 500 | 503), "{rest:?}");
    let auth =
        app.anon().post("/auth/v1/token?grant_type=password", json!({ "email": "a@b.example", "password": "x" })).await;
    assert_eq!((auth.status, &auth.body["error_code"]), (503, &json!("unexpected_failure")), "{auth:?}");
    assert!(!auth.header("retry-after").is_empty(), "{auth:?}");
    let function = app.anon().post("/functions/v1/get-categories", json!({})).await;
    assert_eq!((function.status, &function.body["code"]), (503, &json!("UNAVAILABLE")), "{function:?}");
    assert_eq!(function.header("x-relay-error"), "true", "the function never ran");
    let storage = app.service().post("/storage/v1/object/list/x", json!({ "prefix": "" })).await;
    assert!(storage.status >= 500, "{storage:?}");
    // PostgREST returns the database's message; the other APIs only log it.
    for reply in [auth, function, storage] {
        assert!(!reply.body.to_string().contains("test_"), "the answer reveals the database's name: {reply:?}");
    }
}

#[actix_web::test]
async fn tunnel_requests_are_answered_without_waiting_for_their_data() {
    let app = TestApp::start().await;
    let address = app.base.trim_start_matches("http://");
    let login = r#"{"email": "a@test.example", "password": "x"}"#;
    let key = &app.anon_key;
    for (line, body, status) in [
        (format!("GET /rest/v1/categories?apikey={key}"), "", 200),
        ("GET /rest/v1/categories".to_owned(), "", 401),
        (format!("GET /rest/v1/nothing?apikey={key}"), "", 404),
        (format!("GET /auth/v1/health?apikey={key}"), "", 200),
        (format!("POST /auth/v1/token?grant_type=password&apikey={key}"), login, 400),
        (format!("GET /auth/v1/nothing?apikey={key}"), "", 404),
        ("POST /functions/v1/get-categories".to_owned(), "{}", 200),
        ("GET /functions/v1/nothing".to_owned(), "", 404),
        ("GET /storage/v1/status".to_owned(), "", 200),
        ("GET /storage/v1/nothing".to_owned(), "", 404),
        ("GET /realtime/v1/websocket".to_owned(), "", 401),
        // An invalid handshake: the WebSocket key is missing.
        (format!("GET /realtime/v1/websocket?apikey={key}&vsn=1.0.0"), "", 400),
        ("GET /health".to_owned(), "", 200),
        ("GET /assets/nothing.js".to_owned(), "", 404),
        ("POST /nothing".to_owned(), "", 405),
    ] {
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let reply = tunnel(address, &format!("{line}\r\n{length}{UPGRADE}"), body).await;
        assert_eq!(reply.status, status, "{line}: {}", reply.text());
    }
}

/// Regression: a function was run, and its answer became the tunnel.
#[actix_web::test]
async fn proxy_methods_are_refused_everywhere() {
    let app = TestApp::start().await;
    let address = app.base.trim_start_matches("http://");
    for method in ["CONNECT", "TRACE"] {
        for path in [
            "/rest/v1/categories",
            "/auth/v1/health",
            "/functions/v1/get-categories",
            "/storage/v1/status",
            "/health",
            "/",
        ] {
            let headers = format!("apikey: {}\r\nConnection: close\r\n", app.anon_key);
            let reply = tunnel(address, &format!("{method} {path}\r\n{headers}"), "").await;
            let body: Value = serde_json::from_slice(&reply.body).expect("JSON");
            assert_eq!((reply.status, body), (405, json!({ "message": "Method not allowed" })), "{method} {path}");
        }
    }
    assert_eq!(tunnel(address, "CONNECT other.example:443", "").await.status, 405);
}

/// Regression: a proxy sends an absolute URL, which was appended to the path.
#[actix_web::test]
async fn root_metadata_is_served_for_absolute_form_targets() {
    let app = TestApp::with_settings(&[("GOTRUE_OAUTH_SERVER_ENABLED", "true")]).await;
    let address = app.base.trim_start_matches("http://");
    let target = "http://sky.example/.well-known/oauth-authorization-server";
    let reply = crate::support::wire::send(address, "GET", target, &[], b"").await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}
