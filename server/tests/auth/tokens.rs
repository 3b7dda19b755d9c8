//! Bearer tokens: which are accepted, and what they allow.

use crate::auth::text;
use crate::support::TestApp;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

pub fn encode(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

pub fn signed(header: &Value, claims: &Value, secret: &str) -> String {
    let message = format!("{}.{}", encode(header), encode(claims));
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("key");
    mac.update(message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
}

pub fn claims_of(token: &str) -> Value {
    let part = token.split('.').nth(1).expect("claims");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("json")
}

#[actix_web::test]
async fn forged_and_foreign_tokens_are_refused() {
    let app = TestApp::start().await;
    let user = app.user("ada@test.example").await;
    let good = user.actor.token.clone().expect("token");
    let claims = claims_of(&good);
    let secret = ferrobase::config::DEVELOPMENT_JWT_SECRET;
    let hs256 = json!({ "alg": "HS256", "typ": "JWT" });
    let changed = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        claims
    };
    let cases = [
        ("none", format!("{}.{}.", encode(&json!({ "alg": "none" })), encode(&claims))),
        ("None", format!("{}.{}.", encode(&json!({ "alg": "None" })), encode(&claims))),
        ("another secret", signed(&hs256, &claims, "another-secret-of-at-least-thirty-two-bytes")),
        ("another algorithm", signed(&json!({ "alg": "HS512" }), &claims, secret)),
        ("an unknown key", signed(&json!({ "alg": "RS256", "kid": "x" }), &claims, secret)),
        ("expired", signed(&hs256, &changed("exp", json!(1_000_000_000)), secret)),
        ("not yet", signed(&hs256, &changed("nbf", json!(4_000_000_000_u64)), secret)),
        ("no user", signed(&hs256, &changed("sub", json!("")), secret)),
        ("an unknown user", signed(&hs256, &changed("sub", json!(uuid::Uuid::new_v4())), secret)),
        ("an unknown session", signed(&hs256, &changed("session_id", json!(uuid::Uuid::new_v4())), secret)),
        ("a role of the wrong kind", signed(&hs256, &changed("role", json!(1)), secret)),
        ("a changed role", {
            let parts: Vec<&str> = good.split('.').collect();
            format!("{}.{}.{}", parts[0], encode(&changed("role", json!("service_role"))), parts[2])
        }),
        ("an extension that must be understood", {
            signed(&json!({ "alg": "HS256", "crit": ["b64"], "b64": true }), &claims, secret)
        }),
        ("cut", good[..good.len() - 2].to_owned()),
    ];
    assert_eq!(user.actor.get("/auth/v1/user").await.status, 200);
    for (what, token) in cases {
        let mut forger = app.anon();
        forger.token = Some(token);
        for path in ["/auth/v1/user", "/auth/v1/admin/users"] {
            let reply = forger.get(path).await;
            assert!(matches!(reply.status, 401 | 403), "{what} at {path}: {} {}", reply.status, reply.body);
        }
    }
}

#[actix_web::test]
async fn no_api_accepts_a_token_with_a_critical_extension() {
    let app = TestApp::start().await;
    let user = app.user("ada@test.example").await;
    let claims = claims_of(user.actor.token.as_deref().expect("token"));
    for (header, is_read) in [
        (json!({ "alg": "HS256" }), true),
        (json!({ "alg": "HS256", "crit": ["b64"], "b64": true }), false),
        (json!({ "alg": "HS256", "crit": [] }), false),
    ] {
        let mut holder = app.anon();
        holder.token = Some(signed(&header, &claims, ferrobase::config::DEVELOPMENT_JWT_SECRET));
        for path in ["/auth/v1/user", "/rest/v1/", "/storage/v1/bucket"] {
            let reply = holder.get(path).await;
            assert_eq!(reply.status == 200, is_read, "{header} at {path}: {} {}", reply.status, reply.body);
        }
    }
}

#[actix_web::test]
async fn only_service_keys_may_administer() {
    let app = TestApp::start().await;
    let user = app.user("ada@test.example").await;
    for path in ["/auth/v1/admin/users", "/auth/v1/admin/audit", &format!("/auth/v1/admin/users/{}", user.id)] {
        assert_eq!(text(&user.actor.get(path).await.body, "error_code"), "not_admin", "{path}");
        assert_eq!(text(&app.anon().get(path).await.body, "error_code"), "not_admin", "{path}");
        assert_eq!(app.service().get(path).await.status, 200, "{path}");
    }
    for (path, body) in [
        ("/auth/v1/invite", json!({ "email": "x@test.example" })),
        ("/auth/v1/admin/generate_link", json!({ "type": "magiclink", "email": "ada@test.example" })),
        ("/auth/v1/admin/users", json!({ "email": "x@test.example" })),
    ] {
        assert_eq!(user.actor.post(path, body).await.status, 403, "{path}");
    }
    assert_eq!(app.service().get("/auth/v1/user").await.status, 403, "an administrator is not a user");
}

#[actix_web::test]
async fn users_cannot_grant_themselves_rights() {
    let app = TestApp::start().await;
    let body = json!({ "email": "ada@test.example", "password": crate::support::PASSWORD, "role": "service_role",
        "aud": "admin", "is_super_admin": true, "app_metadata": { "admin": true }, "email_confirmed_at": "2020-01-01T00:00:00Z",
        "data": { "a": 1 } });
    let reply = app.anon().post("/auth/v1/signup", body).await;
    let claims = claims_of(text(&reply.body, "access_token"));
    assert_eq!((claims["role"].as_str(), claims["aud"].as_str()), (Some("authenticated"), Some("authenticated")));
    assert_eq!(claims["app_metadata"], json!({ "provider": "email", "providers": ["email"] }));
    let mut me = app.anon();
    me.token = Some(text(&reply.body, "access_token").to_owned());
    let refused = me.put("/auth/v1/user", json!({ "app_metadata": { "admin": true } })).await;
    assert_eq!((refused.status, text(&refused.body, "error_code")), (403, "not_admin"));
    me.put("/auth/v1/user", json!({ "role": "service_role", "aud": "x" })).await;
    let row = app
        .owner
        .query_one("select role, aud, is_super_admin from auth.users where email = 'ada@test.example'", &[])
        .await
        .expect("user");
    assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), ("authenticated", "authenticated"));
    assert_eq!(row.get::<_, Option<bool>>(2), None);
}

