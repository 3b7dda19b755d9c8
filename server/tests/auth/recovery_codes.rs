//! Recovery codes: each raises one session once, wrong ones lock them, and they are never the only factor.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::factors::{Totp, aal, enroll, holder};
use super::sessions::{refresh, sign_in};
use super::tokens::claims_of;
use super::{meet, take_mail, text};
use crate::support::{Actor, PASSWORD, Reply, TestApp};

const ADA: &str = "ada@test.example";
const CODES: &str = "/auth/v1/factors/recovery-codes";
const VERIFY: &str = "/auth/v1/factors/recovery-codes/verify";
const REGENERATE: &str = "/auth/v1/factors/recovery-codes/regenerate";

async fn start(settings: &[(&str, &str)]) -> TestApp {
    let on = [
        ("GOTRUE_MFA_RECOVERY_CODES_ENROLL_ENABLED", "true"),
        ("GOTRUE_MFA_RECOVERY_CODES_VERIFY_ENABLED", "true"),
        // Tests of the lock are not those of the delays.
        ("GOTRUE_MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY", "1000"),
    ];
    TestApp::with_settings(&[&on, settings].concat()).await
}

/// Ada at the second level, with the factor that took her there.
async fn raised(app: &TestApp) -> (Actor<'_>, Totp) {
    let ada = app.user(ADA).await.actor;
    let factor = enroll(&ada).await;
    (holder(app, &factor.raise(&ada).await), factor)
}

async fn generate(actor: &Actor<'_>) -> (String, Vec<String>) {
    read(actor.post(CODES, json!({})).await)
}

fn read(reply: Reply) -> (String, Vec<String>) {
    assert_eq!(reply.status, 200, "{}", reply.body);
    let codes = reply.body["codes"].as_array().expect("codes");
    let codes = codes.iter().map(|code| code.as_str().expect("a code").to_owned()).collect();
    (text(&reply.body, "id").to_owned(), codes)
}

async fn redeem(actor: &Actor<'_>, code: &str) -> Reply {
    actor.post(VERIFY, json!({ "code": code })).await
}

fn refused(reply: &Reply) -> (u16, &str, &str) {
    (reply.status, text(&reply.body, "error_code"), text(&reply.body, "msg"))
}

const WRONG: (u16, &str, &str) = (422, "mfa_verification_failed", "Invalid recovery code entered");
const LOCKED: (u16, &str, &str) =
    (429, "mfa_recovery_codes_locked", "Too many failed verification attempts, try again later");
const NOT_ENROLLED: (u16, &str, &str) = (404, "mfa_factor_not_found", "The user has not enrolled recovery codes");

async fn low(app: &TestApp) -> Actor<'_> {
    holder(app, &sign_in(app, ADA, PASSWORD).await)
}

