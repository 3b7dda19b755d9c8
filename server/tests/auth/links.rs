//! Links and codes: their redirects, and that each works once.

use std::sync::Arc;

use crate::auth::outside::{by_text, twilio};
use crate::auth::{hash_of, meanwhile, meet, take_link, take_mail, text};
use crate::support::{PASSWORD, TestApp, outside, send};
use actix_web::HttpResponse;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use tokio::sync::Notify;

const BY_MAIL: [(&str, &str); 3] = [
    ("GOTRUE_MAILER_AUTOCONFIRM", "false"),
    ("GOTRUE_SMTP_MAX_FREQUENCY", "1ns"),
    ("GOTRUE_URI_ALLOW_LIST", "https://allowed.example/**"),
];

async fn sign_up(app: &TestApp, email: &str, query: &str) {
    let reply =
        app.anon().post(&format!("/auth/v1/signup{query}"), json!({ "email": email, "password": PASSWORD })).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
}

async fn follow(app: &TestApp, link: &str) -> String {
    let url = url::Url::parse(link).expect("link");
    let reply = send(app.plain(Method::GET, &format!("{}?{}", url.path(), url.query().unwrap_or("")))).await;
    assert_eq!(reply.status, 303, "{}", reply.body);
    reply.header("location").to_owned()
}

#[actix_web::test]
async fn a_link_confirms_and_signs_in_once() {
    let app = TestApp::with_settings(&BY_MAIL).await;
    sign_up(&app, "ada@test.example", "?redirect_to=https://allowed.example/welcome").await;
    let refused = app
        .anon()
        .post("/auth/v1/token?grant_type=password", json!({ "email": "ada@test.example", "password": PASSWORD }))
        .await;
    assert_eq!(refused.body["error_code"], "email_not_confirmed");
    let link = take_link(&app, "ada@test.example").await;
    let location = follow(&app, &link).await;
    assert!(location.starts_with("https://allowed.example/welcome#access_token="), "{location}");
    assert!(location.contains("&token_type=bearer&type=signup"), "{location}");
    let again = follow(&app, &link).await;
    assert!(again.contains("error_code=otp_expired"), "{again}");
}

#[actix_web::test]
async fn one_of_many_requests_with_one_link_gets_a_session() {
    let app = TestApp::with_settings(&BY_MAIL).await;
    sign_up(&app, "ada@test.example", "").await;
    let hash = hash_of(&take_link(&app, "ada@test.example").await);
    let replies = join_all((0..8).map(|_| async {
        app.anon().post("/auth/v1/verify", json!({ "type": "signup", "token_hash": hash })).await.status
    }))
    .await;
    assert_eq!(replies.iter().filter(|status| **status == 200).count(), 1, "{replies:?}");
    assert_eq!(replies.iter().filter(|status| **status == 403).count(), 7, "{replies:?}");
}

#[actix_web::test]
async fn one_of_many_requests_with_one_code_gets_a_session() {
    let settings = [BY_MAIL[0], BY_MAIL[1], ("GOTRUE_MAILER_SUBJECTS_CONFIRMATION", "{{ .Token }}")];
    let app = TestApp::with_settings(&settings).await;
    sign_up(&app, "ada@test.example", "").await;
    let (code, _) = take_mail(&app, "ada@test.example").await.expect("a mail");
    let replies = join_all((0..8).map(|_| async {
        let body = json!({ "type": "email", "email": "ada@test.example", "token": code });
        app.anon().post("/auth/v1/verify", body).await.status
    }))
    .await;
    assert_eq!(replies.iter().filter(|status| **status == 200).count(), 1, "{replies:?}");
}

#[actix_web::test]
async fn one_of_many_exchanges_of_one_auth_code_gets_a_session() {
    let app = TestApp::with_settings(&BY_MAIL).await;
    let verifier = "a-verifier-that-is-long-enough-for-the-rules-0123456789";
    let challenge = {
        use base64::Engine as _;
        use sha2::Digest as _;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(sha2::Sha256::digest(verifier))
    };
    let body = json!({ "email": "ada@test.example", "password": PASSWORD, "code_challenge": challenge,
        "code_challenge_method": "s256" });
    assert_eq!(app.anon().post("/auth/v1/signup", body).await.status, 200);
    let location = follow(&app, &take_link(&app, "ada@test.example").await).await;
    let url = url::Url::parse(&location).expect("location");
    assert_eq!(url.fragment(), None, "a code, not a session: {location}");
    let code = url.query_pairs().find(|(name, _)| name == "code").map(|(_, v)| v.into_owned()).expect("code");
    let exchange = async |verifier: &str| {
        let body = json!({ "auth_code": code, "code_verifier": verifier });
        app.anon().post("/auth/v1/token?grant_type=pkce", body).await
    };
    assert_eq!(
        exchange("another-verifier-that-is-long-enough-0123456789").await.body["error_code"],
        "bad_code_verifier"
    );
    let replies = join_all((0..8).map(|_| async { exchange(verifier).await.status })).await;
    assert_eq!(replies.iter().filter(|status| **status == 200).count(), 1, "{replies:?}");
}

