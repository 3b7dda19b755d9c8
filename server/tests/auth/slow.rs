//! Slow services do not block the database pool: every server here answers slowly, and the API has two connections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use actix_web::HttpResponse;
use futures_util::future::{join, join_all};
use serde_json::{Value, json};

use crate::auth::sessions::sign_in;
use crate::auth::text;
use crate::support::valve::until;
use crate::support::{PASSWORD, TestApp, outside, send};

/// How long the services take.
const SLOW: Duration = Duration::from_millis(1500);

/// The output of `asking`, during which a signed-in person must be served as usual. Without a connection every answer takes as long as the
/// services; a busy machine delays one or two.
async fn beside<T>(app: &TestApp, token: &str, asking: impl Future<Output = T>) -> T {
    let reading = async {
        let mut quickest = Duration::MAX;
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let started = Instant::now();
            let request = app.anon().request(reqwest::Method::GET, "/auth/v1/user").bearer_auth(token);
            assert_eq!(send(request).await.status, 200);
            quickest = quickest.min(started.elapsed());
        }
        assert!(quickest < Duration::from_secs(1), "{quickest:?}");
    };
    join(asking, reading).await.0
}

async fn number(app: &TestApp, sql: &str) -> i64 {
    app.owner.query_one(sql, &[]).await.expect(sql).get(0)
}

/// A hook for access tokens that adds a claim. Returns its URL.
fn hook() -> String {
    outside::serve(|_, body| async move {
        tokio::time::sleep(SLOW).await;
        let mut input: Value = serde_json::from_str(&body).expect("json");
        input["claims"]["plan"] = json!("gold");
        HttpResponse::Ok().json(json!({ "claims": input["claims"] }))
    })
}

#[actix_web::test]
async fn a_slow_hook_in_a_transaction_holds_no_connection() {
    let uri = hook();
    let app = TestApp::with_settings(&[
        ("GOTRUE_DB_MAX_POOL_SIZE", "2"),
        ("GOTRUE_HOOK_CUSTOM_ACCESS_TOKEN_ENABLED", "true"),
        ("GOTRUE_HOOK_CUSTOM_ACCESS_TOKEN_URI", &uri),
        ("GOTRUE_HOOK_CUSTOM_ACCESS_TOKEN_SECRETS", "v1,whsec_c2VjcmV0"),
    ])
    .await;
    let emails: Vec<String> = (0..6).map(|number| format!("person{number}@test.example")).collect();
    let users = join_all(emails.iter().map(|email| app.user(email))).await;
    let token = users[0].actor.token.as_deref().expect("a token");
    let signing_in = join_all(emails.iter().map(|email| sign_in(&app, email, PASSWORD)));
    let sessions = beside(&app, token, signing_in).await;
    for session in &sessions {
        let request = app.anon().request(reqwest::Method::GET, "/auth/v1/user");
        assert_eq!(send(request.bearer_auth(text(session, "access_token"))).await.status, 200);
    }
    // The attempt before the hook's answer is rolled back, so a sign-in creates one session.
    assert_eq!(number(&app, "select count(*) from auth.sessions").await, 12);
    assert_eq!(number(&app, "select count(*) from auth.refresh_tokens").await, 12);
    let logins = "select count(*) from auth.audit_log_entries where payload->>'action' = 'login'";
    assert_eq!(number(&app, logins).await, 12);
    let refreshed = app
        .anon()
        .post(
            "/auth/v1/token?grant_type=refresh_token",
            json!({ "refresh_token": text(&sessions[0], "refresh_token") }),
        )
        .await;
    assert_eq!(refreshed.status, 200, "{}", refreshed.body);
}

#[actix_web::test]
async fn a_user_banned_during_a_hook_is_not_signed_in() {
    let uri = hook();
    let app = TestApp::start().await;
    let user = app.user("ada@test.example").await;
    let app = app
        .another(&[
            ("GOTRUE_HOOK_CUSTOM_ACCESS_TOKEN_ENABLED", "true"),
            ("GOTRUE_HOOK_CUSTOM_ACCESS_TOKEN_URI", &uri),
            ("GOTRUE_HOOK_CUSTOM_ACCESS_TOKEN_SECRETS", "v1,whsec_c2VjcmV0"),
        ])
        .await;
    let signing_in = async {
        let body = json!({ "email": "ada@test.example", "password": PASSWORD });
        app.anon().post("/auth/v1/token?grant_type=password", body).await
    };
    let banning = async {
        tokio::time::sleep(SLOW / 2).await;
        let ban = format!("update auth.users set banned_until = now() + interval '1 day' where id = '{}'", user.id);
        app.owner.batch_execute(&ban).await.expect("banned");
    };
    let (reply, ()) = join(signing_in, banning).await;
    assert_eq!((reply.status, text(&reply.body, "error_code")), (400, "user_banned"), "{}", reply.body);
    assert_eq!(number(&app, "select count(*) from auth.sessions").await, 1, "the one of the sign-up");
}

