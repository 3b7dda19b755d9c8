//! Signing in with external providers, played by the test.

use crate::support::{TestApp, outside, send};
use actix_web::HttpResponse;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use url::Url;

/// A GitHub whose only user has this address, verified or not.
fn github(email: &'static str, verified: bool) -> String {
    outside::serve(move |request, _| async move {
        let answer = match request.path() {
            "/login/oauth/access_token" => json!({ "access_token": "t", "token_type": "bearer" }),
            "/api/v3/user" => json!({ "id": 7, "login": "ada", "name": "Ada" }),
            "/api/v3/user/emails" => json!([{ "email": email, "primary": true, "verified": verified }]),
            _ => return HttpResponse::NotFound().finish(),
        };
        HttpResponse::Ok().json(answer)
    })
}

async fn app(github: &str) -> TestApp {
    TestApp::with_settings(&[
        ("GOTRUE_MAILER_AUTOCONFIRM", "false"),
        ("GOTRUE_EXTERNAL_GITHUB_ENABLED", "true"),
        ("GOTRUE_EXTERNAL_GITHUB_CLIENT_ID", "client"),
        ("GOTRUE_EXTERNAL_GITHUB_SECRET", "secret"),
        ("GOTRUE_EXTERNAL_GITHUB_REDIRECT_URI", "http://127.0.0.1/auth/v1/callback"),
        ("GOTRUE_EXTERNAL_GITHUB_URL", github),
    ])
    .await
}

/// The redirect target of a request.
async fn location(app: &TestApp, path: &str) -> Url {
    let reply = send(app.plain(Method::GET, path)).await;
    Url::parse(reply.header("location")).unwrap_or_else(|_| panic!("{path}: {} {}", reply.status, reply.body))
}

fn pair(text: &str, name: &str) -> Option<String> {
    url::form_urlencoded::parse(text.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

async fn begin(app: &TestApp) -> String {
    let provider = location(app, "/auth/v1/authorize?provider=github").await;
    pair(provider.query().unwrap_or(""), "state").expect("state")
}

async fn victim(app: &TestApp) -> Value {
    let body = json!({ "email": "victim@test.example", "password": "correct-Horse-7", "email_confirm": true });
    let reply = app.service().post("/auth/v1/admin/users", body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body
}

#[actix_web::test]
async fn an_unverified_address_opens_no_existing_account() {
    let app = app(&github("victim@test.example", false)).await;
    let victim = victim(&app).await;
    let state = begin(&app).await;
    let end = location(&app, &format!("/auth/v1/callback?code=c&state={state}")).await;
    assert_eq!(pair(end.query().unwrap_or(""), "error_code").as_deref(), Some("provider_email_needs_verification"));
    let identities: i64 = app
        .owner
        .query_one("select count(*) from auth.identities where user_id::text = $1", &[&victim["id"].as_str()])
        .await
        .expect("count")
        .get(0);
    assert_eq!(identities, 1, "the victim's own");
}

#[actix_web::test]
async fn a_verified_address_is_linked_and_one_of_many_callbacks_gets_the_session() {
    let app = app(&github("victim@test.example", true)).await;
    let victim = victim(&app).await;
    let state = begin(&app).await;
    let path = format!("/auth/v1/callback?code=c&state={state}");
    let ends = join_all((0..6).map(|_| location(&app, &path))).await;
    let tokens: Vec<String> =
        ends.iter().filter_map(|end| pair(end.fragment().unwrap_or(""), "access_token")).collect();
    assert_eq!(tokens.len(), 1, "{ends:?}");
    let sessions: i64 = app
        .owner
        .query_one("select count(*) from auth.sessions where user_id::text = $1", &[&victim["id"].as_str()])
        .await
        .expect("count")
        .get(0);
    assert_eq!(sessions, 1);
    let replayed = location(&app, &path).await;
    assert_eq!(pair(replayed.query().unwrap_or(""), "error_code").as_deref(), Some("bad_oauth_state"));
}

#[actix_web::test]
async fn clients_can_set_neither_the_servers_parameters_nor_a_foreign_redirect() {
    let app = app(&github("a@test.example", true)).await;
    let path = "/auth/v1/authorize?provider=github&redirect_uri=https://evil.example&State=x&client_id=y\
                &redirect_to=https://evil.example/";
    let provider = location(&app, path).await;
    let query = provider.query().unwrap_or("");
    assert_eq!(pair(query, "redirect_uri").as_deref(), Some("http://127.0.0.1/auth/v1/callback"));
    assert_eq!((pair(query, "client_id").as_deref(), pair(query, "State")), (Some("client"), None));
    let state = pair(query, "state").expect("state");
    let end = location(&app, &format!("/auth/v1/callback?error=access_denied&state={state}")).await;
    assert_ne!(end.host_str(), Some("evil.example"));
}

#[actix_web::test]
async fn administrators_cannot_point_the_server_at_its_own_network() {
    let app = TestApp::start().await;
    for url in [
        "http://93.184.216.34/",
        "https://127.0.0.1/",
        "https://10.0.0.1/",
        "https://[::1]/",
        "https://169.254.169.254/",
    ] {
        let body = json!({
            "provider_type": "oauth2", "identifier": "custom:x", "name": "x", "client_id": "c", "client_secret": "s",
            "authorization_url": url, "token_url": url, "userinfo_url": url,
        });
        let reply = app.service().post("/auth/v1/admin/custom-providers", body).await;
        assert_eq!((reply.status, &reply.body["error_code"]), (400, &json!("validation_failed")), "{url}");
    }
}
