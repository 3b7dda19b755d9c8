//! Second factors: a code works once, and nothing issued before verification reaches the second level.

use crate::auth::outside::Outside;
use crate::auth::sessions::{refresh, sign_in};
use crate::auth::tokens::claims_of;
use crate::auth::{meet, text};
use crate::support::{Actor, PASSWORD, Reply, TestApp};
use futures_util::future::join_all;
use hmac::{Hmac, Mac as _};
use serde_json::{Value, json};
use sha1::Sha1;

/// The code, offset by this many steps of 30 seconds (RFC 6238).
pub fn code(secret: &str, steps: i64) -> String {
    let key = data_encoding::BASE32_NOPAD.decode(secret.as_bytes()).expect("base32");
    let step = u64::try_from(chrono::Utc::now().timestamp() / 30 + steps).expect("after 1970");
    let mut mac = Hmac::<Sha1>::new_from_slice(&key).expect("key");
    mac.update(&step.to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let offset = usize::from(digest[19] & 15);
    let word = u32::from_be_bytes(digest[offset..offset + 4].try_into().expect("four bytes"));
    format!("{:06}", (word & 0x7fff_ffff) % 1_000_000)
}

pub struct Totp {
    pub id: String,
    pub secret: String,
}

pub async fn enroll(actor: &Actor<'_>) -> Totp {
    let reply = actor.post("/auth/v1/factors", json!({ "factor_type": "totp" })).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    Totp { id: text(&reply.body, "id").to_owned(), secret: text(&reply.body["totp"], "secret").to_owned() }
}

impl Totp {
    /// Answers a new challenge with a code.
    async fn answer(&self, actor: &Actor<'_>, code: &str) -> Reply {
        let path = format!("/auth/v1/factors/{}", self.id);
        let challenge = actor.post(&format!("{path}/challenge"), json!({})).await;
        assert_eq!(challenge.status, 200, "{}", challenge.body);
        let body = json!({ "challenge_id": challenge.body["id"], "code": code });
        actor.post(&format!("{path}/verify"), body).await
    }

    /// Raises the actor's session to the second level with the current code, which stays valid if the next step begins
    /// meanwhile.
    pub async fn raise(&self, actor: &Actor<'_>) -> Value {
        let reply = self.answer(actor, &code(&self.secret, 0)).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.body
    }
}

pub fn holder<'a>(app: &'a TestApp, session: &Value) -> Actor<'a> {
    let mut actor = app.anon();
    actor.token = Some(text(session, "access_token").to_owned());
    actor
}

pub fn aal(session: &Value) -> String {
    text(&claims_of(text(session, "access_token")), "aal").to_owned()
}

#[actix_web::test]
async fn a_used_code_works_for_no_other_challenge() {
    let app = TestApp::start().await;
    let ada = app.user("ada@test.example").await;
    let factor = enroll(&ada.actor).await;
    let used = code(&factor.secret, 0);
    assert_eq!(factor.answer(&ada.actor, &used).await.status, 200);
    let again = holder(&app, &sign_in(&app, "ada@test.example", PASSWORD).await);
    for spent in [used, code(&factor.secret, -1)] {
        let refused = factor.answer(&again, &spent).await;
        assert_eq!((refused.status, text(&refused.body, "error_code")), (422, "mfa_verification_failed"));
    }
    let next = factor.answer(&again, &code(&factor.secret, 1)).await;
    assert_eq!(next.status, 200, "the code of the next step: {}", next.body);
}