#[actix_web::test]
async fn a_slow_provider_holds_no_connection() {
    let github = outside::serve(|request, _| async move {
        tokio::time::sleep(SLOW / 3).await;
        let answer = match request.path() {
            "/login/oauth/access_token" => json!({ "access_token": "t", "token_type": "bearer" }),
            "/api/v3/user" => json!({ "id": 7, "login": "ada", "name": "Ada" }),
            "/api/v3/user/emails" => json!([{ "email": "ada@test.example", "primary": true, "verified": true }]),
            _ => return HttpResponse::NotFound().finish(),
        };
        HttpResponse::Ok().json(answer)
    });
    let app = TestApp::with_settings(&[
        ("GOTRUE_DB_MAX_POOL_SIZE", "2"),
        ("GOTRUE_EXTERNAL_GITHUB_ENABLED", "true"),
        ("GOTRUE_EXTERNAL_GITHUB_CLIENT_ID", "client"),
        ("GOTRUE_EXTERNAL_GITHUB_SECRET", "secret"),
        ("GOTRUE_EXTERNAL_GITHUB_REDIRECT_URI", "http://127.0.0.1/auth/v1/callback"),
        ("GOTRUE_EXTERNAL_GITHUB_URL", &github),
    ])
    .await;
    let other = app.user("other@test.example").await;
    let token = other.actor.token.as_deref().expect("a token");
    let coming_back = async || {
        let begun = send(app.plain(reqwest::Method::GET, "/auth/v1/authorize?provider=github")).await;
        let provider = url::Url::parse(begun.header("location")).expect("a URL");
        let state = provider.query_pairs().find(|(name, _)| name == "state").expect("a state").1.into_owned();
        let end = send(app.plain(reqwest::Method::GET, &format!("/auth/v1/callback?code=c&state={state}"))).await;
        end.header("location").contains("access_token=")
    };
    coming_back().await;
    let signed_in = beside(&app, token, join_all((0..6).map(|_| coming_back()))).await;
    assert_eq!(signed_in, [true; 6]);
}

