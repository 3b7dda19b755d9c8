//! Rate limits: global ones are shared by all instances, the others are per client.

use crate::auth::outside::{Outside, by_text, twilio};
use crate::auth::{meet, take_mail, text};
use crate::support::{Actor, PASSWORD, TestApp, send};
use futures_util::future::join_all;
use serde_json::json;

async fn sign_up(app: &TestApp, email: String) -> (u16, String) {
    let reply = app.anon().post("/auth/v1/signup", json!({ "email": email, "password": PASSWORD })).await;
    (reply.status, reply.body["error_code"].as_str().unwrap_or("").to_owned())
}

async fn users(app: &TestApp) -> i64 {
    app.owner.query_one("select count(*) from auth.users", &[]).await.expect("count").get(0)
}

#[actix_web::test]
async fn two_instances_share_the_mail_limit() {
    let settings = [("GOTRUE_RATE_LIMIT_EMAIL_SENT", "3"), ("GOTRUE_MAILER_AUTOCONFIRM", "false")];
    let app = TestApp::with_settings(&settings).await;
    let other = app.another(&settings).await;
    let instances = [&app, &other];
    // All at once, so that earlier checks may be outdated.
    let answers = join_all((0..8).map(|n| sign_up(instances[n % 2], format!("u{n}@test.example")))).await;
    assert_eq!(answers.iter().filter(|(status, _)| *status == 200).count(), 3, "{answers:?}");
    for refused in answers.iter().filter(|(status, _)| *status != 200) {
        assert_eq!(*refused, (429, "over_email_send_rate_limit".to_owned()));
    }
    assert_eq!(users(&app).await, 3, "what is refused leaves nothing behind");
    let third = app.another(&settings).await;
    assert_eq!(sign_up(&third, "late@test.example".to_owned()).await.0, 429, "a restart forgets nothing");
    app.owner
        .batch_execute("update auth.message_counts set since = since - interval '1 hour' where kind = 'email'")
        .await
        .expect("an hour passes");
    assert_eq!(sign_up(&app, "next@test.example".to_owned()).await.0, 200, "the next hour has a new limit");
}

#[actix_web::test]
async fn a_count_that_waited_for_a_later_one_does_not_begin_a_new_hour() {
    let settings = [("GOTRUE_RATE_LIMIT_EMAIL_SENT", "3"), ("GOTRUE_MAILER_AUTOCONFIRM", "false")];
    let app = TestApp::with_settings(&settings).await;
    // As one finds it whose transaction had begun before that of the first.
    app.owner
        .batch_execute("insert into auth.message_counts values ('email', now() + interval '10 minutes', 1)")
        .await
        .expect("a count");
    for (n, status) in [200, 200, 429].into_iter().enumerate() {
        assert_eq!(sign_up(&app, format!("u{n}@test.example")).await.0, status, "sign-up {n}");
    }
    let row =
        app.owner.query_one("select since > now(), counted from auth.message_counts", &[]).await.expect("a count");
    assert_eq!((row.get::<_, bool>(0), row.get::<_, f64>(1)), (true, 3.0));
}

#[actix_web::test]
async fn a_token_bucket_is_shared_and_refills_one_by_one() {
    let settings = [("GOTRUE_RATE_LIMIT_EMAIL_SENT", "2/1h"), ("GOTRUE_MAILER_AUTOCONFIRM", "false")];
    let app = TestApp::with_settings(&settings).await;
    let other = app.another(&settings).await;
    for (instance, status) in [(&app, 200), (&other, 200), (&app, 429), (&other, 429)] {
        assert_eq!(sign_up(instance, format!("{}@test.example", uuid::Uuid::new_v4())).await.0, status);
    }
    app.owner
        .batch_execute("update auth.message_counts set since = since - interval '1 hour' where kind = 'email'")
        .await
        .expect("an hour passes");
    for (instance, status) in [(&other, 200), (&app, 429)] {
        assert_eq!(sign_up(instance, format!("{}@test.example", uuid::Uuid::new_v4())).await.0, status);
    }
}

#[actix_web::test]
async fn two_instances_share_the_sms_limit() {
    let twilio = twilio();
    let settings = [&by_text(&twilio)[..], &[("GOTRUE_RATE_LIMIT_SMS_SENT", "2")]].concat();
    let app = TestApp::with_settings(&settings).await;
    let other = app.another(&settings).await;
    for (index, (instance, status)) in [(&app, 200), (&other, 200), (&app, 429), (&other, 429)].iter().enumerate() {
        let reply = instance.anon().post("/auth/v1/otp", json!({ "phone": format!("+1555000000{index}") })).await;
        assert_eq!(reply.status, *status, "{}", reply.body);
        if *status == 429 {
            assert_eq!(text(&reply.body, "error_code"), "over_sms_send_rate_limit");
            assert_eq!(text(&reply.body, "msg"), "SMS rate limit exceeded");
        }
    }
    assert_eq!(twilio.asked().len(), 2);
}

#[actix_web::test]
async fn the_second_message_to_one_user_waits() {
    let settings = [("GOTRUE_SMTP_MAX_FREQUENCY", "1m"), ("GOTRUE_MAILER_AUTOCONFIRM", "false")];
    let app = TestApp::with_settings(&settings).await;
    let other = app.another(&settings).await;
    assert_eq!(sign_up(&app, "ada@test.example".to_owned()).await.0, 200);
    let again = other.anon().post("/auth/v1/resend", json!({ "type": "signup", "email": "ada@test.example" })).await;
    assert_eq!((again.status, text(&again.body, "error_code")), (429, "over_email_send_rate_limit"));
    assert!(text(&again.body, "msg").starts_with("For security purposes, you can only request this after "));
}

