//! Calls to other services (leaked passwords, captchas, hooks), and rate limits.

use std::sync::{Arc, Mutex};

use crate::auth::text;
use crate::support::{PASSWORD, TestApp, outside, send};
use actix_web::HttpResponse;
use serde_json::{Value, json};

/// An outside service with `answers` by path, which records its requests.
pub struct Outside {
    pub base: String,
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl Outside {
    pub fn start(answers: &'static [(&'static str, u16, &'static str)]) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        let base = outside::serve(move |request, body| {
            heard.lock().expect("lock").push((request.uri().to_string(), body));
            let found = answers.iter().find(|(path, _, _)| request.path().starts_with(path)).copied();
            async move {
                let (_, status, body) = found.unwrap_or(("", 404, ""));
                let status = actix_web::http::StatusCode::from_u16(status).expect("status");
                HttpResponse::build(status).content_type("application/json").body(body)
            }
        });
        Self { base, asked }
    }

    pub fn asked(&self) -> Vec<(String, String)> {
        self.asked.lock().expect("lock").clone()
    }
}

#[actix_web::test]
async fn a_leaked_password_is_refused_without_being_sent() {
    // SHA-1 of "leaked-Horse-1" and a padding line.
    let outside = Outside::start(&[("/range/", 200, LEAKED)]);
    let url = format!("{}/range/", outside.base);
    let app =
        TestApp::with_settings(&[("GOTRUE_PASSWORD_HIBP_ENABLED", "true"), ("GOTRUE_PASSWORD_HIBP_URL", &url)]).await;
    let sign_up = async |email: &str, password: &str| {
        app.anon().post("/auth/v1/signup", json!({ "email": email, "password": password })).await
    };
    let refused = sign_up("a@test.example", "leaked-Horse-1").await;
    assert_eq!(
        (refused.status, &refused.body["weak_password"]["reasons"]),
        (422, &json!(["pwned"])),
        "{}",
        refused.body
    );
    assert_eq!(sign_up("a@test.example", "padding-Horse-1").await.status, 200, "a count of 0 is padding");
    for (path, body) in outside.asked() {
        assert_eq!((path.len(), body.as_str()), ("/range/".len() + 5, ""), "five digits of the hash alone: {path}");
    }
}
const LEAKED: &str = include_str!("leaked.txt");

#[actix_web::test]
async fn without_an_answer_of_the_leak_service_the_setting_decides() {
    for (fail_closed, status) in [("false", 200), ("true", 500)] {
        let settings = [
            ("GOTRUE_PASSWORD_HIBP_ENABLED", "true"),
            ("GOTRUE_PASSWORD_HIBP_URL", "http://127.0.0.1:9/"),
            ("GOTRUE_PASSWORD_HIBP_FAIL_CLOSED", fail_closed),
        ];
        let app = TestApp::with_settings(&settings).await;
        let reply =
            app.anon().post("/auth/v1/signup", json!({ "email": "a@test.example", "password": PASSWORD })).await;
        assert_eq!(reply.status, status);
    }
}