/// Whichever comes first, no session opened by the code survives the new password, and none waits for the other forever.
#[actix_web::test]
async fn an_exchange_beside_a_new_password_leaves_no_session() {
    let app = TestApp::with_settings(&BY_MAIL).await;
    let body = json!({ "email": "ada@test.example", "password": PASSWORD, "email_confirm": true });
    let id = text(&app.service().post("/auth/v1/admin/users", body).await.body, "id").to_owned();
    // Both need long enough to meet.
    app.owner
        .batch_execute(
            "create function public.slowly() returns trigger language plpgsql as
            $$ begin perform pg_sleep(0.1); return new; end $$;
            create trigger slowly after update on auth.users for each row execute function public.slowly()",
        )
        .await
        .expect("a trigger");
    let verifier = "a-verifier-that-is-long-enough-for-the-rules-0123456789";
    for round in 0..6_u64 {
        let issued = format!(
            "insert into auth.flow_state (id, provider_type, authentication_method, user_id, auth_code, code_challenge,
               code_challenge_method, created_at, auth_code_issued_at)
             values (gen_random_uuid(), 'email', 'magiclink', '{id}', 'code{round}', '{verifier}', 'plain', now(), now())"
        );
        app.owner.batch_execute(&issued).await.expect("a code");
        let exchange = async {
            tokio::time::sleep(std::time::Duration::from_millis(round * 30)).await;
            let body = json!({ "auth_code": format!("code{round}"), "code_verifier": verifier });
            app.anon().post("/auth/v1/token?grant_type=pkce", body).await
        };
        let body = json!({ "password": format!("another-Horse-{round}") });
        let path = format!("/auth/v1/admin/users/{id}");
        let service = app.service();
        let (exchanged, changed) = futures_util::join!(exchange, service.put(&path, body));
        assert_eq!(changed.status, 200, "{}", changed.body);
        assert!([200, 404].contains(&exchanged.status), "{}", exchanged.body);
        let left = app.owner.query_one("select count(*) from auth.sessions", &[]).await.expect("a number");
        assert_eq!(left.get::<_, i64>(0), 0, "{round}");
    }
}

/// A person at GitHub, whose address is verified or not.
fn github(verified: bool) -> String {
    outside::serve(move |request, _| async move {
        let answer = match request.path() {
            "/login/oauth/access_token" => json!({ "access_token": "t", "token_type": "bearer" }),
            "/api/v3/user" => json!({ "id": 7, "login": "ada", "name": "Ada" }),
            "/api/v3/user/emails" => {
                json!([{ "email": "ada@test.example", "primary": true, "verified": verified }])
            }
            _ => return HttpResponse::NotFound().finish(),
        };
        HttpResponse::Ok().json(answer)
    })
}

