//! Settings with delayed effects: cleanup, refetching, and settings that prevent startup.

use std::sync::{Arc, Mutex};

use crate::auth::take_mail;
use crate::support::{PASSWORD, TestApp, outside};
use actix_web::HttpResponse;
use serde_json::json;

/// Expired rows of every kind, each once old (`o`) and once young (`y`).
const ROWS: &str = "
    insert into auth.users (instance_id, id, aud, email, created_at, is_anonymous) values
    ('00000000-0000-0000-0000-000000000000', '11111111-1111-4111-8111-111111111111', 'authenticated', 'a@test.example', now(), false),
    ('00000000-0000-0000-0000-000000000000', '22222222-2222-4222-8222-222222222222', 'authenticated', null, now() - interval '31 days', true),
    ('00000000-0000-0000-0000-000000000000', '33333333-3333-4333-8333-333333333333', 'authenticated', null, now() - interval '29 days', true);
    insert into auth.sessions (id, user_id, created_at, refreshed_at, not_after, tag)
    select gen_random_uuid(), '11111111-1111-4111-8111-111111111111', now() - created, now() at time zone 'UTC' - refreshed, now() - ended, tag
    from (values
      (interval '0', interval '0', interval '73 hours', 'o ended'), (interval '0', interval '0', interval '71 hours', 'y ended'),
      (interval '50 hours', interval '0', null, 'o timebox'), (interval '48 hours', interval '0', null, 'y timebox'),
      (interval '30 hours', interval '28 hours', null, 'o idle'), (interval '30 hours', interval '26 hours', null, 'y idle')
    ) as rows (created, refreshed, ended, tag);
    insert into auth.refresh_tokens (instance_id, token, user_id, revoked, created_at, updated_at, session_id)
    select '00000000-0000-0000-0000-000000000000', token, '11111111-1111-4111-8111-111111111111', revoked, now() - age, now() - age,
      (select id from auth.sessions where tag = 'y ended')
    from (values ('o revoked', true, interval '25 hours'), ('y revoked', true, interval '23 hours'), ('y living', false, interval '90 days'))
      as rows (token, revoked, age);
    insert into auth.flow_state (id, provider_type, authentication_method, created_at, updated_at)
    select gen_random_uuid(), kind, 'oauth', now() - age, now() - age
    from (values ('o flow', interval '25 hours'), ('y flow', interval '23 hours')) as rows (kind, age);
    insert into auth.mfa_factors (id, user_id, friendly_name, factor_type, status, created_at, updated_at)
    select gen_random_uuid(), '11111111-1111-4111-8111-111111111111', name, 'totp', status::auth.factor_status, now() - age, now() - age
    from (values ('o factor', 'unverified', interval '25 hours'), ('y factor', 'unverified', interval '23 hours'),
      ('y verified', 'verified', interval '90 days')) as rows (name, status, age);
    insert into auth.mfa_challenges (id, factor_id, created_at, ip_address, otp_code)
    select gen_random_uuid(), (select id from auth.mfa_factors where friendly_name = 'y verified'), now() - age, '127.0.0.1', code
    from (values ('o challenge', interval '25 hours'), ('y challenge', interval '23 hours')) as rows (code, age);
    insert into auth.oauth_clients (id, registration_type, redirect_uris, grant_types, client_type, token_endpoint_auth_method)
    values ('44444444-4444-4444-8444-444444444444', 'manual', 'https://club.example/cb', 'authorization_code', 'public', 'none');
    insert into auth.oauth_authorizations (id, authorization_id, client_id, redirect_uri, scope, created_at, expires_at)
    select gen_random_uuid(), name, '44444444-4444-4444-8444-444444444444', 'https://club.example/cb', 'email', now() - interval '1 day', now() - age
    from (values ('o authorization', interval '61 minutes'), ('y authorization', interval '59 minutes')) as rows (name, age);
    insert into auth.oauth_client_states (id, provider_type, code_verifier, created_at)
    select gen_random_uuid(), name, 'v', now() - age
    from (values ('o verifier', interval '61 minutes'), ('y verifier', interval '59 minutes')) as rows (name, age);
    insert into auth.webauthn_challenges (challenge_type, session_data, created_at, expires_at)
    select 'authentication', jsonb_build_object('name', name), now() - interval '1 day', now() - age
    from (values ('o passkey', interval '61 minutes'), ('y passkey', interval '59 minutes')) as rows (name, age);
