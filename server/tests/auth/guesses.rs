//! Guessing is slowed down without locking out the owner.

use std::time::{Duration, Instant};

use crate::auth::factors::{code, enroll};
use crate::auth::{hash_of, take_mail, text};
use crate::support::{PASSWORD, Reply, TestApp, send};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

const SETTINGS: [(&str, &str); 6] = [
    ("GOTRUE_MAILER_AUTOCONFIRM", "false"),
    ("GOTRUE_SMTP_MAX_FREQUENCY", "1ns"),
    ("GOTRUE_MAILER_SUBJECTS_RECOVERY", "{{ .Token }}"),
    ("FERROBASE_TRUSTED_PROXIES", "127.0.0.1"),
    ("FERROBASE_GUESS_FREE_TRIES", "3"),
    ("FERROBASE_GUESS_MAX_DELAY", "2s"),
];

async fn post(app: &TestApp, from: &str, path: &str, body: Value) -> Reply {
    send(app.anon().request(Method::POST, path).header("x-forwarded-for", from).json(&body)).await
}

async fn sign_in(app: &TestApp, from: &str, password: &str) -> Reply {
    let body = json!({ "email": "ada@test.example", "password": password });
    post(app, from, "/auth/v1/token?grant_type=password", body).await
}

async fn ada(app: &TestApp) {
    let body = json!({ "email": "ada@test.example", "password": PASSWORD, "email_confirm": true });
    assert_eq!(app.service().post("/auth/v1/admin/users", body).await.status, 200);
}

#[actix_web::test]
async fn wrong_passwords_delay_strangers_but_not_the_owners_known_client() {
    let app = TestApp::with_settings(&SETTINGS).await;
    ada(&app).await;
    assert_eq!(sign_in(&app, "192.0.2.1", PASSWORD).await.status, 200);
    // A freshly started server recognizes her by her session.
    let app = app.another(&SETTINGS).await;
    let guesses = async {
        let started = Instant::now();
        for n in 0..6 {
            let reply = sign_in(&app, &format!("198.51.100.{n}"), "wrong-Password-1").await;
            assert_eq!((reply.status, text(&reply.body, "error_code")), (400, "invalid_credentials"));
        }
        started.elapsed()
    };
    // 250 ms before the fourth attempt, 500 ms before the fifth, one second before the sixth.
    assert!(guesses.await >= Duration::from_millis(1700));
    let attack = join_all((0..20).map(|n| {
        let app = &app;
        async move { sign_in(app, &format!("198.51.100.{n}"), "wrong-Password-1").await.status }
    }));
    let owner = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let started = Instant::now();
        let reply = sign_in(&app, "192.0.2.1", PASSWORD).await;
        (reply.status, started.elapsed())
    };
    futures_util::pin_mut!(attack, owner);
    let (status, waited) = match futures_util::future::select(owner, attack).await {
        futures_util::future::Either::Left((owner, _)) => owner,
        futures_util::future::Either::Right(_) => panic!("guesses wait"),
    };
    assert_eq!(status, 200);
    // Attempts wait two seconds each, one after another, until they are refused.
    assert!(waited < Duration::from_secs(6), "she waited for {waited:?}");
}

/// A changed password held it, so that a few guesses would have stopped all others.
#[actix_web::test]
async fn a_delayed_guess_holds_no_connection() {
    let app = TestApp::with_settings(&[
        ("GOTRUE_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD", "true"),
        ("GOTRUE_DB_MAX_POOL_SIZE", "1"),
        ("FERROBASE_GUESS_FREE_TRIES", "0"),
        ("FERROBASE_GUESS_MAX_DELAY", "60s"),
    ])
    .await;
    let ada = app.user("ada@test.example").await.actor;
    let grace = app.user("grace@test.example").await.actor;
    let guess = async || {
        let body = json!({ "password": "another-Password-1", "current_password": "wrong-Password-1" });
        let reply = ada.put("/auth/v1/user", body).await;
        assert_eq!((reply.status, text(&reply.body, "error_code")), (400, "current_password_invalid"));
    };
    for _ in 0..4 {
        guess().await;
    }
    let delayed = guess();
    let other = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        grace.get("/auth/v1/user").await.status
    };
    futures_util::pin_mut!(delayed, other);
    match futures_util::future::select(other, delayed).await {
        futures_util::future::Either::Left((status, delayed)) => {
            assert_eq!(status, 200);
            delayed.await;
        }
        futures_util::future::Either::Right(_) => panic!("the other request waits for the guess"),
    }
}

#[actix_web::test]
async fn unknown_addresses_are_slowed_down_as_well() {
    let app = TestApp::with_settings(&SETTINGS).await;
    let started = Instant::now();
    for _ in 0..5 {
        let reply = sign_in(&app, "198.51.100.1", "wrong-Password-1").await;
        assert_eq!((reply.status, text(&reply.body, "error_code")), (400, "invalid_credentials"));
    }
    assert!(started.elapsed() >= Duration::from_millis(700));
}

/// As many as may be judged at the same time, so that without the delays all would be.
#[actix_web::test]
async fn only_a_few_of_many_simultaneous_guesses_are_judged() {
    let settings =
        [SETTINGS[0], SETTINGS[3], ("FERROBASE_GUESS_FREE_TRIES", "0"), ("FERROBASE_GUESS_MAX_DELAY", "60s")];
    let app = TestApp::with_settings(&settings).await;
    ada(&app).await;
    let guess = async |n: usize| sign_in(&app, &format!("198.51.100.{n}"), "wrong-Password-1").await;
    let replies = join_all((0..8).map(guess)).await;
    let of = |status: u16| replies.iter().filter(|reply| reply.status == status).count();
    assert!(of(429) > 0 && of(400) + of(429) == 8, "{replies:?}");
}

