//! Which keys are trusted: this server's for its tokens, the pinned issuer's for ID tokens.

use crate::auth::tokens::{claims_of, encode, signed};
use crate::auth::{meanwhile, text};
use crate::support::{Reply, TestApp, outside, send};
use actix_web::HttpResponse;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures_util::future::join_all;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

// The key of RFC 7515, appendix A.3.
const X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
const Y: &str = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";
const D: &str = "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI";

fn key_of(secret: &[u8]) -> SigningKey {
    SigningKey::from_slice(secret).expect("a key")
}

fn right_key() -> SigningKey {
    key_of(&URL_SAFE_NO_PAD.decode(D).expect("base64"))
}

fn public_jwk() -> Value {
    json!({ "kty": "EC", "kid": "right", "alg": "ES256", "use": "sig", "crv": "P-256", "x": X, "y": Y })
}

fn es256(header: &Value, claims: &Value, key: &SigningKey) -> String {
    let message = format!("{}.{}", encode(header), encode(claims));
    let signature: Signature = key.sign(message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()))
}

/// Public values that an attacker could try as HMAC secrets.
fn published_as_secrets() -> Vec<String> {
    let point = [&[4_u8][..], &URL_SAFE_NO_PAD.decode(X).expect("x"), &URL_SAFE_NO_PAD.decode(Y).expect("y")].concat();
    // SubjectPublicKeyInfo of a key on P-256 (RFC 5480).
    let spki =
        [&hex::decode("3059301306072a8648ce3d020106082a8648ce3d030107034200").expect("hex")[..], &point].concat();
    let base64 = STANDARD.encode(spki);
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{}\n{}\n-----END PUBLIC KEY-----\n", &base64[..64], &base64[64..]);
    vec![pem.trim_end().to_owned(), pem, public_jwk().to_string(), X.to_owned(), format!("{X}{Y}"), base64]
}

#[actix_web::test]
async fn with_asymmetric_keys_nothing_else_signs() {
    let mut private = public_jwk();
    private["d"] = json!(D);
    private["key_ops"] = json!(["sign", "verify"]);
    let app = TestApp::with_settings(&[("GOTRUE_JWT_KEYS", &json!([private]).to_string())]).await;
    let user = app.user("ada@test.example").await;
    let claims = claims_of(user.actor.token.as_deref().expect("token"));
    let mut admin = claims.clone();
    admin["role"] = json!("service_role");
    admin["session_id"] = json!(null);
    let with = |alg: &str, kid: &str| json!({ "alg": alg, "typ": "JWT", "kid": kid });
    let stranger = key_of(&[7; 32]);
    let mut forged = vec![
        ("no kid", es256(&json!({ "alg": "ES256" }), &admin, &right_key())),
        ("a kid nobody has", es256(&with("ES256", "wrong"), &admin, &right_key())),
        ("another key under this kid", es256(&with("ES256", "right"), &admin, &stranger)),
        ("the key under another algorithm", es256(&with("ES384", "right"), &admin, &right_key())),
        ("no algorithm", format!("{}.{}.", encode(&with("none", "right")), encode(&admin))),
        ("the shared secret", signed(&with("HS256", ""), &admin, ferrobase::config::DEVELOPMENT_JWT_SECRET)),
        (
            "the shared secret under this kid",
            signed(&with("HS256", "right"), &admin, ferrobase::config::DEVELOPMENT_JWT_SECRET),
        ),
        ("an empty secret", signed(&with("HS256", "right"), &admin, "")),
    ];
    for secret in published_as_secrets() {
        forged.push(("what is published, as a secret", signed(&with("HS256", "right"), &admin, &secret)));
        forged.push(("what is published, without a kid", signed(&json!({ "alg": "HS256" }), &admin, &secret)));
    }
    for (what, token) in forged {
        let mut forger = app.anon();
        forger.token = Some(token);
        for path in ["/auth/v1/user", "/auth/v1/admin/users"] {
            let reply = forger.get(path).await;
            assert!(matches!(reply.status, 401 | 403), "{what} at {path}: {} {}", reply.status, reply.body);
        }
    }
    let mut holder = app.anon();
    holder.token = Some(es256(&with("ES256", "right"), &claims, &right_key()));
    assert_eq!(holder.get("/auth/v1/user").await.status, 200, "the right key signs");
}