#[actix_web::test]
async fn captchas_are_required_and_verified() {
    let outside = Outside::start(&[("/siteverify", 200, r#"{"success": false, "error-codes": ["bad-token"]}"#)]);
    let url = format!("{}/siteverify", outside.base);
    let settings = [
        ("GOTRUE_SECURITY_CAPTCHA_ENABLED", "true"),
        ("GOTRUE_SECURITY_CAPTCHA_SECRET", "captcha-secret"),
        ("FERROBASE_CAPTCHA_URL", &url),
    ];
    let app = TestApp::with_settings(&settings).await;
    let body = |token: &str| {
        json!({ "email": "a@test.example", "password": PASSWORD,
        "gotrue_meta_security": { "captcha_token": token } })
    };
    for path in ["/auth/v1/signup", "/auth/v1/token?grant_type=password", "/auth/v1/otp", "/auth/v1/recover"] {
        let missing = app.anon().post(path, body("")).await;
        assert_eq!((missing.status, text(&missing.body, "error_code")), (400, "captcha_failed"), "{path}");
        let refused = app.anon().post(path, body("x")).await;
        assert!(text(&refused.body, "msg").contains("bad-token"), "{}", refused.body);
    }
    assert!(
        outside.asked().iter().all(|(_, form)| form.contains("secret=captcha-secret") && form.contains("response=x"))
    );
    assert_eq!(app.service().post("/auth/v1/signup", body("")).await.status, 200, "administrators need no captcha");
}

#[actix_web::test]
async fn http_hooks_are_signed_and_their_answers_apply() {
    let outside = Outside::start(&[("/before", 200, r#"{"error": {"http_code": 403, "message": "not on the list"}}"#)]);
    let uri = format!("{}/before", outside.base);
    let settings = [
        ("GOTRUE_HOOK_BEFORE_USER_CREATED_ENABLED", "true"),
        ("GOTRUE_HOOK_BEFORE_USER_CREATED_URI", uri.as_str()),
        ("GOTRUE_HOOK_BEFORE_USER_CREATED_SECRETS", "v1,whsec_c2VjcmV0"),
    ];
    let app = TestApp::with_settings(&settings).await;
    let reply = app.anon().post("/auth/v1/signup", json!({ "email": "a@test.example", "password": PASSWORD })).await;
    assert_eq!((reply.status, text(&reply.body, "msg")), (403, "not on the list"));
    let asked = outside.asked();
    let input: Value = serde_json::from_str(&asked[0].1).expect("json");
    assert_eq!(input["metadata"]["name"], "before-user-created");
    assert_eq!(input["user"]["email"], "a@test.example");
    assert!(!asked[0].1.contains("password"), "{}", asked[0].1);
    let users: i64 = app.owner.query_one("select count(*) from auth.users", &[]).await.expect("count").get(0);
    assert_eq!(users, 0);
}

#[actix_web::test]
async fn a_database_hook_sets_the_claims() {
    let app = TestApp::with_settings(&[
        ("GOTRUE_HOOK_CUSTOM_ACCESS_TOKEN_ENABLED", "true"),
        ("GOTRUE_HOOK_CUSTOM_ACCESS_TOKEN_URI", "pg-functions://postgres/public/claims"),
    ])
    .await;
    app.owner
        .batch_execute(
            "create function public.claims(event jsonb) returns jsonb language sql as
            $$ select jsonb_build_object('claims', event->'claims' || '{\"plan\": \"gold\"}') $$;
            grant usage on schema public to supabase_auth_admin;
            grant execute on function public.claims to supabase_auth_admin",
        )
        .await
        .expect("function");
    let user = app.user("ada@test.example").await;
    let claims = user.actor.token.as_deref().and_then(|token| token.split('.').nth(1)).expect("claims").to_owned();
    use base64::Engine as _;
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims).expect("base64");
    let claims: Value = serde_json::from_slice(&claims).expect("json");
    assert_eq!(claims["plan"], "gold");
}

#[actix_web::test]
async fn requests_are_limited_per_address_regardless_of_forwarded_headers() {
    let app = TestApp::with_settings(&[("GOTRUE_RATE_LIMIT_OTP", "1")]).await;
    let mut statuses = Vec::new();
    for index in 0..32 {
        let request = app
            .anon()
            .request(reqwest::Method::POST, "/auth/v1/recover")
            .header("x-forwarded-for", format!("10.0.0.{index}"))
            .json(&json!({ "email": format!("nobody-{index}@test.example") }));
        statuses.push(send(request).await);
    }
    assert!(statuses[..30].iter().all(|reply| reply.status == 200));
    assert_eq!((statuses[31].status, text(&statuses[31].body, "error_code")), (429, "over_request_rate_limit"));
}

#[actix_web::test]
async fn mails_are_limited_globally() {
    let settings = [("GOTRUE_RATE_LIMIT_EMAIL_SENT", "2"), ("GOTRUE_MAILER_AUTOCONFIRM", "false")];
    let app = TestApp::with_settings(&settings).await;
    let mut statuses = Vec::new();
    for index in 0..3 {
        let body = json!({ "email": format!("u{index}@test.example"), "password": PASSWORD });
        statuses.push(app.anon().post("/auth/v1/signup", body).await);
    }
    assert_eq!((statuses[0].status, statuses[1].status), (200, 200));
    assert_eq!((statuses[2].status, text(&statuses[2].body, "error_code")), (429, "over_email_send_rate_limit"));
    let users: i64 = app.owner.query_one("select count(*) from auth.users", &[]).await.expect("count").get(0);
    assert_eq!(users, 2, "what is refused leaves nothing behind");
}

#[actix_web::test]
async fn a_failing_trigger_of_the_project_leaves_nothing_behind() {
    let app = TestApp::start().await;
    app.owner
        .batch_execute(
            "create function public.refuse() returns trigger language plpgsql as
            $$ begin raise exception 'no more members'; end $$;
            create trigger refuse after insert on auth.users for each row execute function public.refuse()",
        )
        .await
        .expect("trigger");
    let body = json!({ "email": "a@test.example", "password": PASSWORD });
    let old = app.anon().post("/auth/v1/signup", body.clone()).await;
    assert_eq!((old.status, old.body), (500, json!({ "code": "P0001", "message": "no more members" })));
    let request =
        app.anon().request(reqwest::Method::POST, "/auth/v1/signup").header("x-supabase-api-version", "2024-01-01");
    let new = send(request.json(&body)).await;
    assert_eq!(new.body, json!({ "code": "unexpected_failure", "message": "Database error saving new user" }));
    let rows: i64 = app
        .owner
        .query_one("select (select count(*) from auth.users) + (select count(*) from auth.identities)", &[])
        .await
        .expect("count")
        .get(0);
    assert_eq!(rows, 0);
}

#[actix_web::test]
async fn a_request_over_its_deadline_fails_without_side_effects() {
    let app = TestApp::with_settings(&[("GOTRUE_API_MAX_REQUEST_DURATION", "200ms")]).await;
    let body = json!({ "email": "a@test.example", "password": PASSWORD });
    // The request waits for a lock that is held until it was answered.
    let hold = "lock table auth.identities in access exclusive mode";
    app.owner.batch_execute(&format!("begin; {hold}")).await.expect("the table is held");
    let reply = app.anon().post("/auth/v1/signup", body).await;
    assert_eq!((reply.status, text(&reply.body, "error_code")), (504, "request_timeout"), "{}", reply.body);
    app.owner.batch_execute("commit").await.expect("the table is free");
    let users: i64 = app.owner.query_one("select count(*) from auth.users", &[]).await.expect("count").get(0);
    assert_eq!(users, 0);
}

/// A service that takes every text.
pub fn twilio() -> Outside {
    Outside::start(&[("/2010-04-01/", 201, r#"{"sid": "SM1", "status": "queued"}"#)])
}

/// Settings of a server that sends texts by it.
pub fn by_text(twilio: &Outside) -> [(&'static str, &str); 6] {
    [
        ("GOTRUE_EXTERNAL_PHONE_ENABLED", "true"),
        ("GOTRUE_SMS_PROVIDER", "twilio"),
        ("GOTRUE_SMS_TWILIO_ACCOUNT_SID", "AC1"),
        ("GOTRUE_SMS_TWILIO_AUTH_TOKEN", "twilio-token"),
        ("GOTRUE_SMS_TWILIO_MESSAGE_SERVICE_SID", "MG1"),
        ("FERROBASE_SMS_TWILIO_URL", twilio.base.as_str()),
    ]
}
