//! Logs of any level contain no passwords, codes, tokens, keys or hashes. Also covers details that appear only in the
//! log.

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};

use crate::auth::factors::enroll;
use crate::auth::outside::Outside;
use crate::auth::sessions::refresh;
use crate::auth::{hash_of, take_mail, text};
use crate::support::alone::alone;
use crate::support::{Actor, PASSWORD, TestApp, outside, send};
use actix_web::HttpResponse;
use ferrobase::telemetry::{Format, Lines};
use reqwest::Method;
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

/// Captures everything that this process logs once enabled.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// The log so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("lock")).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("lock").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

pub fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| {
        let log = Log::default();
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .event_format(Lines(Format::Text))
            .with_writer(log.clone())
            .try_init()
            .expect("the only subscriber");
        log
    })
}

/// Secrets that must not appear in the log, with their kind.
#[derive(Default)]
struct Secrets(Vec<(String, String)>);

impl Secrets {
    fn keep(&mut self, what: &str, secret: &str) {
        assert!(secret.len() >= 6, "{what} is too short to be looked for: {secret}");
        self.0.push((what.to_owned(), secret.to_owned()));
    }

    /// Records the tokens of a session.
    fn session(&mut self, what: &str, body: &Value) {
        self.keep(&format!("{what}: access token"), text(body, "access_token"));
        self.keep(&format!("{what}: refresh token"), text(body, "refresh_token"));
    }

    /// Records and returns the code in the subject and the hash in the link of the newest mail.
    async fn mail(&mut self, app: &TestApp, what: &str, address: &str) -> (String, String) {
        let (code, body) = take_mail(app, address).await.expect("a mail");
        let hash = body.split_whitespace().find(|word| word.contains("/verify?")).map(hash_of).unwrap_or_default();
        self.keep(&format!("{what}: code"), &code);
        if !hash.is_empty() {
            self.keep(&format!("{what}: hash"), &hash);
        }
        (code, hash)
    }
}

fn holder<'a>(app: &'a TestApp, session: &Value) -> Actor<'a> {
    let mut actor = app.anon();
    actor.token = Some(text(session, "access_token").to_owned());
    actor
}

