//! Forged, foreign, expired and confused tokens at a route of every API that takes one. Each API must refuse each
//! token, whatever API key comes with it.

use std::net::TcpListener;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::Method;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::report;
use crate::auth::tokens::{claims_of, encode, signed};
use crate::realtime::client::Client;
use crate::support::{TestApp, send};

/// The published key of RFC 7515, appendix A.3.
const PUBLIC_D: &str = "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI";
const PUBLIC_X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
const PUBLIC_Y: &str = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";
/// The attacker's own key pair in PKCS 8.
const FOREIGN: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgIUFKvHhSPwYKqrzj
35V/hXavlq06lF1ruou0ajDbn2+hRANCAASiIXYzjf+Ec/szD4XypUb7BfhnJ/29
MvyQP8jSDeBUwWZlLLX00snHfEY7UlYHFiFKh/r03cpzCEOjASLHPYxr
-----END PRIVATE KEY-----";

/// Routes for signed-in users, which answer 2xx to a valid token.
const ROUTES: [(&str, &str, &str); 7] = [
    ("GET", "/auth/v1/user", ""),
    ("GET", "/rest/v1/requests", ""),
    ("POST", "/rest/v1/rpc/me", "{}"),
    ("GET", "/storage/v1/bucket", ""),
    ("POST", "/storage/v1/object/list/request-documents", "{\"prefix\":\"x\"}"),
    ("POST", "/functions/v1/get-categories", "{}"),
    ("POST", "/realtime/v1/api/broadcast", "{\"messages\":[{\"topic\":\"t\",\"event\":\"e\",\"payload\":{}}]}"),
];

/// Every kind of invalid token. `good` is a user's token, `secret` the server's signing secret.
fn forged(good: &str, secret: &str, sign_up_link: &str) -> Vec<(String, String)> {
    let claims = claims_of(good);
    let hs256 = json!({ "alg": "HS256", "typ": "JWT" });
    let changed = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        claims
    };
    let parts: Vec<&str> = good.split('.').collect();
    let ec = EncodingKey::from_ec_der(PrivateKeyDer::from_pem_slice(FOREIGN.as_bytes()).expect("a key").secret_der());
    let mut header = Header::new(Algorithm::ES256);
    let mut tokens: Vec<(String, String)> = Vec::new();
    let mut add = |what: &str, token: String| tokens.push((what.to_owned(), token));
    for algorithm in ["none", "None", "NONE", "nOnE", ""] {
        let head = encode(&json!({ "alg": algorithm }));
        add(&format!("alg {algorithm:?}"), format!("{head}.{}.", encode(&claims)));
        add(&format!("alg {algorithm:?}, signed"), format!("{head}.{}.{}", encode(&claims), parts[2]));
    }
    add("no signature", format!("{}.{}.", parts[0], parts[1]));
    add("no claims", format!("{}..{}", parts[0], parts[2]));
    add("two parts", format!("{}.{}", parts[0], parts[1]));
    add("four parts", format!("{good}.{}", parts[2]));
    add("five parts, as if it were encrypted", format!("{good}.x.y"));
    add("a signature cut short", good[..good.len() - 3].to_owned());
    add("a signature of zeros", format!("{}.{}.{}", parts[0], parts[1], URL_SAFE_NO_PAD.encode([0; 32])));
    add("another secret", signed(&hs256, &claims, "another-secret-of-at-least-thirty-two-bytes"));
    add("an empty secret", signed(&hs256, &claims, ""));
    add("a longer HMAC with our secret", signed(&json!({ "alg": "HS512" }), &claims, secret));
    add("RS256, the secret as key", signed(&json!({ "alg": "RS256" }), &claims, secret));
    add("ES256, the secret as key", signed(&json!({ "alg": "ES256" }), &claims, secret));
    add("the public key as HMAC's secret", signed(&hs256, &claims, PUBLIC_X));
    add("a key pair of one's own", jsonwebtoken::encode(&header, &claims, &ec).expect("a token"));
    header.kid = Some("known".to_owned());
    add("one's own under the kid of ours", jsonwebtoken::encode(&header, &claims, &ec).expect("a token"));
    for kid in
        ["../../../../../dev/null", "/proc/sys/kernel/random/boot_id", "x' union select 'key' --", "", "\u{0}", "known"]
    {
        for key in ["", "x", "key"] {
            add(&format!("kid {kid:?}, secret {key:?}"), signed(&json!({ "alg": "HS256", "kid": kid }), &claims, key));
        }
    }
    let own = json!({ "kty": "oct", "k": URL_SAFE_NO_PAD.encode("mine"), "alg": "HS256" });
    add("a key within the header", signed(&json!({ "alg": "HS256", "jwk": own }), &claims, "mine"));
    add("a certificate within the header", signed(&json!({ "alg": "HS256", "x5c": ["bWluZQ=="] }), &claims, "mine"));
    add("an extension that must be understood", signed(&json!({ "alg": "HS256", "crit": ["exp"] }), &claims, secret));
    add(
        "without compression's meaning",
        signed(&json!({ "alg": "HS256", "zip": "DEF", "crit": ["zip"] }), &claims, secret),
    );
    add("expired", signed(&hs256, &changed("exp", json!(1_000_000_000)), secret));
    add("expired before there was time", signed(&hs256, &changed("exp", json!(-1)), secret));
    add("an end that is no number", signed(&hs256, &changed("exp", json!("never")), secret));
    add("not yet", signed(&hs256, &changed("nbf", json!(4_000_000_000_u64)), secret));
    for role in ["service_role", "postgres", "supabase_admin"] {
        let claims = changed("role", json!(role));
        add(
            &format!("the role {role} under the old signature"),
            format!("{}.{}.{}", parts[0], encode(&claims), parts[2]),
        );
    }
    add("the link of a mail", sign_up_link.to_owned());
    add("claims that are a list", signed(&hs256, &json!([1]), secret));
    add("no JSON", format!("{}.{}.{}", URL_SAFE_NO_PAD.encode("{"), parts[1], parts[2]));
    add("other base64", good.replace('.', "%2E"));
    add("of nothing", "..".to_owned());
    tokens
}

