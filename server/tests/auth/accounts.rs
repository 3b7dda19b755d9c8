//! Concurrent changes of one account: no change is lost, and requests do not deadlock.

use crate::auth::{hash_of, meanwhile, meet, take_link, take_mail, text};
use crate::support::{PASSWORD, TestApp};
use futures_util::future::join_all;
use serde_json::json;

const BY_MAIL: [(&str, &str); 2] = [("GOTRUE_MAILER_AUTOCONFIRM", "false"), ("GOTRUE_SMTP_MAX_FREQUENCY", "1ns")];

async fn member(app: &TestApp, email: &str) -> String {
    let body = json!({ "email": email, "password": PASSWORD, "email_confirm": true });
    let reply = app.service().post("/auth/v1/admin/users", body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    text(&reply.body, "id").to_owned()
}

#[actix_web::test]
async fn concurrent_metadata_changes_are_kept() {
    let app = TestApp::with_settings(&BY_MAIL).await;
    let id = member(&app, "ada@test.example").await;
    let body = json!({ "email": "ada@test.example", "password": PASSWORD });
    let session = app.anon().post("/auth/v1/token?grant_type=password", body).await.body;
    let mut ada = app.anon();
    ada.token = Some(text(&session, "access_token").to_owned());
    // Each request has read the user and waits to write.
    let others = "update auth.users set raw_app_meta_data = raw_app_meta_data || '{\"plan\": \"pro\"}',
        raw_user_meta_data = raw_user_meta_data || '{\"theme\": \"dark\"}'";
    let reply = meanwhile(&app, others, 1, ada.put("/auth/v1/user", json!({ "data": { "name": "Ada" } }))).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let path = format!("/auth/v1/admin/users/{id}");
    let admin = app.service();
    let change = admin.put(&path, json!({ "app_metadata": { "seats": 3 }, "user_metadata": { "lang": "en" } }));
    let others = "update auth.users set raw_app_meta_data = raw_app_meta_data || '{\"team\": \"red\"}'";
    let reply = meanwhile(&app, others, 1, change).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let row = app
        .owner
        .query_one("select raw_app_meta_data::text, raw_user_meta_data::text from auth.users", &[])
        .await
        .expect("the user");
    let read = |index| serde_json::from_str::<serde_json::Value>(row.get(index)).expect("JSON");
    let stored = json!({ "provider": "email", "providers": ["email"], "plan": "pro", "team": "red", "seats": 3 });
    assert_eq!(read(0), stored);
    assert_eq!(read(1), json!({ "email_verified": true, "theme": "dark", "name": "Ada", "lang": "en" }));
}

#[actix_web::test]
async fn concurrent_halves_of_an_address_change_complete_it() {
    let settings = [BY_MAIL[0], BY_MAIL[1], ("GOTRUE_MAILER_SUBJECTS_EMAIL_CHANGE", "{{ .Token }}")];
    let app = TestApp::with_settings(&settings).await;
    member(&app, "ada@test.example").await;
    let body = json!({ "email": "ada@test.example", "password": PASSWORD });
    let session = app.anon().post("/auth/v1/token?grant_type=password", body).await.body;
    let mut ada = app.anon();
    ada.token = Some(text(&session, "access_token").to_owned());
    assert_eq!(ada.put("/auth/v1/user", json!({ "email": "ada2@test.example" })).await.status, 200);
    let old = hash_of(&take_link(&app, "ada@test.example").await);
    let (new, _) = take_mail(&app, "ada2@test.example").await.expect("a mail");
    // One follows a link, the other enters a code.
    let halves = [
        json!({ "type": "email_change", "token_hash": old }),
        json!({ "type": "email_change", "email": "ada2@test.example", "token": new }),
    ];
    let requests = join_all(halves.map(async |body| app.anon().post("/auth/v1/verify", body).await));
    let replies = meet(&app, "select from auth.users", 2, requests).await;
    let sessions = replies.iter().filter(|reply| reply.body.get("access_token").is_some()).count();
    let bodies: Vec<_> = replies.iter().map(|reply| &reply.body).collect();
    assert_eq!(sessions, 1, "the second of them finds the first done: {bodies:?}");
    let email: String = app.owner.query_one("select email from auth.users", &[]).await.expect("the user").get(0);
    assert_eq!(email, "ada2@test.example", "{bodies:?}");
}

#[actix_web::test]
async fn a_concurrent_link_and_code_do_not_deadlock() {
    let settings = [BY_MAIL[0], BY_MAIL[1], ("GOTRUE_MAILER_SUBJECTS_RECOVERY", "{{ .Token }}")];
    let app = TestApp::with_settings(&settings).await;
    member(&app, "ada@test.example").await;
    for _ in 0..5 {
        app.anon().post("/auth/v1/recover", json!({ "email": "ada@test.example" })).await;
        let (code, mail) = take_mail(&app, "ada@test.example").await.expect("a mail");
        let hash = hash_of(mail.split_whitespace().find(|word| word.contains("/verify?")).expect("a link"));
        let bodies = [
            json!({ "type": "recovery", "token_hash": hash }),
            json!({ "type": "recovery", "email": "ada@test.example", "token": code }),
            json!({ "type": "magiclink", "token_hash": hash }),
            json!({ "type": "magiclink", "email": "ada@test.example", "token": code }),
        ];
        let requests = join_all(bodies.map(async |body| app.anon().post("/auth/v1/verify", body).await));
        let replies = meet(&app, "select from auth.users", 4, requests).await;
        let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 403, 403, 403], "{:?}", replies.iter().map(|r| &r.body).collect::<Vec<_>>());
    }
}

#[actix_web::test]
async fn two_views_of_one_authorization_at_once_are_both_answered() {
    let app = TestApp::with_settings(&[
        ("GOTRUE_OAUTH_SERVER_ENABLED", "true"),
        ("GOTRUE_OAUTH_SERVER_AUTHORIZATION_PATH", "/oauth/consent"),
    ])
    .await;
    let user = app.user("ada@test.example").await;
    let client = json!({ "client_name": "Club", "redirect_uris": ["https://club.example/cb"] });
    let client = app.service().post("/auth/v1/admin/oauth/clients", client).await.body;
    let asked = format!(
        "/auth/v1/oauth/authorize?client_id={}&redirect_uri=https%3A%2F%2Fclub.example%2Fcb&response_type=code&scope=email\
         &code_challenge={}&code_challenge_method=S256",
        text(&client, "client_id"),
        "a".repeat(43)
    );
    let asked = app.anon().get(&asked).await;
    let (_, id) = asked.header("location").split_once("authorization_id=").expect("an id");
    let path = format!("/auth/v1/oauth/authorizations/{id}");
    let views = join_all((0..2).map(|_| user.actor.get(&path)));
    for view in meet(&app, "select from auth.oauth_authorizations", 2, views).await {
        assert_eq!((view.status, text(&view.body, "authorization_id")), (200, id), "{}", view.body);
    }
}