fn with_github(url: &str) -> [(&'static str, &str); 5] {
    [
        ("GOTRUE_EXTERNAL_GITHUB_ENABLED", "true"),
        ("GOTRUE_EXTERNAL_GITHUB_CLIENT_ID", "client"),
        ("GOTRUE_EXTERNAL_GITHUB_SECRET", "secret"),
        ("GOTRUE_EXTERNAL_GITHUB_REDIRECT_URI", "http://127.0.0.1/auth/v1/callback"),
        ("GOTRUE_EXTERNAL_GITHUB_URL", url),
    ]
}

fn state_in(location: &str) -> String {
    let url = url::Url::parse(location).expect("a URL");
    url.query_pairs().find(|(name, _)| name == "state").expect("a state").1.into_owned()
}

/// All of them decide to create a user before one has.
#[actix_web::test]
async fn a_new_person_coming_back_from_a_provider_several_times_at_once_gets_one_account() {
    let url = github(true);
    let app = TestApp::with_settings(&with_github(&url)).await;
    let mut paths = Vec::new();
    for _ in 0..3 {
        let begun = send(app.plain(Method::GET, "/auth/v1/authorize?provider=github")).await;
        paths.push(format!("/auth/v1/callback?code=c&state={}", state_in(begun.header("location"))));
    }
    let returns = join_all(paths.iter().map(|path| send(app.plain(Method::GET, path))));
    let replies = meanwhile(&app, "lock table auth.users in share mode", 3, returns).await;
    for reply in &replies {
        assert!(reply.header("location").contains("#access_token="), "{}", reply.header("location"));
    }
    let users = app.owner.query_one("select count(*) from auth.users", &[]).await.expect("a number");
    assert_eq!(users.get::<_, i64>(0), 1);
}

/// The user signs out while the person's data are fetched from the provider.
#[actix_web::test]
async fn a_link_under_way_does_not_outlast_a_sign_out() {
    let (asked, signed_out) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let gate = (Arc::clone(&asked), Arc::clone(&signed_out));
    let person = github(false);
    let url = outside::serve(move |request, _| {
        let (gate, person) = (gate.clone(), person.clone());
        async move {
            gate.0.notify_one();
            gate.1.notified().await;
            gate.1.notify_one();
            let answer = reqwest::get(format!("{person}{}", request.path())).await.expect("an answer");
            HttpResponse::Ok().content_type("application/json").body(answer.bytes().await.expect("a body"))
        }
    });
    let mut settings = with_github(&url).to_vec();
    settings.extend([
        ("GOTRUE_MAILER_AUTOCONFIRM", "false"),
        ("GOTRUE_EXTERNAL_ANONYMOUS_USERS_ENABLED", "true"),
        ("GOTRUE_SECURITY_MANUAL_LINKING_ENABLED", "true"),
    ]);
    let app = TestApp::with_settings(&settings).await;
    let signed_up = app.anon().post("/auth/v1/signup", json!({})).await;
    let mut nameless = app.anon();
    nameless.token = Some(text(&signed_up.body, "access_token").to_owned());
    let begun = nameless.get("/auth/v1/user/identities/authorize?provider=github&skip_http_redirect=true").await;
    let path = format!("/auth/v1/callback?code=c&state={}", state_in(text(&begun.body, "url")));
    let signing_out = async {
        asked.notified().await;
        assert_eq!(nameless.post("/auth/v1/logout", json!({})).await.status, 204);
        signed_out.notify_one();
    };
    let (reply, ()) = futures_util::join!(send(app.plain(Method::GET, &path)), signing_out);
    assert!(reply.header("location").contains("error_code=bad_oauth_state"), "{}", reply.header("location"));
    let stored =
        "select (select count(*) from auth.identities), (select count(*) from auth.users where email is not null)";
    let row = app.owner.query_one(stored, &[]).await.expect("numbers");
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (0, 0));
    assert!(take_mail(&app, "ada@test.example").await.is_none());
}

#[actix_web::test]
async fn a_token_works_only_for_its_purpose_and_address() {
    let settings = [BY_MAIL[0], BY_MAIL[1], ("GOTRUE_MAILER_SUBJECTS_RECOVERY", "{{ .Token }}")];
    let app = TestApp::with_settings(&settings).await;
    for email in ["ada@test.example", "bob@test.example"] {
        let body = json!({ "email": email, "password": PASSWORD, "email_confirm": true });
        app.service().post("/auth/v1/admin/users", body).await;
    }
    app.anon().post("/auth/v1/recover", json!({ "email": "ada@test.example" })).await;
    let (code, mail) = take_mail(&app, "ada@test.example").await.expect("a mail");
    let hash = hash_of(mail.split_whitespace().find(|word| word.contains("/verify?")).expect("a link"));
    for body in [
        json!({ "type": "signup", "token_hash": hash }),
        json!({ "type": "email_change", "token_hash": hash }),
        json!({ "type": "recovery", "token_hash": code }),
        json!({ "type": "recovery", "email": "bob@test.example", "token": code }),
        json!({ "type": "signup", "email": "ada@test.example", "token": code }),
    ] {
        let reply = app.anon().post("/auth/v1/verify", body.clone()).await;
        assert_eq!((reply.status, text(&reply.body, "error_code")), (403, "otp_expired"), "{body}");
    }
    let stored: String =
        app.owner.query_one("select token_hash from auth.one_time_tokens", &[]).await.expect("one token").get(0);
    assert!(stored == hash && !stored.contains(&code), "the database holds the hash alone");
    let reply = app.anon().post("/auth/v1/verify", json!({ "type": "recovery", "token_hash": hash })).await;
    assert_eq!(reply.status, 200);
}