async fn refused_everywhere(app: &TestApp, tokens: &[(String, String)]) -> usize {
    let mut tried = 0;
    for (what, token) in tokens {
        for key in [app.anon(), app.service()] {
            for (method, path, body) in ROUTES {
                let mut actor = key.clone();
                actor.token = Some(token.clone());
                let request = actor.request(method.parse().expect("a method"), path);
                let request = if body.is_empty() {
                    request
                } else {
                    request.header("content-type", "application/json").body(body)
                };
                let reply = send(request).await;
                tried += 1;
                let told = reply.body["statusCode"].as_str().and_then(|text| text.parse().ok()).unwrap_or(reply.status);
                assert!(
                    matches!(reply.status, 400 | 401 | 403) && matches!(told, 400 | 401 | 403),
                    "{what} at {method} {path}: {} {}",
                    reply.status,
                    reply.body
                );
            }
        }
    }
    tried
}

async fn good_everywhere(app: &TestApp, token: &str) {
    for (method, path, body) in ROUTES {
        let mut actor = app.anon();
        actor.token = Some(token.to_owned());
        let request = actor.request(method.parse().expect("a method"), path);
        let request =
            if body.is_empty() { request } else { request.header("content-type", "application/json").body(body) };
        let reply = send(request).await;
        assert!((200..300).contains(&reply.status), "{method} {path}: {} {}", reply.status, reply.body);
    }
}

#[actix_web::test]
async fn no_api_accepts_an_invalid_token() {
    let app = TestApp::start().await;
    let user = app.user("ada@test.example").await;
    let good = user.actor.token.clone().expect("a token");
    let secret = ferrobase::config::DEVELOPMENT_JWT_SECRET;
    good_everywhere(&app, &good).await;
    // The token of a signed storage link is signed with our secret, but is no user's token.
    app.owner.batch_execute("insert into storage.buckets (id, name) values ('b', 'b')").await.expect("a bucket");
    send(app.service().request(Method::POST, "/storage/v1/object/b/x").body("x")).await;
    let link = app.service().post("/storage/v1/object/sign/b/x", json!({ "expiresIn": 600 })).await;
    let link = link.body["signedURL"].as_str().and_then(|url| url.split_once("token=")).expect("a link").1.to_owned();
    let tokens = forged(&good, secret, &link);
    let tried = refused_everywhere(&app, &tokens).await;
    // None of them lets a socket join private channels.
    for (what, token) in &tokens {
        let mut client = Client::open(&app).await;
        let (_, answer) = client.try_join("mine", json!({ "private": true }), Some(token)).await;
        assert_eq!(answer["status"], "error", "{what}: {answer}");
    }
    good_everywhere(&app, &good).await;
    report("tokens at seven routes and at the socket", tried + tokens.len(), "all refused");
}