#[actix_web::test]
async fn no_log_at_any_level_contains_a_secret() {
    if !alone("auth::logs::no_log_at_any_level_contains_a_secret") {
        return;
    }
    let log = log();
    let outside = Outside::start(&[
        ("/2010-04-01/", 201, r#"{"sid": "SM1", "status": "queued"}"#),
        ("/siteverify", 200, r#"{"success": true}"#),
        ("/login/oauth/access_token", 200, r#"{"access_token": "provider-token-of-ada", "token_type": "bearer"}"#),
        ("/api/v3/user/emails", 200, r#"[{"email": "gh@test.example", "primary": true, "verified": true}]"#),
        ("/api/v3/user", 200, r#"{"id": 7, "login": "ada", "name": "Ada"}"#),
        ("/hook", 500, r#"{"error": "the hook is ill"}"#),
    ]);
    let captcha = format!("{}/siteverify", outside.base);
    let mut settings: Vec<(&str, &str)> = vec![
        ("GOTRUE_MAILER_AUTOCONFIRM", "false"),
        // Long codes, so that none matches the log's numbers by chance.
        ("GOTRUE_MAILER_OTP_LENGTH", "10"),
        ("GOTRUE_SMS_OTP_LENGTH", "10"),
        ("GOTRUE_SMTP_MAX_FREQUENCY", "1ns"),
        ("GOTRUE_SMS_MAX_FREQUENCY", "1ns"),
        ("GOTRUE_EXTERNAL_PHONE_ENABLED", "true"),
        ("GOTRUE_EXTERNAL_ANONYMOUS_USERS_ENABLED", "true"),
        ("GOTRUE_SMS_PROVIDER", "twilio"),
        ("GOTRUE_SMS_TWILIO_ACCOUNT_SID", "AC1"),
        ("GOTRUE_SMS_TWILIO_AUTH_TOKEN", "twilio-auth-token"),
        ("GOTRUE_SMS_TWILIO_MESSAGE_SERVICE_SID", "MG1"),
        ("FERROBASE_SMS_TWILIO_URL", &outside.base),
        ("GOTRUE_SECURITY_CAPTCHA_ENABLED", "true"),
        ("GOTRUE_SECURITY_CAPTCHA_SECRET", "captcha-secret-of-ours"),
        ("FERROBASE_CAPTCHA_URL", &captcha),
        ("GOTRUE_EXTERNAL_GITHUB_ENABLED", "true"),
        ("GOTRUE_EXTERNAL_GITHUB_CLIENT_ID", "client"),
        ("GOTRUE_EXTERNAL_GITHUB_SECRET", "github-client-secret"),
        ("GOTRUE_EXTERNAL_GITHUB_REDIRECT_URI", "http://127.0.0.1/auth/v1/callback"),
        ("GOTRUE_EXTERNAL_GITHUB_URL", &outside.base),
        ("GOTRUE_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION", "true"),
    ];
    for mail in ["CONFIRMATION", "INVITE", "RECOVERY", "MAGIC_LINK", "EMAIL_CHANGE", "REAUTHENTICATION"] {
        settings.push((Box::leak(format!("GOTRUE_MAILER_SUBJECTS_{mail}").into_boxed_str()), "{{ .Token }}"));
    }
    let app = TestApp::with_settings(&settings).await;
    let mut secrets = Secrets::default();
    for (what, secret) in [
        ("password", PASSWORD),
        ("wrong password", "a-wrong-Horse-9"),
        ("new password", "another-Horse-8"),
        ("JWT secret", ferrobase::config::DEVELOPMENT_JWT_SECRET),
        ("service key", &app.service_key),
        ("Twilio's token", "twilio-auth-token"),
        ("the captcha's secret", "captcha-secret-of-ours"),
        ("the captcha's answer", "captcha-token-of-ada"),
        ("the client's secret", "github-client-secret"),
        ("the provider's token", "provider-token-of-ada"),
    ] {
        secrets.keep(what, secret);
    }
    let captcha = json!({ "captcha_token": "captcha-token-of-ada" });
    let with_captcha = |mut body: Value| {
        body["gotrue_meta_security"] = captcha.clone();
        body
    };
    let post = async |path: &str, body: Value| app.anon().post(path, with_captcha(body)).await;

    // Sign-up, confirmation by link and by code, right and wrong sign-in, refresh and replay.
    post("/auth/v1/signup", json!({ "email": "ada@test.example", "password": PASSWORD })).await;
    let (_, hash) = secrets.mail(&app, "sign-up", "ada@test.example").await;
    let followed = send(app.plain(Method::GET, &format!("/auth/v1/verify?type=signup&token={hash}"))).await;
    assert_eq!(followed.status, 303);
    secrets.keep("the redirect", followed.header("location").split_once('#').expect("a fragment").1);
    send(app.plain(Method::GET, &format!("/auth/v1/verify?type=signup&token={hash}"))).await;
    let body = json!({ "email": "ada@test.example", "password": "a-wrong-Horse-9" });
    assert_eq!(post("/auth/v1/token?grant_type=password", body).await.status, 400);
    let body = json!({ "email": "ada@test.example", "password": PASSWORD });
    let session = post("/auth/v1/token?grant_type=password", body).await.body;
    secrets.session("sign-in", &session);
    let refreshed = refresh(&app, text(&session, "refresh_token")).await.body;
    secrets.session("refresh", &refreshed);
    refresh(&app, text(&session, "refresh_token")).await;
    refresh(&app, "aaaaaaaaaaaa").await;

    // Recovery by code, by link, with PKCE; an expired and a wrong code.
    post("/auth/v1/recover", json!({ "email": "ada@test.example" })).await;
    let (code, _) = secrets.mail(&app, "recovery", "ada@test.example").await;
    let body = json!({ "type": "recovery", "email": "ada@test.example", "token": code });
    let recovered = post("/auth/v1/verify", body.clone()).await.body;
    secrets.session("recovery", &recovered);
    assert_eq!(post("/auth/v1/verify", body).await.status, 403);
    let verifier = "a-verifier-that-is-long-enough-for-the-rules-0123456789";
    secrets.keep("verifier", verifier);
    let challenge =
        json!({ "email": "ada@test.example", "code_challenge": verifier, "code_challenge_method": "plain" });
    assert_eq!(post("/auth/v1/otp", challenge).await.status, 200);
    let (_, hash) = secrets.mail(&app, "magic link", "ada@test.example").await;
    let followed = send(app.plain(Method::GET, &format!("/auth/v1/verify?type=magiclink&token={hash}"))).await;
    let (_, code) = followed.header("location").split_once("code=").expect("a code");
    secrets.keep("auth code", code);
    let body = json!({ "auth_code": code, "code_verifier": verifier });
    let exchanged = post("/auth/v1/token?grant_type=pkce", body.clone()).await;
    assert_eq!(exchanged.status, 200, "{}", exchanged.body);
    secrets.session("exchange", &exchanged.body);
    post("/auth/v1/token?grant_type=pkce", body).await;

    // A new password with its nonce, a new address, a second factor, another user's attempt.
    let ada = holder(&app, &exchanged.body);
    app.owner.batch_execute("update auth.sessions set created_at = now() - interval '2 days'").await.expect("older");
    assert_eq!(ada.get("/auth/v1/reauthenticate").await.status, 200);
    let (nonce, _) = take_mail(&app, "ada@test.example").await.map(|mail| (mail.0, mail.1)).expect("a nonce");
    secrets.keep("nonce", &nonce);
    let body = json!({ "password": "another-Horse-8", "nonce": nonce });
    let changed = ada.put("/auth/v1/user", body).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    assert_eq!(ada.put("/auth/v1/user", json!({ "email": "ada2@test.example" })).await.status, 200);
    secrets.mail(&app, "new address", "ada2@test.example").await;
    secrets.mail(&app, "old address", "ada@test.example").await;
    let factor = enroll(&ada).await;
    secrets.keep("secret of the factor", &factor.secret);
    let raised = factor.raise(&ada).await;
    secrets.session("second factor", &raised);

    // By phone, anonymously, by invitation, with an administrator's link, with a hash, through a provider.
    assert_eq!(post("/auth/v1/otp", json!({ "phone": "+15550000001" })).await.status, 200);
    let sent = outside.asked().into_iter().rfind(|(path, _)| path.starts_with("/2010")).expect("a message").1;
    let sms: String = sent
        .split('&')
        .find_map(|pair| pair.strip_prefix("Body="))
        .expect("text")
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    secrets.keep("code by telephone", &sms);
    let body = json!({ "type": "sms", "phone": "+15550000001", "token": sms });
    secrets.session("telephone", &post("/auth/v1/verify", body).await.body);
    secrets.session("anonymous", &post("/auth/v1/signup", json!({})).await.body);
    app.service().post("/auth/v1/invite", json!({ "email": "invited@test.example" })).await;
    secrets.mail(&app, "invitation", "invited@test.example").await;
    let body = json!({ "type": "magiclink", "email": "ada@test.example" });
    let link = app.service().post("/auth/v1/admin/generate_link", body).await.body;
    secrets.keep("link: hash", text(&link, "hashed_token"));
    secrets.keep("link: code", text(&link, "email_otp"));
    let hash = bcrypt::hash("imported-Horse-7", 4).expect("hash");
    secrets.keep("hash", &hash);
    let body = json!({ "email": "old@test.example", "password_hash": hash, "email_confirm": true });
    assert_eq!(app.service().post("/auth/v1/admin/users", body).await.status, 200);
    let begun = send(app.plain(Method::GET, "/auth/v1/authorize?provider=github")).await;
    let state = begun.header("location").split_once("state=").expect("a state").1.to_owned();
    let ended =
        send(app.plain(Method::GET, &format!("/auth/v1/callback?code=provider-code-of-ada&state={state}"))).await;
    secrets.keep("provider's code", "provider-code-of-ada");
    let (_, fragment) = ended.header("location").split_once('#').expect("a fragment");
    assert!(fragment.contains("access_token="), "{fragment}");
    secrets.keep("provider: redirect", fragment);

    // Internal failures: PostgreSQL quotes whole rows, hooks and mail servers quote their input.
    app.owner
        .batch_execute("alter table auth.users add constraint nobody_new check (email <> 'late@test.example')")
        .await
        .expect("a constraint");
    let failed = post("/auth/v1/signup", json!({ "email": "late@test.example", "password": PASSWORD })).await;
    assert_eq!(failed.status, 500);
    let hook = format!("{}/hook", outside.base);
    let ill = app
        .another(&[
            ("GOTRUE_HOOK_SEND_EMAIL_ENABLED", "true"),
            ("GOTRUE_HOOK_SEND_EMAIL_URI", &hook),
            ("GOTRUE_HOOK_SEND_EMAIL_SECRETS", "v1,whsec_aG9vay1zZWNyZXQtb2Ytb3Vycw=="),
            ("GOTRUE_SMTP_MAX_FREQUENCY", "1ns"),
        ])
        .await;
    secrets.keep("hook's secret", "aG9vay1zZWNyZXQtb2Ytb3Vycw");
    assert_eq!(ill.anon().post("/auth/v1/recover", json!({ "email": "ada@test.example" })).await.status, 500);
    let told = outside.asked().into_iter().rfind(|(path, _)| path == "/hook").expect("the hook was asked").1;
    let told: Value = serde_json::from_str(&told).expect("json");
    secrets.keep("hook: code", text(&told["email_data"], "token"));
    secrets.keep("hook: hash", text(&told["email_data"], "token_hash"));
    let body = json!({ "email": "ada@test.example", "password": "another-Horse-8" });
    let last = ill.anon().post("/auth/v1/token?grant_type=password", body).await.body;
    secrets.session("last", &last);
    app.owner
        .batch_execute("alter table auth.refresh_tokens add constraint no_more check (revoked is not true) not valid")
        .await
        .expect("a constraint");
    assert_eq!(refresh(&app, text(&last, "refresh_token")).await.status, 500);
    let rows = app
        .owner
        .query("select encrypted_password from auth.users where encrypted_password <> ''", &[])
        .await
        .expect("hashes");
    assert!(!rows.is_empty());
    for row in rows {
        secrets.keep("stored hash", row.get(0));
    }

    let seen = String::from_utf8_lossy(&log.0.lock().expect("lock")).into_owned();
    let lines =
        ["request answered", "TRACE", "audit event", "Database error saving new user", "could not be rotated together"];
    for line in lines {
        assert!(seen.contains(line), "the log is not what it should be: no '{line}'");
    }
    // PostgreSQL refused the row, so only the beginning of its hash is known.
    assert!(!seen.contains("$2a$"), "a password hash is in the log");
    for (what, secret) in secrets.0 {
        // Other tests log too. Only whole words count, so that a six-digit code does not match part of a time.
        let found = seen.match_indices(&secret).find(|(at, _)| {
            let word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
            let before = seen[..*at].chars().next_back();
            !word(before) && before != Some('.') && !word(seen[at + secret.len()..].chars().next())
        });
        if let Some((at, _)) = found {
            let start = seen[..at].rfind('\n').map_or(0, |newline| newline + 1);
            let line = seen[start..].lines().next().unwrap_or("");
            panic!("{what} is in the log: {line}");
        }
    }
}

#[actix_web::test]
async fn provider_errors_are_in_the_log_but_not_in_the_answer() {
    if !alone("auth::logs::provider_errors_are_in_the_log_but_not_in_the_answer") {
        return;
    }
    let log = log();
    let place = outside::secure(&outside::serve(|_, _| async { HttpResponse::Ok().finish() }));
    // Allowed, but without a trusted certificate.
    let app = TestApp::with_settings(&[("FERROBASE_OUTBOUND_ALLOW", &place)]).await;
    let provider = json!({ "provider_type": "oidc", "identifier": "custom:house", "name": "House", "client_id": "c",
        "client_secret": "s", "issuer": place });
    let reply = app.service().post("/auth/v1/admin/custom-providers", provider).await;
    assert_eq!((reply.status, text(&reply.body, "error_code")), (400, "validation_failed"), "{}", reply.body);
    assert!(text(&reply.body, "msg").ends_with("failed: error sending request"), "{}", reply.body);
    let written = String::from_utf8_lossy(&log.0.lock().expect("lock")).into_owned();
    let told = written.lines().find(|line| line.contains("a provider could not be asked") && line.contains(&place));
    assert!(told.is_some_and(|line| line.contains("WARN") && line.contains("certificate")), "{told:?}");
}

#[actix_web::test]
async fn every_log_line_about_a_request_has_its_id() {
    if !alone("auth::logs::every_log_line_about_a_request_has_its_id") {
        return;
    }
    let log = log();
    let app = TestApp::start().await;
    let ada = app.user("ada@test.example").await;
    app.owner
        .batch_execute(
            "alter table auth.users add constraint nobody_new check (email <> 'late@test.example');
             create function functions.broken(input jsonb) returns jsonb language sql as 'select to_jsonb(1 / 0)';
             grant execute on function functions.broken to public",
        )
        .await
        .expect("what makes requests fail");
    let new = json!({ "email": "late@test.example", "password": PASSWORD });
    for (id, path, body, status, said) in [
        ("of-auth", "/auth/v1/signup", new, 500, "Database error saving new user"),
        ("of-functions", "/functions/v1/broken", json!({}), 400, "request answered"),
        ("of-storage", "/storage/v1/object/list/private", json!({ "prefix": "a" }), 200, "request answered"),
        ("of-rest", "/rest/v1/rpc/nothing", json!({}), 404, "request answered"),
    ] {
        let request = ada.actor.request(Method::POST, path).header("x-request-id", id).json(&body);
        let reply = send(request).await;
        assert_eq!((reply.status, reply.header("x-request-id")), (status, id), "{}", reply.body);
        let seen = String::from_utf8_lossy(&log.0.lock().expect("lock")).into_owned();
        let lines: Vec<&str> = seen.lines().filter(|line| line.contains(id)).collect();
        assert!(lines.iter().any(|line| line.contains(said)), "no line with '{said}' has {id}: {lines:#?}");
        let answered = lines.iter().find(|line| line.contains("request answered")).expect("the last line");
        for part in ["POST", path, &format!("status={status}")] {
            assert!(answered.contains(part), "{part} is not in {answered}");
        }
        assert!(id == "of-auth" || answered.contains("role=\"authenticated\""), "{answered}");
    }
}