#[actix_web::test]
async fn a_new_password_or_address_invalidates_earlier_mails() {
    let app = TestApp::with_settings(&BY_MAIL).await;
    let body = json!({ "email": "ada@test.example", "password": PASSWORD, "email_confirm": true });
    let id = text(&app.service().post("/auth/v1/admin/users", body).await.body, "id").to_owned();
    for change in [json!({ "password": "another-Horse-8" }), json!({ "email": "ada2@test.example" })] {
        let email: String = app.owner.query_one("select email from auth.users", &[]).await.expect("user").get(0);
        app.anon().post("/auth/v1/recover", json!({ "email": email })).await;
        let hash = hash_of(&take_link(&app, &email).await);
        let reply = app.service().put(&format!("/auth/v1/admin/users/{id}"), change.clone()).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let reply = app.anon().post("/auth/v1/verify", json!({ "type": "recovery", "token_hash": hash })).await;
        assert_eq!(reply.status, 403, "after {change}");
    }
}

#[actix_web::test]
async fn account_changes_invalidate_earlier_mails() {
    let settings = [
        BY_MAIL[0],
        BY_MAIL[1],
        ("GOTRUE_MAILER_SUBJECTS_RECOVERY", "{{ .Token }}"),
        ("GOTRUE_SECURITY_MANUAL_LINKING_ENABLED", "true"),
    ];
    let app = TestApp::with_settings(&settings).await;
    let body = json!({ "email": "ada@test.example", "password": PASSWORD, "email_confirm": true });
    app.service().post("/auth/v1/admin/users", body).await;
    let body = json!({ "email": "ada@test.example", "password": PASSWORD });
    let session = app.anon().post("/auth/v1/token?grant_type=password", body).await.body;
    let mut ada = app.anon();
    ada.token = Some(text(&session, "access_token").to_owned());

    let recover = async |email: &'static str| {
        app.anon().post("/auth/v1/recover", json!({ "email": email })).await;
        let (code, mail) = take_mail(&app, email).await.expect("a mail");
        let hash = hash_of(mail.split_whitespace().find(|word| word.contains("/verify?")).expect("a link"));
        (code, hash)
    };
    let refused = async |what: &str, email: &str, (code, hash): &(String, String)| {
        for body in [
            json!({ "type": "recovery", "token_hash": hash }),
            json!({ "type": "recovery", "email": email, "token": code }),
            json!({ "type": "magiclink", "email": "ada@test.example", "token": code }),
            json!({ "type": "email", "email": "ada2@test.example", "token": code }),
        ] {
            let reply = app.anon().post("/auth/v1/verify", body.clone()).await;
            assert_eq!((reply.status, text(&reply.body, "error_code")), (403, "otp_expired"), "{what}: {body}");
        }
    };
    let before = recover("ada@test.example").await;
    assert_eq!(ada.put("/auth/v1/user", json!({ "password": "another-Horse-8" })).await.status, 200);
    refused("a new password", "ada@test.example", &before).await;

    assert_eq!(ada.put("/auth/v1/user", json!({ "email": "ada2@test.example" })).await.status, 200);
    let links = [take_link(&app, "ada@test.example").await, take_link(&app, "ada2@test.example").await];
    let before = recover("ada@test.example").await;
    for link in &links {
        follow(&app, link).await;
    }
    let email: String = app.owner.query_one("select email from auth.users", &[]).await.expect("user").get(0);
    assert_eq!(email, "ada2@test.example", "both have confirmed");
    refused("a new address", "ada@test.example", &before).await;
    for link in &links {
        assert!(follow(&app, link).await.contains("error_code=otp_expired"), "{link}");
    }
}

