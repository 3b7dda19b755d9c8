//! `/functions/v1`, with functions created by the tests.

use crate::support::{TestApp, send};
use serde_json::json;

const FUNCTIONS: &str = r#"
    create schema if not exists functions;
    grant usage on schema functions to anon, authenticated, service_role;
    create function functions."say-Hello"(input jsonb) returns jsonb language sql
      as $$ select jsonb_build_object('input', input, 'role', current_user::text,
              'method', current_setting('request.method'), 'path', current_setting('request.path')) $$;
    create function functions.refuse(input jsonb) returns jsonb language plpgsql
      as $$ begin raise exception 'Too many' using errcode = 'PT429', hint = 'wait'; end $$;
    create function functions.broken(input jsonb) returns jsonb language plpgsql
      as $$ begin return (select 1 / 0); end $$;
    create function functions.nap(input jsonb) returns jsonb language sql
      as $$ select to_jsonb(pg_sleep(60)::text) $$;
    create function functions.backend(input jsonb) returns jsonb language sql as 'select to_jsonb(pg_backend_pid())';
    create function functions.closed(input jsonb) returns jsonb language sql as 'select input';
    revoke execute on function functions.closed(jsonb) from public, anon, authenticated;
"#;

#[actix_web::test]
async fn a_function_is_found_by_its_exact_name_and_runs_as_the_caller() {
    let app = TestApp::start().await;
    app.owner.batch_execute(FUNCTIONS).await.expect("functions");
    let reply = app.anon().post("/functions/v1/say-Hello", json!({ "a": 1 })).await;
    assert_eq!(
        (reply.status, &reply.body),
        (200, &json!({ "input": { "a": 1 }, "role": "anon", "method": "POST", "path": "/functions/v1/say-Hello" }))
    );
    assert_eq!(reply.header("access-control-allow-origin"), "*");
    let deeper = app.service().get("/functions/v1/say-Hello/sub/path?x=1").await;
    assert_eq!(deeper.body["input"], json!({ "x": "1" }));
    assert_eq!(deeper.body["role"], "service_role");
    assert_eq!(deeper.body["path"], "/functions/v1/say-Hello/sub/path");
    // Names are case-sensitive.
    assert_eq!(app.anon().post("/functions/v1/say-hello", json!({})).await.status, 404);
}

#[actix_web::test]
async fn only_relay_errors_are_marked_as_such() {
    let app = TestApp::start().await;
    app.owner.batch_execute(FUNCTIONS).await.expect("functions");
    let missing = app.anon().post("/functions/v1/none", json!({})).await;
    assert_eq!((missing.status, missing.header("x-relay-error")), (404, "true"));
    let forged = send(app.plain(reqwest::Method::POST, "/functions/v1/refuse").bearer_auth("a.b.c")).await;
    assert_eq!((forged.status, forged.header("x-relay-error")), (401, "true"));
    let raised = app.anon().post("/functions/v1/refuse", json!({})).await;
    assert_eq!((raised.status, raised.header("x-relay-error")), (429, ""));
    assert_eq!(raised.body, json!({ "code": "PT429", "message": "Too many", "details": null, "hint": "wait" }));
}

#[actix_web::test]
async fn internal_errors_reveal_nothing_and_forbidden_functions_stay_forbidden() {
    let app = TestApp::start().await;
    app.owner.batch_execute(FUNCTIONS).await.expect("functions");
    let broken = app.anon().post("/functions/v1/broken", json!({})).await;
    assert_eq!(broken.status, 400, "22012 is the caller's mistake as far as we know");
    let closed = app.anon().post("/functions/v1/closed", json!({})).await;
    assert_eq!(closed.status, 401);
    assert_eq!(app.service().post("/functions/v1/closed", json!(3)).await.status, 403);
}

/// Regression: the HTTP library's own error had no CORS headers, so browsers only saw a failed fetch.
#[actix_web::test]
async fn an_oversized_body_is_refused_in_the_apis_format() {
    let app = TestApp::start().await;
    app.owner.batch_execute(FUNCTIONS).await.expect("functions");
    let large = app.anon().post("/functions/v1/say-Hello", json!("a".repeat(6 << 20))).await;
    assert_eq!((large.status, &large.body["code"]), (413, &json!("BAD_REQUEST")), "{}", large.body);
    assert_eq!(large.header("access-control-allow-origin"), "*");
}