#[actix_web::test]
async fn with_a_shared_secret_asymmetric_tokens_are_refused() {
    let app = TestApp::start().await;
    let user = app.user("ada@test.example").await;
    let claims = claims_of(user.actor.token.as_deref().expect("token"));
    for header in [
        json!({ "alg": "ES256" }),
        json!({ "alg": "ES256", "kid": "x" }),
        json!({ "alg": "EdDSA", "jwk": public_jwk() }),
    ] {
        let mut forger = app.anon();
        forger.token = Some(es256(&header, &claims, &right_key()));
        assert!(matches!(forger.get("/auth/v1/user").await.status, 401 | 403), "{header}");
    }
}

/// An issuer of ID tokens with [`public_jwk`] that also claims to sign with HS256 and with none.
fn issuer() -> String {
    outside::serve(|request, _| async move {
        let own = format!("http://{}", request.connection_info().host());
        match request.path() {
            "/.well-known/openid-configuration" => HttpResponse::Ok().json(json!({
                "issuer": own, "authorization_endpoint": format!("{own}/auth"), "token_endpoint": format!("{own}/token"),
                "userinfo_endpoint": format!("{own}/me"), "jwks_uri": format!("{own}/keys"),
                "id_token_signing_alg_values_supported": ["ES256", "HS256", "none"],
            })),
            "/keys" => HttpResponse::Ok().json(json!({ "keys": [public_jwk()] })),
            _ => HttpResponse::NotFound().finish(),
        }
    })
}

async fn with_issuer(issuer: &str) -> TestApp {
    with_issuer_and(issuer, &[]).await
}

async fn with_issuer_and(issuer: &str, more: &[(&str, &str)]) -> TestApp {
    let settings = [
        ("GOTRUE_MAILER_AUTOCONFIRM", "false"),
        ("GOTRUE_EXTERNAL_KEYCLOAK_ENABLED", "true"),
        ("GOTRUE_EXTERNAL_KEYCLOAK_CLIENT_ID", "ours,ours-too"),
        ("GOTRUE_EXTERNAL_KEYCLOAK_SECRET", "client-secret"),
        ("GOTRUE_EXTERNAL_KEYCLOAK_REDIRECT_URI", "http://127.0.0.1/auth/v1/callback"),
        ("GOTRUE_EXTERNAL_KEYCLOAK_URL", issuer),
        ("GOTRUE_EXTERNAL_AZURE_ENABLED", "true"),
        ("GOTRUE_EXTERNAL_AZURE_CLIENT_ID", "ours"),
        ("GOTRUE_EXTERNAL_AZURE_SECRET", "client-secret"),
        ("GOTRUE_EXTERNAL_AZURE_REDIRECT_URI", "http://127.0.0.1/auth/v1/callback"),
    ];
    TestApp::with_settings(&[&settings[..], more].concat()).await
}

async fn sign_in(app: &TestApp, body: Value) -> Reply {
    app.anon().post("/auth/v1/token?grant_type=id_token", body).await
}

#[actix_web::test]
async fn an_id_tokens_issuer_audience_time_and_nonce_are_checked() {
    let issuer = issuer();
    let app = with_issuer(&issuer).await;
    let now = chrono::Utc::now().timestamp();
    let nonce = hex::encode(Sha256::digest("the nonce"));
    let right = json!({ "iss": issuer, "aud": "ours", "sub": "7", "exp": now + 600, "iat": now, "nonce": nonce,
        "email": "ada@test.example", "email_verified": true });
    let header = json!({ "alg": "ES256", "kid": "right" });
    let changed = |name: &str, value: Value| {
        let mut claims = right.clone();
        claims[name] = value;
        es256(&header, &claims, &right_key())
    };
    let mut refused = vec![
        ("another audience", changed("aud", json!("theirs"))),
        ("no audience", changed("aud", json!(null))),
        ("another issuer", changed("iss", json!("https://accounts.google.com"))),
        ("no issuer", changed("iss", json!(null))),
        ("an issuer that begins like it", changed("iss", json!(format!("{issuer}/realm")))),
        ("expired", changed("exp", json!(now - 1))),
        ("without an end", changed("exp", json!(null))),
        ("nobody", changed("sub", json!(""))),
        ("another nonce", changed("nonce", json!(hex::encode(Sha256::digest("another"))))),
        ("no nonce", changed("nonce", json!(null))),
        ("the nonce itself", changed("nonce", json!("the nonce"))),
        ("another key", es256(&header, &right, &key_of(&[7; 32]))),
        ("a kid nobody has", es256(&json!({ "alg": "ES256", "kid": "wrong" }), &right, &right_key())),
        ("no signature", format!("{}.{}.", encode(&json!({ "alg": "none", "kid": "right" })), encode(&right))),
        ("another application's", changed("azp", json!("theirs"))),
        ("for several, and another application's", {
            let mut claims = right.clone();
            (claims["aud"], claims["azp"]) = (json!(["theirs", "ours"]), json!("theirs"));
            es256(&header, &claims, &right_key())
        }),
        ("an extension that must be understood", {
            let header = json!({ "alg": "ES256", "kid": "right", "crit": ["b64"], "b64": true });
            es256(&header, &right, &right_key())
        }),
    ];
    for secret in published_as_secrets() {
        refused.push((
            "what is published, as a secret",
            signed(&json!({ "alg": "HS256", "kid": "right" }), &right, &secret),
        ));
    }
    for (what, token) in refused {
        let reply = sign_in(&app, json!({ "provider": "keycloak", "id_token": token, "nonce": "the nonce" })).await;
        assert_eq!(reply.status, 400, "{what}: {}", reply.body);
        assert!(reply.body["access_token"].is_null());
    }
    let users: i64 = app.owner.query_one("select count(*) from auth.users", &[]).await.expect("count").get(0);
    assert_eq!(users, 0);
    let good = es256(&header, &right, &right_key());
    let unasked = sign_in(&app, json!({ "provider": "keycloak", "id_token": good })).await;
    assert_eq!(unasked.status, 400, "a nonce that was not passed: {}", unasked.body);
    let several = {
        let mut claims = right.clone();
        (claims["aud"], claims["azp"]) = (json!(["theirs", "ours"]), json!("ours-too"));
        es256(&header, &claims, &right_key())
    };
    let reply = sign_in(&app, json!({ "provider": "keycloak", "id_token": several, "nonce": "the nonce" })).await;
    assert_eq!(reply.status, 200, "for several, and ours: {}", reply.body);
    let reply = sign_in(&app, json!({ "provider": "keycloak", "id_token": good, "nonce": "the nonce" })).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
}

