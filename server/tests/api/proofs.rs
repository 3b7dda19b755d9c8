//! Proving an address, and attempts to guess or reuse a proof.

use crate::support::{TestApp, send};
use reqwest::Method;
use serde_json::json;

const VERIFIER: &str = "a-verifier-of-at-least-forty-three-characters-0123";
/// base64url(sha256(VERIFIER)) would work too; `plain` keeps the test short.
const METHOD: &str = "plain";

/// The text of the newest mail to `address`.
async fn mail_text(app: &TestApp, address: &str, subject: &str) -> String {
    let row = app
        .owner
        .query_one(
            "select body_text from _supavisor.outbox where recipient = $1 and subject ~* $2 order by id desc limit 1",
            &[&address, &subject],
        )
        .await
        .expect("a mail");
    row.get(0)
}

fn link_in(text: &str) -> String {
    let start = text.find("/auth/v1/verify?").expect("a link");
    text[start..].split_whitespace().next().expect("a link").trim_end_matches(')').to_owned()
}

#[actix_web::test]
async fn a_failing_filter_does_not_undo_a_wrong_guess() {
    let app = TestApp::start().await;
    let address = "victim@test.example";
    app.anon().post("/rest/v1/rpc/send_address_code", json!({ "email": address })).await;
    let guess = json!({ "email": address, "code": "no code" });
    for judgement in [
        "pgrst_scalar->>reason=match.((",
        "row_to_json->>pgrst_scalar=match.((",
        "select=pgrst_scalar:pgrst_scalar->>ok::int",
        "select=pgrst_scalar:row_to_json->pgrst_scalar->>ok::int",
    ] {
        let reply = app.anon().post(&format!("/rest/v1/rpc/check_address_code?{judgement}"), guess.clone()).await;
        assert_eq!((reply.status, &reply.body["code"]), (400, &json!("PGRST100")), "{judgement}: {}", reply.body);
    }
    let reply = app.anon().post("/rest/v1/rpc/check_address_code", guess).await;
    assert_eq!(reply.body, json!({ "ok": false, "reason": "wrong_code", "tries_left": 4 }));
}

#[actix_web::test]
async fn a_code_for_the_old_address_does_not_prove_the_new_one() {
    let app = TestApp::start().await;
    let (own, foreign) = ("own@test.example", "foreign@test.example");
    let user = app.user(own).await;
    let asked = json!({ "email": own, "code_challenge": VERIFIER, "code_challenge_method": METHOD });
    assert_eq!(app.anon().post("/auth/v1/recover", asked).await.status, 200);
    let reply = send(app.plain(Method::GET, &link_in(&mail_text(&app, own, "password").await))).await;
    let code = reply.header("location").split("code=").nth(1).expect("a code").to_owned();

    assert_eq!(user.actor.put("/auth/v1/user", json!({ "email": foreign })).await.status, 200);
    let confirmed = send(app.plain(Method::GET, &link_in(&mail_text(&app, own, "email").await))).await;
    assert_eq!(confirmed.status, 303);
    assert_eq!(user.actor.get("/auth/v1/user").await.body["email"], foreign);

    let exchange = json!({ "auth_code": code, "code_verifier": VERIFIER });
    let reply = app.anon().post("/auth/v1/token?grant_type=pkce", exchange).await;
    assert_eq!((reply.status, &reply.body["error_code"]), (404, &json!("flow_state_not_found")), "{}", reply.body);
}