#[actix_web::test]
async fn each_recovery_code_raises_one_session_once() {
    let app = start(&[
        ("GOTRUE_MFA_RECOVERY_CODES_COUNT", "4"),
        ("GOTRUE_MFA_RECOVERY_CODES_CODE_LENGTH", "20"),
        ("GOTRUE_MAILER_NOTIFICATIONS_MFA_FACTOR_ENROLLED_ENABLED", "true"),
    ])
    .await;
    let (high, _) = raised(&app).await;
    while take_mail(&app, ADA).await.is_some() {}
    assert_eq!(refused(&high.get(CODES).await), NOT_ENROLLED);
    let reply = high.post(CODES, json!({ "friendly_name": "safe" })).await;
    let answer = reply.body.clone();
    let (id, codes) = read(reply);
    let expected =
        json!({ "id": id, "type": "recovery_code", "friendly_name": "safe", "total": 4, "codes": answer["codes"] });
    assert_eq!(answer, expected);
    assert!(codes.iter().all(|code| code.len() == 20), "{codes:?}");
    assert!(take_mail(&app, ADA).await.is_some(), "the owner is told");
    // Stored are hashes only.
    let rows = app.owner.query("select code_hash from auth.mfa_recovery_codes", &[]).await.expect("hashes");
    let hashes: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(hashes.len(), 4);
    assert!(hashes.iter().all(|hash| hash.starts_with("$argon2id$v=19$m=19456,t=1,p=1$")), "{hashes:?}");
    let exists = "Recovery codes are already enrolled for this user, use regenerate to rotate them";
    let again = high.post(CODES, json!({ "friendly_name": "another" })).await;
    assert_eq!(refused(&again), (422, "mfa_verified_factor_exists", exists));

    // Typed in groups and capitals, by somebody at the first level. Other sessions of that level end.
    let (session, other) = (low(&app).await, low(&app).await);
    let mut typed = codes[2].to_uppercase();
    typed.insert(10, ' ');
    typed.insert(5, '-');
    let answer = redeem(&session, &typed).await;
    assert_eq!((answer.status, aal(&answer.body).as_str()), (200, "aal2"), "{}", answer.body);
    let claims = claims_of(text(&answer.body, "access_token"));
    let methods = claims["amr"].as_array().expect("methods");
    assert!(methods.iter().any(|entry| entry["method"] == "mfa/recovery_code"), "{methods:?}");
    let factors = answer.body["user"]["factors"].as_array().expect("factors");
    let shown = factors.iter().find(|factor| factor["id"] == id.as_str()).expect("the factor");
    assert_eq!((text(shown, "factor_type"), text(shown, "status")), ("recovery_code", "verified"));
    assert_eq!(other.get("/auth/v1/user").await.status, 403);
    assert_eq!(aal(&refresh(&app, text(&answer.body, "refresh_token")).await.body), "aal2");

    let next = low(&app).await;
    let status = next.get(CODES).await;
    assert_eq!(status.body, json!({ "id": id, "type": "recovery_code", "total": 4, "remaining": 3 }));
    assert_eq!(refused(&redeem(&next, &codes[2]).await), WRONG);
    assert_eq!(redeem(&next, &codes[0]).await.status, 200);
    let stranger = app.user("ben@test.example").await.actor;
    assert_eq!(refused(&redeem(&stranger, &codes[1]).await), WRONG);

    let sql = "select payload -> 'traits' from auth.audit_log_entries where payload ->> 'action' = $1
               and payload ->> 'log_type' = 'factor' order by created_at";
    let traits = async |action: &str| -> Vec<Value> {
        let rows = app.owner.query(sql, &[&action]).await.expect("entries");
        rows.iter().map(|row| row.get(0)).collect()
    };
    assert_eq!(traits("recovery_codes_generated").await, [json!({ "factor_id": id, "count": 4 })]);
    let used = |remaining: i32| json!({ "factor_id": id, "remaining": remaining });
    assert_eq!(traits("recovery_codes_verified").await, [used(3), used(2)]);
}

#[actix_web::test]
async fn one_of_many_requests_with_one_recovery_code_raises_a_session() {
    let app = start(&[]).await;
    let (high, _) = raised(&app).await;
    let (_, codes) = generate(&high).await;
    let session = low(&app).await;
    let requests = join_all((0..4).map(|_| redeem(&session, &codes[0])));
    let replies = meet(&app, "select from auth.users", 4, requests).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1, "{replies:?}");
    for reply in replies.iter().filter(|reply| reply.status != 200) {
        assert_eq!(refused(reply), WRONG);
    }
    let sql = "select failed_verification_count from auth.mfa_recovery_code_sets";
    assert!(app.owner.query_one(sql, &[]).await.expect("the set").get::<_, i32>(0) <= 3);
}

#[actix_web::test]
async fn wrong_recovery_codes_lock_all_of_them_for_a_while() {
    let app = start(&[
        ("GOTRUE_MFA_RECOVERY_CODES_MAX_VERIFY_ATTEMPTS", "3"),
        ("GOTRUE_MFA_RECOVERY_CODES_LOCKOUT_DURATION", "10m"),
    ])
    .await;
    let (high, _) = raised(&app).await;
    let (id, codes) = generate(&high).await;
    let session = low(&app).await;
    let empty = redeem(&session, " - ").await;
    assert_eq!(refused(&empty), (400, "validation_failed", "Code needs to be non-empty"));
    let fail = async |times: usize| {
        for _ in 0..times {
            assert_eq!(refused(&redeem(&session, "aaaaaaaaaaaaaaaa").await), WRONG);
        }
    };
    fail(3).await;
    assert_eq!(refused(&redeem(&session, &codes[0]).await), LOCKED);
    let sql = "select verification_locked_until - now() from auth.mfa_recovery_code_sets";
    let sql = format!("select extract(epoch from ({sql}))::float8");
    let seconds: f64 = app.owner.query_one(&sql, &[]).await.expect("the set").get(0);
    assert!((500.0..=600.0).contains(&seconds), "{seconds}");
    // Then the count begins anew.
    let later = "update auth.mfa_recovery_code_sets set verification_locked_until = now() - interval '1 second'";
    app.owner.batch_execute(later).await.expect("time passes");
    fail(2).await;
    let answer = redeem(&session, &codes[0]).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    // New codes end a lock and all old codes.
    let session = low(&app).await;
    for _ in 0..3 {
        assert_eq!(refused(&redeem(&session, "aaaaaaaaaaaaaaaa").await), WRONG);
    }
    assert_eq!(refused(&redeem(&session, &codes[1]).await), LOCKED);
    let rotated = high.post(REGENERATE, json!({})).await;
    assert_eq!((&rotated.body["total"], text(&rotated.body, "friendly_name")), (&json!(10), "Recovery codes"));
    let (same, fresh) = read(rotated);
    assert_eq!(same, id);
    assert!(fresh.len() == 10 && fresh.iter().all(|code| !codes.contains(code)), "{fresh:?}");
    assert_eq!(refused(&redeem(&session, &codes[1]).await), WRONG);
    assert_eq!(redeem(&session, &fresh[1]).await.status, 200);
    let status = high.get(CODES).await.body;
    assert_eq!((&status["total"], &status["remaining"]), (&json!(10), &json!(9)));
}