#[actix_web::test]
async fn one_of_many_requests_with_one_challenge_raises_a_session() {
    let twilio = Outside::start(&[("/2010-04-01/", 201, r#"{"sid": "SM1", "status": "queued"}"#)]);
    let app = TestApp::with_settings(&[
        ("GOTRUE_SMS_PROVIDER", "twilio"),
        ("GOTRUE_SMS_TWILIO_ACCOUNT_SID", "AC1"),
        ("GOTRUE_SMS_TWILIO_AUTH_TOKEN", "twilio-token"),
        ("GOTRUE_SMS_TWILIO_MESSAGE_SERVICE_SID", "MG1"),
        ("FERROBASE_SMS_TWILIO_URL", twilio.base.as_str()),
        ("GOTRUE_MFA_PHONE_ENROLL_ENABLED", "true"),
        ("GOTRUE_MFA_PHONE_VERIFY_ENABLED", "true"),
    ])
    .await;
    let ada = app.user("ada@test.example").await.actor;
    let factor = ada.post("/auth/v1/factors", json!({ "factor_type": "phone", "phone": "+15550000001" })).await;
    assert_eq!(factor.status, 200, "{}", factor.body);
    let path = format!("/auth/v1/factors/{}", text(&factor.body, "id"));
    let challenge = ada.post(&format!("{path}/challenge"), json!({})).await;
    assert_eq!(challenge.status, 200, "{}", challenge.body);
    let sent = twilio.asked().pop().expect("a message").1;
    let texted = sent.split('&').find_map(|pair| pair.strip_prefix("Body=")).expect("a text");
    let code: String = texted.chars().filter(char::is_ascii_digit).collect();
    let body = json!({ "challenge_id": challenge.body["id"], "code": code });
    let path = format!("{path}/verify");
    let requests = join_all((0..6).map(|_| ada.post(&path, body.clone())));
    let replies = meet(&app, "select from auth.mfa_challenges", 6, requests).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1, "{replies:?}");
    for refused in replies.iter().filter(|reply| reply.status != 200) {
        assert_eq!((refused.status, text(&refused.body, "error_code")), (422, "mfa_ip_address_mismatch"));
    }
}

#[actix_web::test]
async fn one_of_many_challenges_with_one_code_raises_a_session() {
    let app = TestApp::start().await;
    let ada = app.user("ada@test.example").await.actor;
    let factor = enroll(&ada).await;
    let path = format!("/auth/v1/factors/{}", factor.id);
    let challenging = format!("{path}/challenge");
    let challenges = join_all((0..4).map(|_| ada.post(&challenging, json!({})))).await;
    let code = code(&factor.secret, 0);
    let path = format!("{path}/verify");
    let requests = join_all(
        challenges
            .iter()
            .map(|challenge| ada.post(&path, json!({ "challenge_id": challenge.body["id"], "code": code }))),
    );
    let replies = meet(&app, "select from auth.mfa_challenges", 4, requests).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1, "{replies:?}");
}

#[actix_web::test]
async fn a_refresh_token_from_before_the_second_factor_stays_at_aal1() {
    for version in ["1", "2"] {
        let app = TestApp::with_settings(&[
            ("GOTRUE_SECURITY_REFRESH_TOKEN_ALGORITHM_VERSION", version),
            ("GOTRUE_SECURITY_REFRESH_TOKEN_REUSE_INTERVAL", "10"),
        ])
        .await;
        app.user("ada@test.example").await;
        let session = sign_in(&app, "ada@test.example", PASSWORD).await;
        let before = text(&session, "refresh_token").to_owned();
        let ada = holder(&app, &session);
        let raised = enroll(&ada).await.raise(&ada).await;
        assert_eq!(aal(&raised), "aal2");
        for _ in 0..2 {
            let refused = refresh(&app, &before).await;
            assert_eq!((refused.status, text(&refused.body, "error_code")), (400, "refresh_token_not_found"));
        }
        let next = refresh(&app, text(&raised, "refresh_token")).await;
        assert_eq!(
            (next.status, aal(&next.body).as_str()),
            (200, "aal2"),
            "the session that verified the factor continues"
        );
        let refused = refresh(&app, &before).await;
        assert_eq!(refused.status, 400, "nor right after a refresh: {}", refused.body);
    }
}

#[actix_web::test]
async fn removing_a_factor_lowers_its_sessions() {
    let app = TestApp::start().await;
    let ada = app.user("ada@test.example").await;
    let factor = enroll(&ada.actor).await;
    let raised = factor.raise(&ada.actor).await;
    let high = holder(&app, &raised);
    let low = holder(&app, &sign_in(&app, "ada@test.example", PASSWORD).await);
    for reply in [
        low.delete(&format!("/auth/v1/factors/{}", factor.id)).await,
        low.post("/auth/v1/factors", json!({ "factor_type": "totp", "friendly_name": "second" })).await,
        low.put("/auth/v1/user", json!({ "password": "another-Horse-8" })).await,
    ] {
        assert_eq!(text(&reply.body, "error_code"), "insufficient_aal");
    }
    // A refresh changes nothing about the level.
    let refreshed = refresh(&app, text(&raised, "refresh_token")).await;
    assert_eq!(aal(&refreshed.body), "aal2");
    assert_eq!(high.delete(&format!("/auth/v1/factors/{}", factor.id)).await.status, 200);
    let fallen = refresh(&app, text(&refreshed.body, "refresh_token")).await;
    assert_eq!(aal(&fallen.body), "aal1", "without the factor no second level");
}

#[actix_web::test]
async fn low_aal_sessions_expire_for_users_with_a_factor() {
    let app = TestApp::with_settings(&[("GOTRUE_SESSIONS_ALLOW_LOW_AAL", "15m")]).await;
    let ada = app.user("ada@test.example").await;
    enroll(&ada.actor).await.raise(&ada.actor).await;
    let low = sign_in(&app, "ada@test.example", PASSWORD).await;
    assert!(low["expires_in"].as_i64().is_some_and(|seconds| seconds <= 900), "{}", low["expires_in"]);
    app.owner
        .batch_execute("update auth.sessions set created_at = created_at - interval '16 minutes' where aal = 'aal1'")
        .await
        .expect("time passes");
    let ended = refresh(&app, text(&low, "refresh_token")).await;
    assert_eq!((ended.status, text(&ended.body, "error_code")), (400, "session_expired"));
}
