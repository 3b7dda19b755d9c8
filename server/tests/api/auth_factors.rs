//! Second factors: who may verify them, how often, and what verification ends.

use crate::support::{Actor, PASSWORD, TestApp};
use futures_util::future::join_all;
use hmac::{Hmac, Mac as _};
use serde_json::{Value, json};
use sha1::Sha1;

/// The current code (RFC 6238).
fn code(secret: &str) -> String {
    let key = data_encoding::BASE32_NOPAD.decode(secret.as_bytes()).expect("base32");
    let step = u64::try_from(chrono::Utc::now().timestamp()).expect("after 1970") / 30;
    let mut mac = Hmac::<Sha1>::new_from_slice(&key).expect("key");
    mac.update(&step.to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let offset = usize::from(digest[19] & 15);
    let word = u32::from_be_bytes(digest[offset..offset + 4].try_into().expect("four bytes"));
    format!("{:06}", (word & 0x7fff_ffff) % 1_000_000)
}

fn with_token<'a>(app: &'a TestApp, token: &Value) -> Actor<'a> {
    let mut actor = app.anon();
    actor.token = token.as_str().map(str::to_owned);
    actor
}

/// Enrols a factor. Returns its id and secret.
async fn enroll(actor: &Actor<'_>) -> (String, String) {
    let reply = actor.post("/auth/v1/factors", json!({ "factor_type": "totp" })).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    assert!(text(&reply.body["totp"]["qr_code"]).contains("<svg"));
    (text(&reply.body["id"]), text(&reply.body["totp"]["secret"]))
}

async fn challenge(actor: &Actor<'_>, factor: &str) -> String {
    let reply = actor.post(&format!("/auth/v1/factors/{factor}/challenge"), json!({})).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body["id"].as_str().expect("id").to_owned()
}

#[actix_web::test]
async fn one_of_many_requests_verifies_a_challenge_and_weaker_sessions_end() {
    let app = TestApp::start().await;
    let ada = app.user("ada@test.example").await;
    let other = app
        .anon()
        .post("/auth/v1/token?grant_type=password", json!({ "email": "ada@test.example", "password": PASSWORD }))
        .await;
    let (factor, secret) = enroll(&ada.actor).await;
    let path = format!("/auth/v1/factors/{factor}/verify");
    let body = json!({ "challenge_id": challenge(&ada.actor, &factor).await, "code": code(&secret) });
    let replies = join_all((0..8).map(|_| ada.actor.post(&path, body.clone()))).await;
    let won: Vec<_> = replies.iter().filter(|reply| reply.status == 200).collect();
    assert_eq!(won.len(), 1, "{:?}", replies.iter().map(|reply| &reply.body).collect::<Vec<_>>());
    for lost in replies.iter().filter(|reply| reply.status != 200) {
        assert_eq!((lost.status, &lost.body["error_code"]), (422, &json!("mfa_ip_address_mismatch")));
    }
    let weaker = with_token(&app, &other.body["access_token"]);
    let ended = weaker.get("/auth/v1/user").await;
    assert_eq!((ended.status, &ended.body["error_code"]), (403, &json!("session_not_found")));
    let raised = with_token(&app, &won[0].body["access_token"]);
    assert_eq!(raised.get("/auth/v1/user").await.status, 200);
    assert_eq!(raised.delete(&format!("/auth/v1/factors/{factor}")).await.status, 200);
}

#[actix_web::test]
async fn a_wrong_code_fails_and_another_users_factor_does_not_exist() {
    let app = TestApp::start().await;
    let (ada, bob) = (app.user("ada@test.example").await, app.user("bob@test.example").await);
    let (factor, secret) = enroll(&ada.actor).await;
    let challenge_id = challenge(&ada.actor, &factor).await;
    let wrong = if code(&secret) == "000000" { "000001" } else { "000000" };
    let verify = format!("/auth/v1/factors/{factor}/verify");
    let refused = ada.actor.post(&verify, json!({ "challenge_id": challenge_id, "code": wrong })).await;
    assert_eq!((refused.status, &refused.body["error_code"]), (422, &json!("mfa_verification_failed")));
    let right = json!({ "challenge_id": challenge_id, "code": code(&secret) });
    for reply in [
        bob.actor.post(&verify, right).await,
        bob.actor.post(&format!("/auth/v1/factors/{factor}/challenge"), json!({})).await,
        bob.actor.delete(&format!("/auth/v1/factors/{factor}")).await,
    ] {
        assert_eq!((reply.status, &reply.body["error_code"]), (404, &json!("mfa_factor_not_found")));
    }
}

#[actix_web::test]
async fn removing_a_verified_factor_requires_aal2() {
    let app = TestApp::start().await;
    let ada = app.user("ada@test.example").await;
    let (factor, secret) = enroll(&ada.actor).await;
    let body = json!({ "challenge_id": challenge(&ada.actor, &factor).await, "code": code(&secret) });
    assert_eq!(ada.actor.post(&format!("/auth/v1/factors/{factor}/verify"), body).await.status, 200);
    let again = app
        .anon()
        .post("/auth/v1/token?grant_type=password", json!({ "email": "ada@test.example", "password": PASSWORD }))
        .await;
    let low = with_token(&app, &again.body["access_token"]);
    let refused = low.delete(&format!("/auth/v1/factors/{factor}")).await;
    assert_eq!((refused.status, &refused.body["error_code"]), (422, &json!("insufficient_aal")));
    let second = low.post("/auth/v1/factors", json!({ "factor_type": "totp", "friendly_name": "2" })).await;
    assert_eq!((second.status, &second.body["error_code"]), (403, &json!("insufficient_aal")));
}

#[actix_web::test]
async fn without_an_sms_provider_phone_codes_arrive_in_the_inbox() {
    let settings = [
        ("GOTRUE_EXTERNAL_PHONE_ENABLED", "true"),
        ("GOTRUE_SMS_AUTOCONFIRM", "false"),
        ("GOTRUE_SMS_PROVIDER", "inbox"),
    ];
    let app = TestApp::with_settings(&settings).await;
    let asked = app.anon().post("/auth/v1/otp", json!({ "phone": "+15551230000" })).await;
    assert_eq!(asked.status, 200, "{}", asked.body);
    let row = app
        .owner
        .query_one("select body_text from _supavisor.outbox where recipient = '+15551230000@sms.invalid'", &[])
        .await
        .expect("one message");
    let code: String = row.get::<_, String>(0).chars().filter(char::is_ascii_digit).collect();
    let body = json!({ "type": "sms", "phone": "+15551230000", "token": code });
    let session = app.anon().post("/auth/v1/verify", body).await;
    assert_eq!((session.status, &session.body["user"]["phone"]), (200, &json!("15551230000")));
}