/// Regression: long numbers were parsed as floating point and changed.
#[actix_web::test]
async fn numbers_keep_every_digit() {
    let app = TestApp::start().await;
    app.owner.batch_execute(FUNCTIONS).await.expect("functions");
    let request = app.anon().request(reqwest::Method::POST, "/functions/v1/say-Hello");
    let request = request.header("content-type", "application/json").body(r#"{"n": 12345678901234567890.10}"#);
    let text = request.send().await.expect("an answer").text().await.expect("a body");
    assert!(text.contains("12345678901234567890.10"), "{text}");
}

#[actix_web::test]
async fn json_that_the_database_cannot_store_is_a_client_error() {
    let app = TestApp::start().await;
    app.owner.batch_execute(FUNCTIONS).await.expect("functions");
    for body in [r#"{"a": "\u0000"}"#.to_owned(), r#""\ud800""#.to_owned(), "[".repeat(20_000) + &"]".repeat(20_000)] {
        let request = app.anon().request(reqwest::Method::POST, "/functions/v1/say-Hello");
        let reply = send(request.header("content-type", "application/json").body(body)).await;
        assert_eq!(reply.status, 400, "{}", reply.body);
    }
}

/// Whether the connection that served a call of the function `name` also serves the next one.
async fn keeps_its_connection(app: &TestApp, name: &str) -> bool {
    let before = app.anon().post("/functions/v1/backend", json!({})).await.body;
    app.anon().post(&format!("/functions/v1/{name}"), json!({})).await;
    let after = app.anon().post("/functions/v1/backend", json!({})).await.body;
    before == after
}

#[actix_web::test]
async fn a_failing_call_keeps_its_connection() {
    let app = TestApp::start().await;
    app.owner.batch_execute(FUNCTIONS).await.expect("functions");
    for name in ["say-Hello", "refuse", "broken", "none"] {
        assert!(keeps_its_connection(&app, name).await, "{name}");
    }
}

#[actix_web::test]
async fn an_abandoned_call_is_cancelled() {
    let app = TestApp::start().await;
    app.owner.batch_execute(FUNCTIONS).await.expect("functions");
    let running = "select count(*) from pg_stat_activity \
         where datname = current_database() and state = 'active' and pid <> pg_backend_pid() and query like '%nap%'";
    let nap = app.service().request(reqwest::Method::POST, "/functions/v1/nap").json(&json!({}));
    let gone = nap.timeout(std::time::Duration::from_millis(500)).send().await;
    assert!(gone.expect_err("abandoned").is_timeout());
    let mut left = -1_i64;
    for _ in 0..100 {
        left = app.owner.query_one(running, &[]).await.expect("a count").get(0);
        if left == 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(left, 0);
}

#[actix_web::test]
async fn a_token_with_an_unavailable_role_is_refused() {
    let app = TestApp::start().await;
    app.owner.batch_execute(FUNCTIONS).await.expect("functions");
    let key = jsonwebtoken::EncodingKey::from_secret(ferrobase::config::DEVELOPMENT_JWT_SECRET.as_bytes());
    for role in ["nobody-of-this-name", "postgres"] {
        let claims = json!({ "role": role, "exp": 4_000_000_000_i64 });
        let token = jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("a token");
        let mut actor = app.anon();
        actor.token = Some(token);
        let reply = actor.post("/functions/v1/say-Hello", json!({})).await;
        assert_eq!((reply.status, reply.header("x-relay-error")), (401, "true"), "{role}: {}", reply.body);
        let stored = actor.post("/storage/v1/object/list/private", json!({ "prefix": "" })).await;
        assert_eq!(stored.body["statusCode"], "403", "{role}: {}", stored.body);
    }
}

#[actix_web::test]
async fn settings_of_the_callers_role_apply() {
    let app = TestApp::start().await;
    app.owner.batch_execute(FUNCTIONS).await.expect("functions");
    // Roles are shared by the whole cluster, so this test uses its own.
    let role = format!("caller_{}", uuid::Uuid::new_v4().simple());
    let made = format!(
        "create role {role} nologin noinherit; grant {role} to authenticator; grant usage on schema functions to {role};
        alter role {role} set statement_timeout = '200ms'; alter role {role} set application_name = 'a=b';
        alter role {role} set role = 'service_role';
        create function functions.settings(input jsonb) returns jsonb language sql as $$ select jsonb_build_object(
            'limit', current_setting('statement_timeout'), 'name', current_setting('application_name'),
            'role', current_user::text) $$"
    );
    app.owner.batch_execute(&made).await.expect("a role with settings");
    let key = jsonwebtoken::EncodingKey::from_secret(ferrobase::config::DEVELOPMENT_JWT_SECRET.as_bytes());
    let claims = json!({ "role": role, "exp": 4_000_000_000_i64 });
    let mut actor = app.anon();
    actor.token = Some(jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).expect("a token"));
    let reply = actor.post("/functions/v1/settings", json!({})).await;
    assert_eq!(reply.body, json!({ "limit": "200ms", "name": "a=b", "role": role }));
    let slow = actor.post("/functions/v1/nap", json!({})).await;
    assert_eq!(slow.status, 504, "{}", slow.body);
    // The settings end with the call, even on a connection that another role uses next.
    for _ in 0..12 {
        let reply = app.service().post("/functions/v1/settings", json!({})).await;
        assert_ne!(reply.body["limit"], "200ms");
        assert_ne!(reply.body["name"], "a=b");
    }
    app.owner.batch_execute(&format!("drop owned by {role}; drop role {role}")).await.expect("the role goes");
}

/// Regression: slow functions used up the connections that they share with storage.
#[actix_web::test]
async fn slow_functions_leave_connections_for_storage() {
    let app = TestApp::start().await;
    app.owner
        .batch_execute(
            "create function functions.wait(input jsonb) returns jsonb language sql volatile as
            $$ select pg_advisory_xact_lock(4711); select '1'::jsonb $$;
            grant execute on function functions.wait(jsonb) to service_role;
            select pg_advisory_lock(4711)",
        )
        .await
        .expect("a function that waits");
    let calling = futures_util::future::join_all((0..6).map(async |_| {
        let reply = app.service().post("/functions/v1/wait", json!({})).await;
        assert_eq!((reply.status, reply.body), (200, json!(1)));
    }));
    let looking = async {
        let waiting = "select count(*) from pg_stat_activity \
                       where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'advisory'";
        while app.owner.query_one(waiting, &[]).await.expect("who waits").get::<_, i64>(0) < 3 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let reply = app.service().get("/storage/v1/bucket").await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(app.anon().get("/health").await.status, 200, "slow functions do not make the server unhealthy");
        app.owner.batch_execute("select pg_advisory_unlock(4711)").await.expect("they go on");
    };
    futures_util::join!(calling, looking);
}
