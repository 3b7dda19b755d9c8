//! Providers entered by administrators may lead only to public addresses and to those that the settings allow.

use std::sync::{Arc, Mutex};

use actix_web::HttpResponse;
use serde_json::{Value, json};

use crate::auth::text;
use crate::auth::tokens::encode;
use crate::support::{Reply, TestApp, outside};

/// The requests to an outside server: method and path.
type Asked = Arc<Mutex<Vec<String>>>;

/// A server with `answers` by path, in which `{own}` is its URL and `{id_token}` its token. Other requests are
/// redirected to `onward`.
fn serve(answers: Vec<(&'static str, Value)>, onward: &str) -> (String, Asked) {
    let asked = Asked::default();
    let (heard, onward) = (Arc::clone(&asked), onward.to_owned());
    let base = outside::serve(move |request, _| {
        heard.lock().expect("lock").push(format!("{} {}", request.method(), request.path()));
        let own = format!("https://{}", request.connection_info().host());
        let claims = json!({ "iss": own, "aud": "c", "sub": "1", "exp": chrono::Utc::now().timestamp() + 600 });
        let token = format!("{}.{}.{}", encode(&json!({ "alg": "RS256" })), encode(&claims), encode(&json!("signed")));
        let found = answers.iter().find(|(path, _)| *path == request.path());
        let answer = match found {
            Some((_, answer)) => HttpResponse::Ok()
                .content_type("application/json")
                .body(answer.to_string().replace("{own}", &own).replace("{id_token}", &token)),
            None => HttpResponse::Found().insert_header(("location", format!("{onward}{}", request.path()))).finish(),
        };
        async move { answer }
    });
    (outside::secure(&base), asked)
}

fn asked(asked: &Asked) -> Vec<String> {
    std::mem::take(&mut asked.lock().expect("lock"))
}

/// A server that would answer every provider request.
fn neighbour() -> (String, Asked) {
    serve(
        vec![
            ("/.well-known/openid-configuration", document("{own}", "{own}", "{own}", "{own}")),
            ("/token", json!({ "access_token": "a", "token_type": "bearer" })),
            ("/userinfo", json!({ "sub": "1", "email": "ada@test.example", "email_verified": true })),
            ("/keys", json!({ "keys": [] })),
        ],
        "https://nobody.invalid",
    )
}

/// A server that is allowed to reach the named origin.
async fn with_open(open: &str) -> TestApp {
    let authority = ("FERROBASE_OUTBOUND_CA_FILE", outside::AUTHORITY);
    TestApp::with_settings(&[("FERROBASE_OUTBOUND_ALLOW", open), authority]).await
}

fn document(issuer: &str, token: &str, userinfo: &str, keys: &str) -> Value {
    json!({
        "issuer": issuer, "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{token}/token"), "userinfo_endpoint": format!("{userinfo}/userinfo"),
        "jwks_uri": format!("{keys}/keys"),
    })
}

async fn enter(app: &TestApp, name: &str, more: Value) -> Reply {
    let mut body = json!({ "identifier": name, "name": "House", "client_id": "c", "client_secret": "s" });
    body.as_object_mut().expect("object").extend(more.as_object().cloned().expect("object"));
    app.service().post("/auth/v1/admin/custom-providers", body).await
}

/// The final URL of a sign-in through the provider.
async fn sign_in(app: &TestApp, name: &str) -> String {
    let begin = app.anon().get(&format!("/auth/v1/authorize?provider={name}")).await;
    assert_eq!(begin.status, 302, "{}", begin.body);
    let url = url::Url::parse(begin.header("location")).expect("url");
    let state = url.query_pairs().find(|(key, _)| key == "state").expect("state").1.into_owned();
    let end = app.anon().get(&format!("/auth/v1/callback?code=c&state={state}")).await;
    assert_eq!(end.status, 302, "{}", end.body);
    end.header("location").to_owned()
}