#[actix_web::test]
async fn with_limits_off_nothing_is_delayed() {
    let settings = [SETTINGS[0], SETTINGS[3], ("FERROBASE_GUESS_LIMITS", "false")];
    let app = TestApp::with_settings(&settings).await;
    ada(&app).await;
    let replies = join_all((0..12).map(|_| sign_in(&app, "198.51.100.1", "wrong-Password-1"))).await;
    assert!(replies.iter().all(|reply| reply.status == 400), "{replies:?}");
}

#[actix_web::test]
async fn too_many_wrong_codes_invalidate_the_code_but_not_the_link() {
    let app = TestApp::with_settings(&SETTINGS).await;
    ada(&app).await;
    let recover = async || {
        app.anon().post("/auth/v1/recover", json!({ "email": "ada@test.example" })).await;
        let (code, mail) = take_mail(&app, "ada@test.example").await.expect("a mail");
        let hash = hash_of(mail.split_whitespace().find(|word| word.contains("/verify?")).expect("a link"));
        (code, hash)
    };
    let typed = async |from: &str, code: &str| {
        let body = json!({ "type": "recovery", "email": "ada@test.example", "token": code });
        post(&app, from, "/auth/v1/verify", body).await
    };
    let (code, hash) = recover().await;
    let wrong = if code == "000000" { "000001" } else { "000000" };
    for _ in 0..10 {
        assert_eq!(typed("198.51.100.1", wrong).await.status, 403);
    }
    let refused = typed("198.51.100.1", &code).await;
    assert_eq!(
        (refused.status, text(&refused.body, "error_code")),
        (403, "otp_expired"),
        "the code is invalid for the client that guessed"
    );
    let link = json!({ "type": "recovery", "token_hash": hash });
    assert_eq!(post(&app, "198.51.100.1", "/auth/v1/verify", link).await.status, 200, "the link still works");
    let (code, _) = recover().await;
    assert_eq!(typed("198.51.100.1", &code).await.status, 200, "and a new one is to be had");
    let (code, _) = recover().await;
    for _ in 0..10 {
        typed("198.51.100.1", wrong).await;
    }
    assert_eq!(typed("192.0.2.1", &code).await.status, 200, "its owner is elsewhere");
}

#[actix_web::test]
async fn wrong_second_factor_codes_delay_further_attempts() {
    let mut settings = SETTINGS.to_vec();
    settings[0] = ("GOTRUE_MAILER_AUTOCONFIRM", "true");
    let app = TestApp::with_settings(&settings).await;
    let ada = app.user("ada@test.example").await.actor;
    let factor = ada.post("/auth/v1/factors", json!({ "factor_type": "totp" })).await.body;
    let path = format!("/auth/v1/factors/{}", text(&factor, "id"));
    let started = Instant::now();
    for _ in 0..5 {
        let challenge = ada.post(&format!("{path}/challenge"), json!({})).await.body;
        let body = json!({ "challenge_id": challenge["id"], "code": "0" });
        assert_eq!(ada.post(&format!("{path}/verify"), body).await.status, 422);
    }
    assert!(started.elapsed() >= Duration::from_millis(700));
}

#[actix_web::test]
async fn too_many_second_factor_guesses_block_the_client_but_not_the_owner() {
    let settings = [
        ("GOTRUE_MAILER_AUTOCONFIRM", "true"),
        ("FERROBASE_TRUSTED_PROXIES", "127.0.0.1"),
        ("FERROBASE_GUESS_FREE_TRIES", "100"),
        ("FERROBASE_GUESS_CODE_TRIES", "3"),
    ];
    let app = TestApp::with_settings(&settings).await;
    let ada = app.user("ada@test.example").await.actor;
    let factor = enroll(&ada).await;
    let token = ada.token.as_deref().expect("a token");
    let path = format!("/auth/v1/factors/{}", factor.id);
    let ask = async |from: &str, what: &str, body: Value| {
        let request = app.anon().request(Method::POST, &format!("{path}/{what}")).header("x-forwarded-for", from);
        send(request.bearer_auth(token).json(&body)).await
    };
    let answer = async |from: &str, code: &str| {
        let challenge = ask(from, "challenge", json!({})).await.body;
        ask(from, "verify", json!({ "challenge_id": challenge["id"], "code": code })).await
    };
    // Within one clock hour, whenever the test begins.
    let (mut guesses, mut refused) = (0, None);
    while refused.is_none() && guesses < 8 {
        let reply = answer("198.51.100.1", "0").await;
        if reply.status == 422 {
            guesses += 1;
        } else {
            refused = Some(reply);
        }
    }
    let refused = refused.expect("guesses come to an end");
    assert!(guesses <= 6, "{guesses}");
    assert_eq!((refused.status, text(&refused.body, "error_code")), (429, "over_request_rate_limit"));
    let right = answer("198.51.100.1", &code(&factor.secret, 0)).await;
    assert_eq!(right.status, 429, "the right code is no longer judged: {}", right.body);
    assert_eq!(answer("192.0.2.1", &code(&factor.secret, 0)).await.status, 200, "its owner is elsewhere");
}
