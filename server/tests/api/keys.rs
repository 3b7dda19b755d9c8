//! Every API accepts tokens signed by the auth API, and no others.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Actor, TestApp, send};

const WHO_AM_I: &str = r#"
    create schema if not exists functions;
    grant usage on schema functions to anon, authenticated, service_role;
    create function functions."who-am-i"(input jsonb) returns jsonb language sql as $$ select to_jsonb(auth.uid()) $$;
    insert into storage.buckets (id, name) values ('own', 'own');
    create policy "users keep files" on storage.objects for all to authenticated
      using (bucket_id = 'own' and owner_id = auth.uid()::text) with check (bucket_id = 'own' and owner_id = auth.uid()::text);
"#;

fn jwk(kid: &str, key: &SigningKey) -> Value {
    let point = key.verifying_key().to_encoded_point(false);
    json!({
        "kty": "EC", "kid": kid, "alg": "ES256", "crv": "P-256", "key_ops": ["sign", "verify"],
        "x": URL_SAFE_NO_PAD.encode(point.x().expect("x")), "y": URL_SAFE_NO_PAD.encode(point.y().expect("y")),
        "d": URL_SAFE_NO_PAD.encode(key.to_bytes()),
    })
}

/// Signs the claims of `token` with `key`.
fn signed_anew(token: &str, key: &SigningKey) -> String {
    let (message, _) = token.rsplit_once('.').expect("a signature");
    let signature: Signature = key.sign(message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()))
}

/// The answers of REST, functions and storage: the status and the recognized caller.
async fn asked_everywhere(actor: &Actor<'_>) -> Vec<(u16, Value)> {
    let rest = actor.post("/rest/v1/rpc/me", json!({})).await;
    let function = actor.post("/functions/v1/who-am-i", json!({})).await;
    let file = actor.request(Method::POST, "/storage/v1/object/own/note").header("content-type", "text/plain");
    let storage = send(file.body("note")).await;
    vec![
        (rest.status, rest.body["user_id"].clone()),
        (function.status, function.body),
        (storage.status, storage.body["Key"].clone()),
    ]
}

fn taken_for(id: &Value) -> [(u16, Value); 3] {
    [(200, id.clone()), (200, id.clone()), (200, json!("own/note"))]
}

async fn header_of(app: &TestApp) -> (Actor<'_>, Value, Value) {
    app.owner.batch_execute(WHO_AM_I).await.expect("functions");
    let user = app.user("ada@test.example").await;
    let token = user.actor.token.clone().expect("a token");
    let header = URL_SAFE_NO_PAD.decode(token.split('.').next().expect("a header")).expect("base64");
    (user.actor, json!(user.id), serde_json::from_slice(&header).expect("JSON"))
}

#[actix_web::test]
async fn tokens_of_an_asymmetric_key_are_valid_in_every_api() {
    let [ours, stranger] = [[7; 32], [9; 32]].map(|secret| SigningKey::from_slice(&secret).expect("a key"));
    let keys = json!([jwk("new", &ours)]).to_string();
    let app = TestApp::with_settings(&[("GOTRUE_JWT_KEYS", &keys)]).await;
    let (mut actor, id, header) = header_of(&app).await;
    assert_eq!((&header["alg"], &header["kid"]), (&json!("ES256"), &json!("new")));
    assert_eq!(asked_everywhere(&actor).await, taken_for(&id));
    actor.token = Some(signed_anew(actor.token.as_deref().expect("a token"), &stranger));
    for (status, body) in asked_everywhere(&actor).await {
        assert!((400..404).contains(&status), "{status} {body}");
    }
    // The API keys are still signed with the secret.
    assert_eq!(app.service().post("/functions/v1/who-am-i", json!({})).await.status, 200);
}

#[actix_web::test]
async fn a_secret_with_a_key_id_signs_for_every_api() {
    let app = TestApp::with_settings(&[("GOTRUE_JWT_KEY_ID", "first")]).await;
    let (actor, id, header) = header_of(&app).await;
    assert_eq!((&header["alg"], &header["kid"]), (&json!("HS256"), &json!("first")));
    assert_eq!(asked_everywhere(&actor).await, taken_for(&id));
}

/// Regression: the token of `supabase gen bearer-jwt` and of tutorials' `.env` files was refused as `apikey`.
#[actix_web::test]
async fn well_known_keys_are_accepted_in_development() {
    use ferrobase::config::{DEVELOPMENT_PUBLISHABLE_KEY, DEVELOPMENT_SECRET_KEY, DEVELOPMENT_SIGNING_KEY};
    let app = TestApp::start().await;
    app.owner.batch_execute(WHO_AM_I).await.expect("functions");
    let known: Value = serde_json::from_str(DEVELOPMENT_SIGNING_KEY).expect("a JWK");
    let secret = URL_SAFE_NO_PAD.decode(known["d"].as_str().expect("a secret")).expect("base64");
    let [known_key, stranger] = [&secret[..], &[9; 32]].map(|secret| SigningKey::from_slice(secret).expect("a key"));
    let token = |role: &str, key: &SigningKey| {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = part(json!({"alg": "ES256", "typ": "JWT", "kid": known["kid"]}));
        signed_anew(&format!("{header}.{}.x", part(json!({"role": role, "exp": 4_000_000_000_u64}))), key)
    };
    let ask = async |method: Method, path: &str, key: &str| {
        send(app.plain(method, path).header("apikey", key).json(&json!({}))).await.status
    };
    for (key, is_service) in [
        (token("service_role", &known_key), true),
        (DEVELOPMENT_SECRET_KEY.to_owned(), true),
        (token("anon", &known_key), false),
        (DEVELOPMENT_PUBLISHABLE_KEY.to_owned(), false),
    ] {
        assert_eq!(ask(Method::GET, "/rest/v1/", &key).await, 200, "{key}");
        assert_eq!(ask(Method::GET, "/auth/v1/settings", &key).await, 200, "{key}");
        let users = ask(Method::GET, "/auth/v1/admin/users", &key).await;
        assert_eq!(users == 200, is_service, "{key} {users}");
        assert_eq!(ask(Method::GET, "/storage/v1/bucket", &key).await, 200, "{key}");
    }
    for key in [token("service_role", &stranger), token("authenticated", &known_key)] {
        assert_eq!(ask(Method::GET, "/rest/v1/", &key).await, 401, "{key}");
    }
    // A project with its own secret accepts none of these.
    let own = "0123456789abcdef0123456789abcdef";
    let app = TestApp::with_settings(&[("JWT_SECRET", own), ("GOTRUE_JWT_SECRET", own)]).await;
    for key in [token("service_role", &known_key), DEVELOPMENT_SECRET_KEY.to_owned()] {
        let reply = send(app.plain(Method::GET, "/rest/v1/").header("apikey", &key)).await;
        assert_eq!(reply.status, 401, "{key}");
    }
}