#[actix_web::test]
async fn a_slow_sms_service_holds_no_connection_and_its_code_is_valid() {
    let sent: Arc<Mutex<Vec<Value>>> = Arc::default();
    let heard = Arc::clone(&sent);
    let uri = outside::serve(move |_, body| {
        heard.lock().expect("lock").push(serde_json::from_str(&body).expect("json"));
        async {
            tokio::time::sleep(SLOW).await;
            HttpResponse::Ok().json(json!({}))
        }
    });
    let app = TestApp::with_settings(&[
        ("GOTRUE_DB_MAX_POOL_SIZE", "2"),
        ("GOTRUE_EXTERNAL_PHONE_ENABLED", "true"),
        ("GOTRUE_SMS_AUTOCONFIRM", "false"),
        ("GOTRUE_RATE_LIMIT_SMS_SENT", "1000"),
        ("GOTRUE_HOOK_SEND_SMS_ENABLED", "true"),
        ("GOTRUE_HOOK_SEND_SMS_URI", &uri),
        ("GOTRUE_HOOK_SEND_SMS_SECRETS", "v1,whsec_c2VjcmV0"),
    ])
    .await;
    let reader = app.user("ada@test.example").await;
    let token = reader.actor.token.as_deref().expect("a token");
    let phones: Vec<String> = (0..5).map(|number| format!("4915112345{number:02}")).collect();
    let signing_up = join_all(phones.iter().map(|phone| {
        let body = json!({ "phone": phone, "password": PASSWORD });
        async { app.anon().post("/auth/v1/signup", body).await }
    }));
    for reply in beside(&app, token, signing_up).await {
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    let sent = std::mem::take(&mut *sent.lock().expect("lock"));
    assert_eq!(sent.len(), phones.len(), "one message each");
    for message in sent {
        let (phone, code) = (text(&message["sms"], "phone"), text(&message["sms"], "otp"));
        let body = json!({ "type": "sms", "phone": phone, "token": code });
        let reply = app.anon().post("/auth/v1/verify", body).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    assert_eq!(number(&app, "select counted::bigint from auth.message_counts where kind = 'sms'").await, 5);
}

/// An outside service that answers only after the gate of its path is opened.
#[derive(Clone, Default)]
struct Gates(Arc<Mutex<BTreeMap<&'static str, Gate>>>);

struct Gate {
    waiting: usize,
    opened: Arc<tokio::sync::Semaphore>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { waiting: 0, opened: Arc::new(tokio::sync::Semaphore::new(0)) }
    }
}

const GATES: [(&str, &str); 4] =
    [("/siteverify", r#"{"success":true}"#), ("/range/", ""), ("/mail", "{}"), ("/2010-04-01/", r#"{"sid":"SM1"}"#)];

impl Gates {
    /// Starts the service and returns its URL.
    fn serve(&self) -> String {
        let gates = self.clone();
        outside::serve(move |request, _| {
            let gates = gates.clone();
            async move {
                let (path, answer) = *GATES.iter().find(|(path, _)| request.path().starts_with(path)).expect("a gate");
                let opened = {
                    let mut gates = gates.0.lock().expect("lock");
                    let gate = gates.entry(path).or_default();
                    gate.waiting += 1;
                    Arc::clone(&gate.opened)
                };
                opened.acquire().await.expect("a way through").forget();
                HttpResponse::Ok().content_type("application/json").body(answer)
            }
        })
    }

    /// Waits until `count` requests are at the gate while other requests are still served, then opens it.
    async fn pass(&self, path: &'static str, count: usize, served: impl AsyncFn() -> bool) {
        until(path, async || self.0.lock().expect("lock").get(path).is_some_and(|gate| gate.waiting == count)).await;
        assert!(served().await, "{path}");
        let mut gates = self.0.lock().expect("lock");
        let gate = gates.get_mut(path).expect("a gate");
        gate.waiting = 0;
        gate.opened.add_permits(count);
    }
}

#[actix_web::test]
async fn no_service_asked_during_sign_up_holds_a_connection() {
    let gates = Gates::default();
    let base = gates.serve();
    let (captcha, leaks, mail) = (format!("{base}/siteverify"), format!("{base}/range/"), format!("{base}/mail"));
    let app = TestApp::start().await;
    let reader = app.user("ada@test.example").await;
    let token = reader.actor.token.as_deref().expect("a token");
    let app = app
        .another(&[
            ("GOTRUE_DB_MAX_POOL_SIZE", "2"),
            ("GOTRUE_MAILER_AUTOCONFIRM", "false"),
            ("GOTRUE_EXTERNAL_PHONE_ENABLED", "true"),
            ("GOTRUE_SMS_AUTOCONFIRM", "false"),
            ("GOTRUE_RATE_LIMIT_SMS_SENT", "1000"),
            ("GOTRUE_SECURITY_CAPTCHA_ENABLED", "true"),
            ("GOTRUE_SECURITY_CAPTCHA_PROVIDER", "hcaptcha"),
            ("GOTRUE_SECURITY_CAPTCHA_SECRET", "secret"),
            ("FERROBASE_CAPTCHA_URL", &captcha),
            ("GOTRUE_PASSWORD_HIBP_ENABLED", "true"),
            ("GOTRUE_PASSWORD_HIBP_URL", &leaks),
            ("GOTRUE_HOOK_SEND_EMAIL_ENABLED", "true"),
            ("GOTRUE_HOOK_SEND_EMAIL_URI", &mail),
            ("GOTRUE_HOOK_SEND_EMAIL_SECRETS", "v1,whsec_c2VjcmV0"),
            ("GOTRUE_SMS_PROVIDER", "twilio"),
            ("GOTRUE_SMS_TWILIO_ACCOUNT_SID", "sid"),
            ("GOTRUE_SMS_TWILIO_AUTH_TOKEN", "secret"),
            ("GOTRUE_SMS_TWILIO_MESSAGE_SERVICE_SID", "+15550000000"),
            ("FERROBASE_SMS_TWILIO_URL", &base),
        ])
        .await;
    let served = async || {
        let request = app.anon().request(reqwest::Method::GET, "/auth/v1/user").bearer_auth(token);
        send(request.timeout(Duration::from_secs(5))).await.status == 200
    };
    for (name, last) in [("email", "/mail"), ("phone", "/2010-04-01/")] {
        let signing_up = join_all((0..4).map(|number| {
            let address =
                if name == "email" { format!("p{number}@test.example") } else { format!("49151123456{number}") };
            let security = json!({ "captcha_token": "a person" });
            let body = json!({ name: address, "password": PASSWORD, "gotrue_meta_security": security });
            async { app.anon().post("/auth/v1/signup", body).await }
        }));
        let passing = async {
            for gate in ["/siteverify", "/range/", last] {
                gates.pass(gate, 4, &served).await;
            }
        };
        let (replies, ()) = join(signing_up, passing).await;
        for reply in replies {
            assert_eq!(reply.status, 200, "{}", reply.body);
        }
    }
}