/// How many mails to `address` are queued; empties the queue.
async fn take_all(app: &TestApp, address: &str) -> usize {
    let mut count = 0;
    while take_mail(app, address).await.is_some() {
        count += 1;
    }
    count
}

/// Each of them read that nothing had been sent, and sent.
#[actix_web::test]
async fn of_several_requests_at_once_one_mails() {
    let hook = Outside::start(&[("/mail", 200, "{}")]);
    let uri = format!("{}/mail", hook.base);
    let app = TestApp::start().await;
    app.user("ada@test.example").await;
    app.owner
        .batch_execute("update auth.users set email_change = 'eve@test.example' where email = 'ada@test.example'")
        .await
        .expect("a change of address is pending");
    let by_hook = [
        ("GOTRUE_HOOK_SEND_EMAIL_ENABLED", "true"),
        ("GOTRUE_HOOK_SEND_EMAIL_URI", uri.as_str()),
        ("GOTRUE_HOOK_SEND_EMAIL_SECRETS", "v1,whsec_c2VjcmV0"),
    ];
    for settings in [&[][..], &by_hook[..]] {
        let settings = [&[("GOTRUE_SMTP_MAX_FREQUENCY", "1m")], settings].concat();
        let server = app.another(&settings).await;
        for (path, body, recipient) in [
            ("/auth/v1/recover", json!({ "email": "ada@test.example" }), "ada@test.example"),
            ("/auth/v1/otp", json!({ "email": "ada@test.example" }), "ada@test.example"),
            ("/auth/v1/resend", json!({ "type": "email_change", "email": "ada@test.example" }), "eve@test.example"),
        ] {
            app.owner
                .batch_execute("update auth.users set recovery_sent_at = null, email_change_sent_at = null")
                .await
                .expect("nothing was sent");
            take_all(&app, recipient).await;
            let asked = hook.asked().len();
            let requests = join_all((0..6).map(|_| {
                let (anon, body) = (server.anon(), body.clone());
                async move { anon.post(path, body).await }
            }));
            let replies = meet(&app, "select from auth.users", 6, requests).await;
            for reply in replies {
                assert_eq!((reply.status, &reply.body), (200, &json!({})), "{path}");
            }
            let sent = take_all(&app, recipient).await + hook.asked().len() - asked;
            assert_eq!(sent, 1, "{path} {settings:?}");
        }
    }
}

/// A server with phones as second factors, a text a minute.
async fn with_phone_factors(twilio: &Outside) -> TestApp {
    let settings = [
        &by_text(twilio)[..],
        &[
            ("GOTRUE_MFA_PHONE_ENROLL_ENABLED", "true"),
            ("GOTRUE_MFA_PHONE_VERIFY_ENABLED", "true"),
            ("GOTRUE_MFA_PHONE_MAX_FREQUENCY", "1m"),
        ],
    ]
    .concat();
    TestApp::with_settings(&settings).await
}

/// Enrols a phone; where its challenges are asked for.
async fn challenge_of_a_phone(caller: &Actor<'_>) -> String {
    let factor = caller.post("/auth/v1/factors", json!({ "factor_type": "phone", "phone": "+15550000001" })).await;
    format!("/auth/v1/factors/{}/challenge", text(&factor.body, "id"))
}

#[actix_web::test]
async fn of_several_challenges_at_once_one_texts() {
    let twilio = twilio();
    let app = with_phone_factors(&twilio).await;
    let ada = app.user("ada@test.example").await.actor;
    let path = challenge_of_a_phone(&ada).await;
    let requests = join_all((0..6).map(|_| ada.post(&path, json!({}))));
    let replies = meet(&app, "select from auth.mfa_factors", 6, requests).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1);
    for refused in replies.iter().filter(|reply| reply.status != 200) {
        assert_eq!((refused.status, text(&refused.body, "error_code")), (429, "over_sms_send_rate_limit"));
        assert!(text(&refused.body, "msg").starts_with("For security purposes, you can only request this after "));
    }
    assert_eq!(twilio.asked().len(), 1);
}

#[actix_web::test]
async fn a_text_that_could_not_be_sent_does_not_delay_the_next() {
    let twilio = Outside::start(&[("/2010-04-01/", 500, "{}")]);
    let app = with_phone_factors(&twilio).await;
    let ada = app.user("ada@test.example").await.actor;
    let path = challenge_of_a_phone(&ada).await;
    for _ in 0..2 {
        let reply = ada.post(&path, json!({})).await;
        assert_eq!((reply.status, text(&reply.body, "msg")), (500, "error sending message"));
    }
}

#[actix_web::test]
async fn ipv6_clients_are_limited_by_network() {
    let app = TestApp::with_settings(&[("GOTRUE_RATE_LIMIT_HEADER", "x-client"), ("GOTRUE_RATE_LIMIT_OTP", "1")]).await;
    let ask = async |address: String| {
        let request = app.anon().request(reqwest::Method::POST, "/auth/v1/recover").header("x-client", address);
        // A different address each time, because repeated requests for one address have a limit of their own.
        send(request.json(&json!({ "email": format!("{}@test.example", uuid::Uuid::new_v4()) }))).await
    };
    for index in 0..30 {
        assert_eq!(ask(format!("2001:db8:1:2::{index:x}, 10.0.0.{index}")).await.status, 200);
    }
    let limited = ask("2001:db8:1:2:ffff::1".to_owned()).await;
    assert_eq!((limited.status, text(&limited.body, "error_code")), (429, "over_request_rate_limit"));
    assert_eq!(text(&limited.body, "msg"), "Request rate limit reached");
    assert_eq!(ask("2001:db8:1:3::1".to_owned()).await.status, 200, "the network beside it");
}