";

const NAMES: &str = "
    select coalesce(string_agg(name, ', ' order by name), '') from (
      select tag as name from auth.sessions union all select token from auth.refresh_tokens
      union all select provider_type from auth.flow_state union all select friendly_name from auth.mfa_factors
      union all select otp_code from auth.mfa_challenges union all select authorization_id from auth.oauth_authorizations
      union all select provider_type from auth.oauth_client_states
      union all select session_data->>'name' from auth.webauthn_challenges
      union all select case when created_at < now() - interval '30 days' then 'o' else 'y' end || ' anonymous'
        from auth.users where is_anonymous
    ) as names";

async fn names(app: &TestApp) -> String {
    app.owner.query_one(NAMES, &[]).await.expect("names").get(0)
}

const YOUNG: &str = "y anonymous, y authorization, y challenge, y ended, y factor, y flow, y idle, y living, y passkey, y revoked, \
     y timebox, y verified, y verifier";

#[actix_web::test]
async fn expired_rows_are_removed_if_cleanup_is_enabled() {
    let limits = [
        ("GOTRUE_SESSIONS_TIMEBOX", "25h"),
        ("GOTRUE_SESSIONS_INACTIVITY_TIMEOUT", "3h"),
        ("GOTRUE_EXTERNAL_ANONYMOUS_USERS_ENABLED", "true"),
    ];
    let off = [&limits[..], &[("GOTRUE_DB_CLEANUP_ENABLED", "false")]].concat();
    let app = TestApp::with_settings(&off).await;
    app.owner.batch_execute(ROWS).await.expect("rows");
    let before = names(&app).await;
    assert_eq!(app.auth.clean_up().await.expect("nothing to do"), 0);
    assert_eq!(names(&app).await, before);

    // With cleanup enabled, a server starts it soon after startup.
    let on = [&limits[..], &[("GOTRUE_DB_CLEANUP_ENABLED", "true")]].concat();
    let _cleaner = app.another(&on).await;
    for _ in 0..200 {
        if names(&app).await == YOUNG {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(names(&app).await, YOUNG);
}

#[actix_web::test]
async fn without_limits_no_session_or_anonymous_user_expires() {
    let app = TestApp::with_settings(&[("GOTRUE_DB_CLEANUP_ENABLED", "false")]).await;
    app.owner.batch_execute(ROWS).await.expect("rows");
    let cleaner = app.another(&[("GOTRUE_DB_CLEANUP_ENABLED", "true")]).await;
    cleaner.auth.clean_up().await.expect("cleaned up");
    let left = names(&app).await;
    for kept in ["o timebox", "o idle", "o anonymous"] {
        assert!(left.contains(kept), "{left}");
    }
    let gone =
        ["o ended", "o revoked", "o flow", "o factor", "o challenge", "o authorization", "o verifier", "o passkey"];
    for gone in gone {
        assert!(!left.contains(gone), "{left}");
    }
}

/// A server of mail templates with configurable answers.
struct Templates {
    base: String,
    answer: Arc<Mutex<(u16, String)>>,
}

impl Templates {
    fn start(text: &str) -> Self {
        let answer = Arc::new(Mutex::new((200, text.to_owned())));
        let told = Arc::clone(&answer);
        let base = outside::serve(move |_, _| {
            let (status, body) = told.lock().expect("lock").clone();
            async move { HttpResponse::build(actix_web::http::StatusCode::from_u16(status).expect("status")).body(body) }
        });
        Self { base, answer }
    }

    fn tell(&self, status: u16, text: &str) {
        *self.answer.lock().expect("lock") = (status, text.to_owned());
    }
}

/// The text of the mail sent at sign-up.
async fn mailed(app: &TestApp) -> String {
    let email = format!("{}@test.example", uuid::Uuid::new_v4());
    let reply = app.anon().post("/auth/v1/signup", json!({ "email": email, "password": PASSWORD })).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    take_mail(app, &email).await.expect("a mail").1
}

#[actix_web::test]
async fn a_remote_template_is_fetched_again_after_a_while() {
    let templates = Templates::start("<p>first {{ .Email }}</p>");
    let url = format!("{}/confirmation.html", templates.base);
    let settings = |age: &'static str| {
        vec![
            ("GOTRUE_MAILER_AUTOCONFIRM", "false"),
            ("GOTRUE_MAILER_TEMPLATES_CONFIRMATION", url.as_str()),
            ("GOTRUE_MAILER_TEMPLATE_MAX_AGE", age),
            ("GOTRUE_MAILER_TEMPLATE_RETRY_INTERVAL", "0s"),
        ]
    };
    let app = TestApp::with_settings(&settings("1ns")).await;
    let lasting = app.another(&settings("10m")).await;
    assert!(mailed(&app).await.starts_with("first "));
    templates.tell(200, "<p>second</p>");
    assert_eq!(mailed(&app).await, "second");
    assert!(mailed(&lasting).await.starts_with("first "), "not old yet");
    templates.tell(503, "out of order");
    assert_eq!(mailed(&app).await, "second", "the last valid template remains in use");
    templates.tell(200, "{{ if }}");
    assert_eq!(mailed(&app).await, "second", "also when the new one does not parse");
    templates.tell(200, "third");
    assert_eq!(mailed(&app).await, "third");
}

#[actix_web::test]
async fn an_unreachable_template_url_does_not_prevent_startup() {
    let templates = Templates::start("");
    templates.tell(404, "no such page");
    let url = format!("{}/confirmation.html", templates.base);
    let app = TestApp::with_settings(&[
        ("GOTRUE_MAILER_AUTOCONFIRM", "false"),
        ("GOTRUE_MAILER_TEMPLATES_CONFIRMATION", url.as_str()),
        ("GOTRUE_MAILER_TEMPLATE_MAX_AGE", "1ns"),
        ("GOTRUE_MAILER_TEMPLATE_RETRY_INTERVAL", "0s"),
    ])
    .await;
    assert!(mailed(&app).await.contains("/verify?"), "the default stands in");
    templates.tell(200, "<p>here again</p>");
    assert_eq!(mailed(&app).await, "here again");
}

#[actix_web::test]
async fn a_template_is_read_up_to_the_configured_size() {
    let templates = Templates::start("as far as here, and no further");
    let url = format!("{}/confirmation.html", templates.base);
    let settings = [
        ("GOTRUE_MAILER_AUTOCONFIRM", "false"),
        ("GOTRUE_MAILER_TEMPLATES_CONFIRMATION", url.as_str()),
        ("GOTRUE_MAILER_TEMPLATE_MAX_SIZE", "14"),
    ];
    let app = TestApp::with_settings(&settings).await;
    assert_eq!(mailed(&app).await, "as far as here");
}

#[actix_web::test]
async fn an_invalid_template_prevents_startup() {
    let app = TestApp::start().await;
    let templates = Templates::start("<p>{{ if .Email }}</p>");
    for (setting, value, named) in [
        ("GOTRUE_MAILER_SUBJECTS_RECOVERY", "{{ .Token", "recovery"),
        ("GOTRUE_MAILER_TEMPLATES_INVITE", "<p>{{ range .Data }}</p>", "invite"),
        ("GOTRUE_MAILER_TEMPLATES_MAGIC_LINK", templates.base.as_str(), "magic_link"),
    ] {
        let error = app.try_another(&[(setting, value)]).await.err().map(|error| format!("{error:#}"));
        let error = error.unwrap_or_else(|| panic!("{setting} was accepted"));
        assert!(error.contains(named) && error.contains("does not parse"), "{error}");
    }
}

#[actix_web::test]
async fn contradictory_settings_prevent_startup() {
    let app = TestApp::start().await;
    for settings in [
        &[("GOTRUE_MAILER_AUTOCONFIRM", "true"), ("GOTRUE_MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS", "true")][..],
        &[("GOTRUE_JWT_KEYS", "[]")],
        &[("GOTRUE_JWT_KEYS", r#"[{"kty":"oct","kid":"a","alg":"none","k":"c2VjcmV0","key_ops":["sign"]}]"#)],
        &[("GOTRUE_SESSIONS_TIMEBOX", "soon")],
        &[("GOTRUE_HOOK_SEND_EMAIL_ENABLED", "true"), ("GOTRUE_HOOK_SEND_EMAIL_URI", "http://hooks.example/")],
        &[("GOTRUE_SECURITY_CAPTCHA_ENABLED", "true")],
    ] {
        assert!(app.try_another(settings).await.is_err(), "{settings:?}");
    }
}