#[actix_web::test]
async fn the_provider_comes_from_the_settings_not_the_token() {
    let issuer = issuer();
    let app = with_issuer(&issuer).await;
    let now = chrono::Utc::now().timestamp();
    let claims = json!({ "iss": issuer, "aud": "ours", "sub": "7", "exp": now + 600, "iat": now,
        "email": "ada@test.example", "email_verified": true });
    let token = es256(&json!({ "alg": "ES256", "kid": "right" }), &claims, &right_key());
    // Another issuer that answers and signs like ours, but is not configured.
    let stranger = self::issuer();
    let mut strange = claims.clone();
    strange["iss"] = json!(stranger);
    let strange = es256(&json!({ "alg": "ES256", "kid": "right" }), &strange, &right_key());
    for body in [
        json!({ "issuer": stranger, "client_id": "ours", "id_token": strange }),
        json!({ "provider": "keycloak", "issuer": stranger, "client_id": "ours", "id_token": strange }),
        // Providers with the issuer in the token accept only their own.
        json!({ "provider": "azure", "id_token": token }),
        json!({ "provider": "apple", "id_token": token }),
        json!({ "provider": "google", "id_token": token }),
        json!({ "provider": "kakao", "id_token": token }),
        // A named issuer must be one of the allowed ones.
        json!({ "issuer": "https://evil.example", "client_id": "ours", "id_token": token }),
        json!({ "issuer": format!("{issuer}/"), "client_id": "ours", "id_token": token }),
        json!({ "provider": "custom:evil", "id_token": token }),
    ] {
        let reply = sign_in(&app, body.clone()).await;
        assert!(reply.status >= 400, "{body}: {}", reply.body);
        assert!(reply.body["access_token"].is_null());
    }
    assert_eq!(sign_in(&app, json!({ "provider": "keycloak", "id_token": token })).await.status, 200);
}