#[actix_web::test]
async fn recovery_codes_are_never_the_only_factor() {
    let app = start(&[]).await;
    let ada = app.user(ADA).await.actor;
    let aal1 = |what: &str| format!("AAL2 required to {what} recovery codes");
    for (reply, what) in [
        (ada.post(CODES, json!({})).await, "generate"),
        (ada.post(REGENERATE, json!({})).await, "regenerate"),
        (ada.delete(CODES).await, "delete"),
    ] {
        assert_eq!(refused(&reply), (403, "insufficient_aal", aal1(what).as_str()));
    }
    let totp = enroll(&ada).await;
    let high = holder(&app, &totp.raise(&ada).await);
    // A factor that is not proven does not count.
    let sole = "At least one other verified factor is required to generate recovery codes";
    app.owner.batch_execute("update auth.mfa_factors set status = 'unverified'").await.expect("set");
    assert_eq!(refused(&high.post(CODES, json!({})).await), (422, "mfa_recovery_codes_sole_factor", sole));
    app.owner.batch_execute("update auth.mfa_factors set status = 'verified'").await.expect("set");
    assert_eq!(refused(&high.post(REGENERATE, json!({})).await), NOT_ENROLLED);
    assert_eq!(refused(&high.delete(CODES).await), NOT_ENROLLED);
    let (id, codes) = generate(&high).await;

    let path = format!("/auth/v1/factors/{}", totp.id);
    let only = "Recovery codes cannot be the only verified factor. Please enroll another factor before unenrolling this one \
                or delete your recovery codes.";
    assert_eq!(refused(&high.delete(&path).await), (422, "mfa_recovery_codes_sole_factor", only));
    let wrong_door = "Recovery codes cannot be unenrolled with this endpoint, use DELETE /factors/recovery-codes";
    let own = format!("/auth/v1/factors/{id}");
    assert_eq!(refused(&high.delete(&own).await), (422, "validation_failed", wrong_door));
    let wrong_type = "factor_type needs to be totp, phone, or webauthn";
    for reply in [
        high.post(&format!("{own}/challenge"), json!({})).await,
        high.post(&format!("{own}/verify"), json!({ "code": codes[0] })).await,
        high.post("/auth/v1/factors", json!({ "factor_type": "recovery_code" })).await,
    ] {
        assert_eq!(refused(&reply), (400, "validation_failed", wrong_type));
    }
    // Without the codes, their sessions have no second level, and the other factor may go.
    let by_code = redeem(&low(&app).await, &codes[0]).await.body;
    let deleted = high.delete(CODES).await;
    assert_eq!((deleted.status, &deleted.body), (200, &json!({ "id": id })));
    assert_eq!(aal(&refresh(&app, text(&by_code, "refresh_token")).await.body), "aal1");
    let left = app.owner.query("select from auth.mfa_recovery_codes", &[]).await.expect("codes");
    assert!(left.is_empty());
    assert_eq!(high.delete(&path).await.status, 200);
}

#[actix_web::test]
async fn new_codes_and_the_removal_of_the_last_factor_exclude_each_other() {
    let app = start(&[]).await;
    let (high, totp) = raised(&app).await;
    let path = format!("/auth/v1/factors/{}", totp.id);
    let both = async { futures_util::join!(high.post(CODES, json!({})), high.delete(&path)) };
    let (generated, removed) = meet(&app, "select from auth.users", 2, both).await;
    assert_ne!(generated.status == 200, removed.status == 200, "{} {}", generated.body, removed.body);
}