#[actix_web::test]
async fn one_of_many_password_changes_with_one_nonce_succeeds() {
    let settings = [
        BY_MAIL[0],
        BY_MAIL[1],
        ("GOTRUE_MAILER_SUBJECTS_REAUTHENTICATION", "{{ .Token }}"),
        ("GOTRUE_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION", "true"),
    ];
    let app = TestApp::with_settings(&settings).await;
    let body = json!({ "email": "ada@test.example", "password": PASSWORD, "email_confirm": true });
    app.service().post("/auth/v1/admin/users", body).await;
    let body = json!({ "email": "ada@test.example", "password": PASSWORD });
    let session = app.anon().post("/auth/v1/token?grant_type=password", body).await.body;
    let mut ada = app.anon();
    ada.token = Some(text(&session, "access_token").to_owned());
    app.owner.batch_execute("update auth.sessions set created_at = now() - interval '25 hours'").await.expect("older");
    let missing = ada.put("/auth/v1/user", json!({ "password": "another-Horse-8" })).await;
    assert_eq!((missing.status, text(&missing.body, "error_code")), (400, "reauthentication_needed"));
    assert_eq!(ada.get("/auth/v1/reauthenticate").await.status, 200);
    let (nonce, _) = take_mail(&app, "ada@test.example").await.expect("a nonce");
    let changes = join_all((0..6).map(|n| {
        let body = json!({ "password": format!("another-Horse-{n}"), "nonce": nonce });
        let ada = ada.clone();
        async move { ada.put("/auth/v1/user", body).await }
    }));
    let replies = meet(&app, "select from auth.users", 6, changes).await;
    let (made, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 200);
    assert_eq!(made.len(), 1, "{:?}", replies.iter().map(|reply| &reply.body).collect::<Vec<_>>());
    for reply in refused {
        assert_eq!((reply.status, text(&reply.body, "error_code")), (422, "reauthentication_not_valid"));
    }
}

#[actix_web::test]
async fn each_kind_of_mailed_or_texted_proof_opens_one_session() {
    let twilio = twilio();
    let subject = [("GOTRUE_MAILER_SUBJECTS_RECOVERY", "{{ .Token }}")];
    let settings = [&BY_MAIL[..2], &by_text(&twilio), &subject].concat();
    let app = TestApp::with_settings(&settings).await;
    let body = json!({ "email": "ada@test.example", "password": PASSWORD, "email_confirm": true });
    app.service().post("/auth/v1/admin/users", body).await;
    app.anon().post("/auth/v1/recover", json!({ "email": "ada@test.example" })).await;
    let (code, _) = take_mail(&app, "ada@test.example").await.expect("a mail");
    app.anon().post("/auth/v1/otp", json!({ "phone": "+15550000001" })).await;
    let sent = twilio.asked().pop().expect("a message").1;
    let text_code: String = sent
        .split('&')
        .find_map(|pair| pair.strip_prefix("Body="))
        .expect("text")
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    app.service().post("/auth/v1/invite", json!({ "email": "bob@test.example" })).await;
    let invitation = hash_of(&take_link(&app, "bob@test.example").await);
    for (body, rows) in [
        (json!({ "type": "recovery", "email": "ada@test.example", "token": code }), "select from auth.users"),
        (json!({ "type": "sms", "phone": "+15550000001", "token": text_code }), "select from auth.users"),
        (json!({ "type": "invite", "token_hash": invitation }), "select from auth.one_time_tokens"),
    ] {
        let requests =
            join_all((0..8).map(|_| async { app.anon().post("/auth/v1/verify", body.clone()).await.status }));
        let replies = meet(&app, rows, 8, requests).await;
        assert_eq!(replies.iter().filter(|status| **status == 200).count(), 1, "{body}: {replies:?}");
        assert_eq!(replies.iter().filter(|status| **status == 403).count(), 7, "{body}: {replies:?}");
    }
}

/// Upstream gives whoever signs up with it the session of an account whose other address is confirmed.
#[actix_web::test]
async fn signing_up_with_the_unconfirmed_address_of_an_account_opens_no_session() {
    let twilio = twilio();
    let settings = [&BY_MAIL[..2], &by_text(&twilio)].concat();
    let app = TestApp::with_settings(&settings).await;
    for (account, asked) in [
        (
            json!({ "email": "ada@test.example", "email_confirm": true, "phone": "15550000001", "password": PASSWORD }),
            json!({ "phone": "15550000001", "password": "of a stranger 1" }),
        ),
        (
            json!({ "email": "bob@test.example", "phone": "15550000002", "phone_confirm": true, "password": PASSWORD }),
            json!({ "email": "bob@test.example", "password": "of a stranger 1" }),
        ),
    ] {
        let made = app.service().post("/auth/v1/admin/users", account).await;
        assert_eq!(made.status, 200, "{}", made.body);
        let reply = app.anon().post("/auth/v1/signup", asked).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert!(reply.body.get("access_token").is_none(), "{}", reply.body);
        assert!(reply.body.get("id").is_some(), "{}", reply.body);
    }
    let sessions = app.owner.query_one("select count(*) from auth.sessions", &[]).await.expect("sessions");
    assert_eq!(sessions.get::<_, i64>(0), 0);
}