#[actix_web::test]
async fn redirects_reach_only_allowed_origins() {
    let (closed, heard) = neighbour();
    let (open, came) = serve(vec![("/there/token", json!({ "access_token": "a", "token_type": "bearer" }))], &closed);
    let app = with_open(&open).await;
    // Discovery.
    let reply = enter(&app, "custom:oidc", json!({ "provider_type": "oidc", "issuer": open })).await;
    assert_eq!((reply.status, text(&reply.body, "error_code")), (400, "validation_failed"), "{}", reply.body);
    assert!(text(&reply.body, "msg").ends_with("returned 302 Found"), "{}", reply.body);
    // The token endpoint redirects with the secret in the request, and so does the user-info document.
    for (name, token) in [("custom:token", "/token"), ("custom:userinfo", "/there/token")] {
        let endpoints = json!({ "provider_type": "oauth2", "authorization_url": format!("{open}/authorize"),
            "token_url": format!("{open}{token}"), "userinfo_url": format!("{open}/userinfo") });
        assert_eq!(enter(&app, name, endpoints).await.status, 201);
        assert!(sign_in(&app, name).await.contains("error=server_error"), "{name}");
    }
    assert_eq!(
        asked(&came),
        ["GET /.well-known/openid-configuration", "POST /token", "POST /token", "POST /there/token", "GET /userinfo"],
        "the open one was asked, once with each way to show the secret"
    );
    assert_eq!(asked(&heard), [""; 0], "the other one was not");
    // If the origin is allowed but its certificate is not trusted, it receives nothing …
    let open = TestApp::with_settings(&[("FERROBASE_OUTBOUND_ALLOW", &closed)]).await;
    let reply = enter(&open, "custom:oidc", json!({ "provider_type": "oidc", "issuer": closed })).await;
    assert_eq!((reply.status, asked(&heard)), (400, vec![]), "{}", reply.body);
    // … and with a trusted one it would have answered, so nothing else kept it silent.
    let app = with_open(&closed).await;
    let reply = enter(&app, "custom:oidc", json!({ "provider_type": "oidc", "issuer": closed })).await;
    assert_eq!((reply.status, asked(&heard)), (201, vec!["GET /.well-known/openid-configuration".to_owned()]));
}

#[actix_web::test]
async fn changed_documents_reach_only_allowed_origins() {
    let (closed, heard) = neighbour();
    let right = json!({ "access_token": "a", "token_type": "bearer" });
    let signed = json!({ "access_token": "a", "token_type": "bearer", "id_token": "{id_token}" });
    for (what, token, changed) in [
        ("token", right.clone(), document("{own}", &closed, "{own}", "{own}")),
        ("userinfo", right, document("{own}", "{own}", &closed, "{own}")),
        ("keys", signed, document("{own}", "{own}", "{own}", &closed)),
    ] {
        // The document is valid when the provider is entered, and names the neighbour when it is fetched again.
        let (open, came) = serve(
            vec![
                ("/entered", document("{own}", "{own}", "{own}", "{own}")),
                ("/.well-known/openid-configuration", changed),
                ("/token", token),
            ],
            "https://nobody.invalid",
        );
        let app = with_open(&open).await;
        let entered = json!({ "provider_type": "oidc", "issuer": open, "discovery_url": format!("{open}/entered") });
        assert_eq!(enter(&app, "custom:house", entered).await.status, 201, "{what}");
        app.owner
            .batch_execute("update auth.custom_oauth_providers set discovery_url = null")
            .await
            .expect("the document that is read from now on");
        assert!(sign_in(&app, "custom:house").await.contains("error=server_error"), "{what}");
        assert!(asked(&came).contains(&"GET /.well-known/openid-configuration".to_owned()), "{what}");
        assert_eq!(asked(&heard), [""; 0], "{what}");
    }
}

#[actix_web::test]
async fn an_invalid_setting_prevents_startup() {
    let app = TestApp::start().await;
    for (file, why) in [("/nowhere/at/all.pem", "No such file"), (file!(), "certificate")] {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository").join(file);
        let file = file.display().to_string();
        let refused = app.try_another(&[("FERROBASE_OUTBOUND_CA_FILE", &file)]).await.err().expect("no authorities");
        let message = format!("{refused:#}");
        assert!(message.contains("FERROBASE_OUTBOUND_CA_FILE") && message.contains(why), "{message}");
    }
    for bad in ["10.0.0.1/8", "*.internal", "http://house:8080", "https://house/path", "house:port"] {
        let refused = app.try_another(&[("FERROBASE_OUTBOUND_ALLOW", bad)]).await.err().expect(bad);
        let message = format!("{refused:#}");
        assert!(message.contains("FERROBASE_OUTBOUND_ALLOW") && message.contains(&format!("'{bad}'")), "{message}");
    }
}