#[actix_web::test]
async fn unverified_addresses_sign_in_to_no_account_and_squatters_lose_theirs() {
    let issuer = issuer();
    let app = with_issuer(&issuer).await;
    let account = async |email: &str| {
        let body = json!({ "email": email, "password": "correct-Horse-7", "email_confirm": true });
        text(&app.service().post("/auth/v1/admin/users", body).await.body, "id").to_owned()
    };
    let (ada, cleo) = (account("ada@test.example").await, account("cleo@test.example").await);
    let now = chrono::Utc::now().timestamp();
    let token = |sub: &str, email: &str, verified: bool| {
        let claims = json!({ "iss": issuer, "aud": "ours", "sub": sub, "exp": now + 600, "iat": now,
            "email": email, "email_verified": verified, "full_name": "Their Owner" });
        es256(&json!({ "alg": "ES256", "kid": "right" }), &claims, &right_key())
    };
    let unverified =
        sign_in(&app, json!({ "provider": "keycloak", "id_token": token("1", "ada@test.example", false) })).await;
    assert!(unverified.status >= 400, "{}", unverified.body);
    let owners: i64 = app
        .owner
        .query_one("select count(*) from auth.identities where user_id::text = $1", &[&ada])
        .await
        .expect("count")
        .get(0);
    assert_eq!(owners, 1, "the e-mail identity alone");
    let verified =
        sign_in(&app, json!({ "provider": "keycloak", "id_token": token("2", "cleo@test.example", true) })).await;
    assert_eq!(verified.status, 200, "{}", verified.body);
    assert_eq!(text(&verified.body["user"], "id"), cleo, "an address that is vouched for is linked");
    // The provider's name comes with every sign-in, and does not replace the one that Cleo has chosen.
    let chosen = format!("update public.profiles set full_name = 'Cleo King' where id = '{cleo}'");
    app.owner.batch_execute(&chosen).await.expect("a name");
    let again =
        sign_in(&app, json!({ "provider": "keycloak", "id_token": token("2", "cleo@test.example", true) })).await;
    assert_eq!(again.body["user"]["user_metadata"]["full_name"], "Cleo King", "{}", again.body);
    let name = "select full_name from public.profiles where email = 'cleo@test.example'";
    assert_eq!(app.owner.query_one(name, &[]).await.expect("the profile").get::<_, String>(0), "Cleo King");

    // A squatter signs up with an address that is not theirs and waits for its owner.
    let squatter = json!({ "email": "bob@test.example", "password": "squatters-Horse-7",
        "data": { "squatter": true, "full_name": "Mallory", "phone": "+1 207 555 0100" } });
    assert_eq!(app.anon().post("/auth/v1/signup", squatter).await.status, 200);
    let owner =
        sign_in(&app, json!({ "provider": "keycloak", "id_token": token("3", "bob@test.example", true) })).await;
    assert_eq!(owner.status, 200, "{}", owner.body);
    assert!(owner.body["user"]["user_metadata"]["squatter"].is_null());
    let profile = "select full_name, phone from public.profiles where email = 'bob@test.example'";
    let profile = app.owner.query_one(profile, &[]).await.expect("the profile");
    assert_eq!((profile.get::<_, String>(0), profile.get::<_, Option<String>>(1)), ("Their Owner".to_owned(), None));
    let body = json!({ "email": "bob@test.example", "password": "squatters-Horse-7" });
    let reply = app.anon().post("/auth/v1/token?grant_type=password", body).await;
    assert_eq!((reply.status, text(&reply.body, "error_code")), (400, "invalid_credentials"));
}

/// All of them decide to create a user before one has.
#[actix_web::test]
async fn a_new_person_signing_in_several_times_at_once_gets_one_account() {
    let issuer = issuer();
    let app = with_issuer_and(&issuer, &[("GOTRUE_EXTERNAL_KEYCLOAK_EMAIL_OPTIONAL", "true")]).await;
    let now = chrono::Utc::now().timestamp();
    for (sub, email, table) in [("1", json!("ada@test.example"), "users"), ("2", json!(null), "identities")] {
        let claims = json!({ "iss": issuer, "aud": "ours", "sub": sub, "exp": now + 600, "iat": now, "email": email,
            "email_verified": email.is_string() });
        let token = es256(&json!({ "alg": "ES256", "kid": "right" }), &claims, &right_key());
        let body = json!({ "provider": "keycloak", "id_token": token });
        let grants = join_all((0..3).map(|_| sign_in(&app, body.clone())));
        let replies = meanwhile(&app, &format!("lock table auth.{table} in share mode"), 3, grants).await;
        for reply in &replies {
            assert_eq!(reply.status, 200, "{sub}: {}", reply.body);
            assert_eq!(reply.body["user"]["id"], replies[0].body["user"]["id"], "{sub}");
        }
    }
}

#[actix_web::test]
async fn the_published_key_set_contains_no_secret() {
    let app = TestApp::with_settings(&[("JWT_SECRET", "0123456789abcdef0123456789abcdef")]).await;
    let published = send(app.plain(reqwest::Method::GET, "/auth/v1/.well-known/jwks.json")).await;
    assert_eq!(published.body, json!({ "keys": [] }), "a shared secret is published in no form");
    // In development, the set also contains the public half of the well-known key.
    let app = TestApp::start().await;
    let published = send(app.plain(reqwest::Method::GET, "/auth/v1/.well-known/jwks.json")).await;
    let keys = published.body["keys"].as_array().expect("keys");
    assert_eq!((keys.len(), &keys[0]["kty"]), (1, &json!("EC")), "{keys:?}");
    assert!(keys[0].get("d").is_none() && keys[0].get("k").is_none(), "{keys:?}");
}
