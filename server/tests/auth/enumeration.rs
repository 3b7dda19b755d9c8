//! Enumeration: neither answers nor response times reveal who has an account.

use crate::auth::take_mail;
use crate::support::{PASSWORD, TestApp};
use serde_json::{Value, json};

const CONFIRMED: [(&str, &str); 2] = [("GOTRUE_MAILER_AUTOCONFIRM", "false"), ("GOTRUE_SMTP_MAX_FREQUENCY", "1ns")];

async fn confirmed_user(app: &TestApp, email: &str) {
    let reply = app
        .service()
        .post("/auth/v1/admin/users", json!({ "email": email, "password": PASSWORD, "email_confirm": true }))
        .await;
    assert_eq!(reply.status, 200, "{}", reply.body);
}

#[actix_web::test]
async fn every_failed_sign_in_costs_one_hash_comparison() {
    let app = TestApp::with_settings(&CONFIRMED).await;
    confirmed_user(&app, "known@test.example").await;
    app.owner
        .batch_execute(
            "insert into auth.users (instance_id, id, aud, email) values
            ('00000000-0000-0000-0000-000000000000', gen_random_uuid(), 'authenticated', 'bare@test.example')",
        )
        .await
        .expect("a user without a password");
    let mut answers = Vec::new();
    for email in ["known@test.example", "unknown@test.example", "bare@test.example"] {
        let before = app.auth.password_verifications();
        let reply = app
            .anon()
            .post("/auth/v1/token?grant_type=password", json!({ "email": email, "password": "wrong-Password-1" }))
            .await;
        assert_eq!(app.auth.password_verifications() - before, 1, "{email}");
        answers.push((reply.status, reply.body));
    }
    assert_eq!(answers[0].0, 400);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
}

/// The members of an answer without values that differ every time.
fn shape(body: &Value) -> Vec<String> {
    let mut keys: Vec<String> = body.as_object().map(|o| o.keys().cloned().collect()).unwrap_or_default();
    keys.sort();
    keys
}

#[actix_web::test]
async fn signing_up_with_a_taken_address_differs_only_in_identities() {
    let app = TestApp::with_settings(&CONFIRMED).await;
    confirmed_user(&app, "taken@test.example").await;
    app.owner
        .batch_execute(
            "update auth.users set invited_at = now(), banned_until = now() + interval '1 day',
            phone_change = '15550001', recovery_sent_at = now() where email = 'taken@test.example'",
        )
        .await
        .expect("a state that must not show");
    let sign_up = async |email: &str| {
        app.anon().post("/auth/v1/signup", json!({ "email": email, "password": PASSWORD, "data": { "a": 1 } })).await
    };
    let (new, taken) = (sign_up("new@test.example").await, sign_up("taken@test.example").await);
    assert_eq!((new.status, taken.status), (200, 200));
    assert_eq!(shape(&new.body), shape(&taken.body));
    assert_eq!(taken.body["identities"], json!([]));
    assert_eq!(taken.body["app_metadata"], json!({ "provider": "email", "providers": ["email"] }));
    // Their values are the same too, except those that differ every time.
    let common = |body: &Value| {
        let mut body = body.clone();
        for name in ["id", "email", "created_at", "updated_at", "confirmation_sent_at", "identities"] {
            body[name] = Value::Null;
        }
        for name in ["sub", "email"] {
            body["user_metadata"][name] = Value::Null;
        }
        body
    };
    assert_eq!(common(&new.body), common(&taken.body));
    assert_eq!(taken.body["user_metadata"]["sub"], taken.body["id"]);
    // Nor does an unconfirmed address, regardless of who signed up first.
    let again = sign_up("new@test.example").await;
    assert_eq!(common(&new.body), common(&again.body));
    assert_eq!(shape(&new.body["identities"][0]), shape(&again.body["identities"][0]));
    assert_ne!(new.body["created_at"], again.body["created_at"], "it says nothing of when that was");
    let id: String = app
        .owner
        .query_one("select id::text from auth.users where email = 'taken@test.example'", &[])
        .await
        .expect("the account")
        .get(0);
    assert_ne!(taken.body["id"], json!(id));
    assert!(take_mail(&app, "taken@test.example").await.is_none(), "no mail to the owner of the address");
    assert!(take_mail(&app, "new@test.example").await.is_some());
    assert!(take_mail(&app, "new@test.example").await.is_some());
}

#[actix_web::test]
async fn recovery_resend_and_otp_answer_the_same_for_all_addresses() {
    let app = TestApp::with_settings(&CONFIRMED).await;
    confirmed_user(&app, "known@test.example").await;
    for (path, rest) in [
        ("/auth/v1/recover", json!({})),
        ("/auth/v1/otp", json!({})),
        ("/auth/v1/magiclink", json!({})),
        ("/auth/v1/resend", json!({ "type": "signup" })),
        ("/auth/v1/resend", json!({ "type": "email_change" })),
    ] {
        let mut answers = Vec::new();
        // A new client each time, because a client that requested a code is remembered.
        let unknown = format!("{}@test.example", uuid::Uuid::new_v4());
        for email in ["known@test.example", &unknown] {
            let mut body = rest.clone();
            body["email"] = json!(email);
            let reply = app.anon().post(path, body).await;
            answers.push((reply.status, reply.body));
        }
        assert_eq!(answers[0], (200, json!({})), "{path}");
        assert_eq!(answers[0], answers[1], "{path}");
    }
    assert!(take_mail(&app, "known@test.example").await.is_some());
}

