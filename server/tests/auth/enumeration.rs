//! Nobody learns who has an account: not by the answer, not by what it costs.

use crate::support::{PASSWORD, TestApp};
use crate::take_mail;
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
async fn a_failed_sign_in_costs_one_comparison_whoever_it_is_for() {
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

/// The answer without what is new in each.
fn shape(body: &Value) -> Vec<String> {
    let mut keys: Vec<String> = body.as_object().map(|o| o.keys().cloned().collect()).unwrap_or_default();
    keys.sort();
    keys
}

#[actix_web::test]
async fn signing_up_with_a_taken_address_looks_like_a_new_one_but_for_its_identities() {
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
    assert_eq!(taken.body["user_metadata"], json!({ "a": 1 }));
    let id: String = app
        .owner
        .query_one("select id::text from auth.users where email = 'taken@test.example'", &[])
        .await
        .expect("the account")
        .get(0);
    assert_ne!(taken.body["id"], json!(id));
    assert!(take_mail(&app, "taken@test.example").await.is_none(), "no mail to whoever has it");
    assert!(take_mail(&app, "new@test.example").await.is_some());
}

#[actix_web::test]
async fn recovery_and_resend_and_one_time_codes_answer_alike_for_everybody() {
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
        // Somebody else each time: who asked for a code is known from then on.
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
async fn only_who_knows_the_password_learns_of_a_ban() {
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