#[actix_web::test]
async fn with_a_key_pair_the_secret_and_the_public_key_sign_nothing() {
    let keys = json!([{ "kty": "EC", "kid": "known", "alg": "ES256", "crv": "P-256", "key_ops": ["sign", "verify"],
        "x": PUBLIC_X, "y": PUBLIC_Y, "d": PUBLIC_D }])
    .to_string();
    let app = TestApp::with_settings(&[("GOTRUE_JWT_KEYS", &keys)]).await;
    let user = app.user("ada@test.example").await;
    let good = user.actor.token.clone().expect("a token");
    let jwks = send(app.plain(Method::GET, "/auth/v1/.well-known/jwks.json")).await.body.to_string();
    let claims = claims_of(&good);
    let head = json!({ "alg": "HS256", "kid": "known" });
    let mut tokens = Vec::new();
    // Algorithm confusion: every public value used as an HMAC secret.
    let point =
        [&[4][..], &URL_SAFE_NO_PAD.decode(PUBLIC_X).expect("x"), &URL_SAFE_NO_PAD.decode(PUBLIC_Y).expect("y")]
            .concat();
    for (what, secret) in [
        ("x", PUBLIC_X.to_owned()),
        ("x and y", format!("{PUBLIC_X}{PUBLIC_Y}")),
        ("the document", jwks),
        ("the point in hex", hex::encode(&point)),
    ] {
        tokens.push((format!("HS256 with {what}"), signed(&head, &claims, &secret)));
    }
    tokens.push(("ES256 by HMAC".to_owned(), signed(&json!({ "alg": "ES256", "kid": "known" }), &claims, PUBLIC_X)));
    let mut tried = 0;
    for (what, token) in &tokens {
        for (method, path, body) in ROUTES {
            let mut actor = app.anon();
            actor.token = Some(token.clone());
            let request =
                actor.request(method.parse().expect("a method"), path).header("content-type", "application/json");
            let reply = send(request.body(body)).await;
            assert!(matches!(reply.status, 400 | 401 | 403), "{what} at {path}: {} {}", reply.status, reply.body);
            tried += 1;
        }
    }
    report("algorithm confusion with a key pair", tried, "all refused");
}

/// A key URL in a token is never fetched.
#[actix_web::test]
async fn no_token_makes_the_server_fetch_a_key() {
    let app = TestApp::start().await;
    let user = app.user("ada@test.example").await;
    let claims = claims_of(user.actor.token.as_deref().expect("a token"));
    let trap = TcpListener::bind("127.0.0.1:0").expect("a port");
    trap.set_nonblocking(true).expect("it waits for nobody");
    let place = format!("http://{}/jwks.json", trap.local_addr().expect("address"));
    let mut claims_too = claims.clone();
    claims_too["iss"] = json!(place);
    for (head, claims) in [
        (json!({ "alg": "HS256", "jku": place, "kid": "k" }), &claims),
        (json!({ "alg": "HS256", "x5u": place }), &claims),
        (json!({ "alg": "HS256", "kid": place }), &claims),
        (json!({ "alg": "RS256", "kid": "k" }), &claims_too),
    ] {
        let tokens = [("a key elsewhere".to_owned(), signed(&head, claims, "mine"))];
        refused_everywhere(&app, &tokens).await;
    }
    let asked = trap.accept();
    assert!(
        asked.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock),
        "the server went where a token led it"
    );
}

/// A role that may not be assumed, in a correctly signed token: the database refuses it.
#[actix_web::test]
async fn no_signed_token_grants_a_privileged_role() {
    let app = TestApp::start().await;
    let end = chrono::Utc::now().timestamp() + 600;
    for role in [
        "postgres",
        "supabase_admin",
        "supabase_auth_admin",
        "pg_read_all_data",
        "authenticator",
        "nobody\"; reset role; --",
    ] {
        let claims = json!({ "role": role, "exp": end, "sub": uuid::Uuid::new_v4() });
        let token = signed(&json!({ "alg": "HS256" }), &claims, ferrobase::config::DEVELOPMENT_JWT_SECRET);
        for (method, path, body) in &ROUTES[1..6] {
            let mut actor = app.anon();
            actor.token = Some(token.clone());
            let request =
                actor.request(method.parse().expect("a method"), path).header("content-type", "application/json");
            let reply = send(request.body(*body)).await;
            assert!((400..500).contains(&reply.status), "{role} at {path}: {} {}", reply.status, reply.body);
        }
    }
    report("privileged roles in signed tokens", 30, "all refused");
}