#[actix_web::test]
async fn a_token_of_another_audience_finds_no_user() {
    let app = TestApp::start().await;
    let user = app.user("ada@test.example").await;
    let request = user.actor.request(reqwest::Method::GET, "/auth/v1/user").header("x-jwt-aud", "elsewhere");
    assert_eq!(crate::support::send(request).await.status, 400);
}

#[actix_web::test]
async fn rotating_to_asymmetric_keys_ends_no_session() {
    // The key of RFC 7515, appendix A.3, and the old secret as a key that only verifies.
    let old = URL_SAFE_NO_PAD.encode(ferrobase::config::DEVELOPMENT_JWT_SECRET);
    let keys = json!([
        { "kty": "EC", "kid": "new", "alg": "ES256", "crv": "P-256", "key_ops": ["sign", "verify"],
          "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
          "d": "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI" },
        { "kty": "oct", "kid": "old", "alg": "HS256", "k": old, "key_ops": ["verify"] },
    ])
    .to_string();
    let app = TestApp::with_settings(&[("GOTRUE_JWT_KEYS", &keys)]).await;
    let user = app.user("ada@test.example").await;
    let new = user.actor.token.clone().expect("token");
    let header: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(new.split('.').next().unwrap_or("")).expect("b64"))
            .expect("json");
    assert_eq!((header["alg"].as_str(), header["kid"].as_str()), (Some("ES256"), Some("new")));
    let before =
        signed(&json!({ "alg": "HS256", "typ": "JWT" }), &claims_of(&new), ferrobase::config::DEVELOPMENT_JWT_SECRET);
    let mut old_holder = app.anon();
    old_holder.token = Some(before);
    assert_eq!(old_holder.get("/auth/v1/user").await.status, 200);
    let published = crate::support::send(app.plain(reqwest::Method::GET, "/auth/v1/.well-known/jwks.json")).await;
    assert_eq!(published.body["keys"].as_array().map(Vec::len), Some(1));
    assert!(!published.body.to_string().contains("\"d\""));
}
