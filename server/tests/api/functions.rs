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
    // Other letter case is another name.
    assert_eq!(app.anon().post("/functions/v1/say-hello", json!({})).await.status, 404);
}

#[actix_web::test]
async fn only_the_relay_marks_its_own_refusals() {
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
async fn a_fault_inside_tells_nothing_of_itself_and_a_closed_function_stays_closed() {
    let app = TestApp::start().await;
    app.owner.batch_execute(FUNCTIONS).await.expect("functions");
    let broken = app.anon().post("/functions/v1/broken", json!({})).await;
    assert_eq!(broken.status, 400, "22012 is the caller's mistake as far as we know");
    let closed = app.anon().post("/functions/v1/closed", json!({})).await;
    assert_eq!(closed.status, 401);
    assert_eq!(app.service().post("/functions/v1/closed", json!(3)).await.status, 403);
}