#[actix_web::test]
async fn redirects_stay_on_the_allow_list_and_headers_do_not_change_links() {
    let settings = [
        BY_MAIL[0],
        BY_MAIL[1],
        (
            "GOTRUE_URI_ALLOW_LIST",
            "https://allowed.example/**,https://*.preview.example/in,http://*/in,http://*.*.*.*/in",
        ),
    ];
    let app = TestApp::with_settings(&settings).await;
    let site = app.base.clone();
    let host = site.strip_prefix("http://").expect("plain").to_owned();
    // URLs that a parser may read as our host, but a browser as another.
    let misread = [
        format!("{site}@evil.example/x"),
        format!("{site}:pass@evil.example/x"),
        format!("http://evil.example#@{host}/x"),
        format!("http://evil.example\\@{host}/x"),
        format!("http://evil.example?@{host}/x"),
    ];
    let misread = misread.iter().map(String::as_str);
    for (index, target) in misread
        .chain([
            "https://evil.example",
            "https://allowed.example.evil.example/x",
            "https://allowed.example@evil.example/x",
            "https://allowed.example:pass@evil.example/x",
            "https://evil.example/https://allowed.example/x",
            "https://evil.example?https://allowed.example/x",
            "https://evil.example#https://allowed.example/x",
            "http://evil.example#/in",
            "http://evil#/in",
            "https://allowed.example/x\r\nx-evil: 1",
            "https://evil.example#@allowed.example/x",
            "https://evil.example\\@allowed.example/x",
            "https://allowed.example\\.evil.example/x",
            "http://allowed.example/x",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "evil.example",
            "javascript:alert(1)",
            "data:text/html,x",
            "http://2130706433/in",
            "http://[2001:db8::1]/in",
            "http://bad_host/in",
            "http://-evil/in",
            "http://evil-/in",
            "http://evil%5F/in",
            "http://0x7f000001/",
            "http://10.0.0.1/",
            "http://10.0.0.1/in",
            "http://169.254.169.254/",
            "http://[2001:db8::1]/",
            "http://[::ffff:10.0.0.1]/",
            "https://allowed.example%2eevil.example/x",
            "https://allowed。example/x",
            "https://a.b.preview.example/in",
            "https://evil.example/.preview.example/in",
            "https://x.preview.example/in/../../y",
            "https://evil\texample/x",
            "https://allowed.example\n.evil.example/x",
        ])
        .enumerate()
    {
        let email = format!("u{index}@test.example");
        let path = format!(
            "/auth/v1/signup?redirect_to={}",
            percent_encoding::utf8_percent_encode(target, percent_encoding::NON_ALPHANUMERIC)
        );
        let body = json!({ "email": email, "password": PASSWORD });
        let request = app.anon().request(Method::POST, &path).json(&body);
        let request = request
            .header("x-forwarded-host", "evil.example")
            .header("x-forwarded-proto", "https")
            .header("forwarded", "host=evil.example")
            .header("x-original-host", "evil.example")
            .header("host", "evil.example")
            .header("referer", "https://evil.example/");
        assert_eq!(send(request).await.status, 200);
        let link = take_link(&app, &email).await;
        assert!(link.starts_with(&format!("{site}/auth/v1/verify?")), "{target:?}: {link}");
        let (_, redirect) = link.split_once("redirect_to=").expect("a redirect");
        assert_eq!(redirect, site, "{target:?}");
        assert!(follow(&app, &link).await.starts_with(&format!("{site}#access_token=")), "{target:?}");
    }
    // The link's redirect cannot be changed.
    sign_up(&app, "last@test.example", "?redirect_to=https://x.preview.example/in").await;
    let link = take_link(&app, "last@test.example").await;
    assert!(link.ends_with("redirect_to=https://x.preview.example/in"), "{link}");
    let rewritten = link.replace("x.preview.example", "evil.example");
    assert!(follow(&app, &rewritten).await.starts_with(&format!("{site}#access_token=")));
}
