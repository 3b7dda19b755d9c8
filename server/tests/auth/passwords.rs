//! Passwords: refusals, and what is never revealed.

use crate::auth::text;
use crate::support::{PASSWORD, TestApp};
use serde_json::json;

#[actix_web::test]
async fn weak_and_overlong_passwords_are_refused_everywhere() {
    let settings = [
        ("GOTRUE_PASSWORD_MIN_LENGTH", "10"),
        ("GOTRUE_PASSWORD_REQUIRED_CHARACTERS", "abcdefghijklmnopqrstuvwxyz:0123456789"),
    ];
    let app = TestApp::with_settings(&settings).await;
    let user = app.user("ada@test.example").await;
    let admin = format!("/auth/v1/admin/users/{}", user.id);
    for (password, reasons) in
        [("short1", json!(["length"])), ("LONG-ENOUGH", json!(["characters"])), ("A", json!(["length", "characters"]))]
    {
        let replies = [
            app.anon().post("/auth/v1/signup", json!({ "email": "b@test.example", "password": password })).await,
            user.actor.put("/auth/v1/user", json!({ "password": password })).await,
            app.service().put(&admin, json!({ "password": password })).await,
        ];
        for reply in replies {
            assert_eq!((reply.status, &reply.body["weak_password"]["reasons"]), (422, &reasons), "{}", reply.body);
        }
    }
    let long = format!("a1{}", "x".repeat(71));
    for reply in [
        app.anon().post("/auth/v1/signup", json!({ "email": "b@test.example", "password": long })).await,
        user.actor.put("/auth/v1/user", json!({ "password": long })).await,
        app.service().post("/auth/v1/admin/users", json!({ "email": "b@test.example", "password": long })).await,
    ] {
        assert_eq!((reply.status, text(&reply.body, "error_code")), (400, "validation_failed"), "{}", reply.body);
    }
}

#[actix_web::test]
async fn passwords_over_72_bytes_do_not_match_by_prefix() {
    let app = TestApp::start().await;
    let password = format!("aA1-{}", "x".repeat(68));
    let body = json!({ "email": "ada@test.example", "password": password });
    assert_eq!(app.anon().post("/auth/v1/signup", body).await.status, 200);
    let sign_in = async |password: String| {
        let body = json!({ "email": "ada@test.example", "password": password });
        app.anon().post("/auth/v1/token?grant_type=password", body).await.status
    };
    assert_eq!(sign_in(password.clone()).await, 200);
    assert_eq!(sign_in(format!("{password}tail")).await, 400);
}

#[actix_web::test]
async fn an_unconfirmed_address_is_not_revealed() {
    let app = TestApp::start().await;
    let body = json!({ "email": "ada@test.example", "password": PASSWORD, "email_confirm": false });
    assert_eq!(app.service().post("/auth/v1/admin/users", body).await.status, 200);
    let sign_up = async |password: &str| {
        app.anon().post("/auth/v1/signup", json!({ "email": "ada@test.example", "password": password })).await
    };
    let stranger = sign_up("not-Their-Horse-1").await;
    assert_eq!((stranger.status, text(&stranger.body, "error_code")), (422, "user_already_exists"));
    let confirmed: bool = app
        .owner
        .query_one("select email_confirmed_at is not null from auth.users where email = 'ada@test.example'", &[])
        .await
        .expect("user")
        .get(0);
    assert!(!confirmed, "a stranger's attempt confirms nothing");
    assert_eq!(sign_up(PASSWORD).await.status, 200);
}

#[actix_web::test]
async fn no_answer_contains_a_hash_or_a_token_column() {
    const COLUMNS: [&str; 6] = [
        "confirmation_token",
        "recovery_token",
        "email_change_token_current",
        "email_change_token_new",
        "phone_change_token",
        "reauthentication_token",
    ];
    let app = TestApp::start().await;
    let user = app.user("ada@test.example").await;
    let tokens: Vec<String> = COLUMNS.iter().map(|column| format!("{column} = 'stored {column}'")).collect();
    app.owner.batch_execute(&format!("update auth.users set {}", tokens.join(", "))).await.expect("tokens");
    let row = app.owner.query_one("select encrypted_password from auth.users", &[]).await.expect("user");
    let hash: String = row.get(0);
    assert_eq!(hash.len(), 60);
    let sign_in = json!({ "email": "ada@test.example", "password": PASSWORD });
    for reply in [
        user.actor.get("/auth/v1/user").await,
        app.anon().post("/auth/v1/token?grant_type=password", sign_in).await,
        app.service().get("/auth/v1/admin/users").await,
        app.service().get(&format!("/auth/v1/admin/users/{}", user.id)).await,
        app.service().get("/auth/v1/admin/audit").await,
        user.actor.put("/auth/v1/user", json!({ "data": { "a": 1 } })).await,
    ] {
        let body = reply.body.to_string();
        assert_eq!(reply.status, 200, "{body}");
        assert!(!body.contains(&hash) && !body.contains("encrypted_password"), "{body}");
        for column in COLUMNS {
            assert!(!body.contains(column), "{column} in {body}");
        }
    }
}