#[actix_web::test]
async fn a_ban_is_revealed_only_with_the_password() {
    let app = TestApp::with_settings(&CONFIRMED).await;
    confirmed_user(&app, "banned@test.example").await;
    app.owner.batch_execute("update auth.users set banned_until = now() + interval '1 day'").await.expect("banned");
    let sign_in = async |password: &str| {
        app.anon()
            .post("/auth/v1/token?grant_type=password", json!({ "email": "banned@test.example", "password": password }))
            .await
    };
    assert_eq!(sign_in("wrong-Password-1").await.body["error_code"], "invalid_credentials");
    assert_eq!(sign_in(PASSWORD).await.body["error_code"], "user_banned");
}

#[actix_web::test]
async fn resend_intervals_reveal_nothing_about_an_address() {
    let app =
        TestApp::with_settings(&[("GOTRUE_MAILER_AUTOCONFIRM", "false"), ("GOTRUE_SMTP_MAX_FREQUENCY", "1m")]).await;
    confirmed_user(&app, "known@test.example").await;
    for (path, rest) in [
        ("/auth/v1/recover", json!({})),
        ("/auth/v1/magiclink", json!({})),
        ("/auth/v1/resend", json!({ "type": "signup" })),
        ("/auth/v1/resend", json!({ "type": "email_change" })),
        ("/auth/v1/signup", json!({ "password": PASSWORD })),
    ] {
        app.owner
            .batch_execute("update auth.users set recovery_sent_at = null, confirmation_sent_at = null")
            .await
            .expect("long ago");
        // Each path uses its own people.
        let (known, unknown) =
            (format!("{}@test.example", uuid::Uuid::new_v4()), format!("{}@test.example", uuid::Uuid::new_v4()));
        confirmed_user(&app, &known).await;
        let mut answers = Vec::new();
        for email in [&known, &unknown] {
            let mut statuses = Vec::new();
            for _ in 0..2 {
                let mut body = rest.clone();
                body["email"] = json!(email);
                let reply = app.anon().post(path, body).await;
                statuses.push((reply.status, reply.body["error_code"].clone()));
            }
            answers.push(statuses);
        }
        assert_eq!(answers[0], answers[1], "{path}");
        assert_eq!((answers[0][0].0, answers[0][1].0), (200, 429), "{path}");
    }
}

#[actix_web::test]
async fn a_recent_mail_requested_by_another_client_is_not_revealed() {
    let settings = [
        ("GOTRUE_MAILER_AUTOCONFIRM", "false"),
        ("GOTRUE_SMTP_MAX_FREQUENCY", "1m"),
        ("FERROBASE_TRUSTED_PROXIES", "127.0.0.1"),
    ];
    let app = TestApp::with_settings(&settings).await;
    confirmed_user(&app, "known@test.example").await;
    let recover = async |from: &str| {
        let request = app.anon().request(reqwest::Method::POST, "/auth/v1/recover").header("x-forwarded-for", from);
        crate::support::send(request.json(&json!({ "email": "known@test.example" }))).await.status
    };
    assert_eq!(recover("192.0.2.1").await, 200);
    assert!(take_mail(&app, "known@test.example").await.is_some());
    assert_eq!(recover("192.0.2.1").await, 429, "the client that asked must wait");
    assert_eq!(recover("198.51.100.1").await, 200, "other clients need not");
    assert!(take_mail(&app, "known@test.example").await.is_none(), "and no second mail leaves");
}

#[actix_web::test]
async fn a_wrong_code_does_not_reveal_a_ban() {
    let app = TestApp::with_settings(&CONFIRMED).await;
    confirmed_user(&app, "banned@test.example").await;
    app.owner.batch_execute("update auth.users set banned_until = now() + interval '1 day'").await.expect("banned");
    let body = json!({ "type": "email", "email": "banned@test.example", "token": "000000" });
    let reply = app.anon().post("/auth/v1/verify", body).await;
    assert_eq!((reply.status, &reply.body["error_code"]), (403, &json!("otp_expired")));
}

#[actix_web::test]
async fn the_mail_limit_counts_unknown_addresses_too() {
    let app = TestApp::with_settings(&[CONFIRMED[0], CONFIRMED[1], ("GOTRUE_RATE_LIMIT_EMAIL_SENT", "2")]).await;
    for (n, wanted) in [(1, 200), (2, 200), (3, 429)] {
        let reply = app.anon().post("/auth/v1/recover", json!({ "email": format!("nobody-{n}@test.example") })).await;
        assert_eq!(reply.status, wanted, "{}", reply.body);
    }
}
