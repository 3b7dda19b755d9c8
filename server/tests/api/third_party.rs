//! Tokens of other issuers (third-party auth): REST, functions, storage and realtime accept those of the trusted issuer, and nobody
//! waits long for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actix_web::HttpResponse;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use parking_lot::Mutex;
use reqwest::Method;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use crate::realtime::client::Client;
use crate::support::{Actor, TestApp, outside, send};

const SCHEMA: &str = r#"
    create schema if not exists functions;
    grant usage on schema functions to anon, authenticated, service_role;
    create function functions."who-am-i"(input jsonb) returns jsonb language sql as $$ select auth.jwt() $$;
    create function public.who_am_i() returns jsonb language sql as
      $$ select jsonb_build_object('role', current_user, 'sub', auth.jwt() ->> 'sub') $$;
    insert into storage.buckets (id, name) values ('theirs', 'theirs');
    create policy "people keep files" on storage.objects for all to authenticated
      using (bucket_id = 'theirs' and owner_id = auth.jwt() ->> 'sub') with check (bucket_id = 'theirs');
"#;

/// No UUID, as with Firebase and Auth0.
const SUBJECT: &str = "auth0|5f7c8ec7c33c6c004bbafe82";

/// An RSA key made for these tests only, and its modulus.
const RSA: &[u8] = include_bytes!("../support/tls/issuer.key");
const MODULUS: &str = "qBrdiE_BTM9X-7j1emN3VBnFx4hv0OxeYHvFtPRupitNwzo600saRlH6VsZgjLq0PmJ0u5pA7pSrOjInsBfNLcLllFKuf1dLrwqFrWzSRHI9ug3aUzVhikaqvHs-xBSXwnQKTBo3nCa01ZZdq7vrAdFDWHuBCJYnxamyMzQByT4GsXHYF4CgGBghVWVmp-1yhPBFaCs46Rn-saaoJUM96Ni-ar_5GHGjnKxzxq6L5bED2Pa4NVudexauyEsFwg7TkMJhpQQl_J_CWqke228C93hAPfASToLLhy67c3CoL6ETHKyjNlpqQputcHZtaCl3TPD3N4hZojCOhCumqdFGBw";

/// A provider, its discovery document, and the keys that it publishes at the moment.
struct Provider {
    url: String,
    keys: Arc<Mutex<Vec<Value>>>,
    asked: Arc<AtomicUsize>,
    hangs: Arc<Mutex<bool>>,
}

impl Provider {
    fn start() -> Self {
        let keys = Arc::new(Mutex::new(vec![rsa("first")]));
        let (asked, hangs) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<bool>>::default());
        let (published, count, is_mute) = (Arc::clone(&keys), Arc::clone(&asked), Arc::clone(&hangs));
        let url = outside::serve(move |request, _| {
            let (keys, count, is_mute) = (Arc::clone(&published), Arc::clone(&count), Arc::clone(&is_mute));
            async move {
                let own = format!("http://{}", request.connection_info().host());
                let is_mute = *is_mute.lock();
                if is_mute {
                    std::future::pending::<()>().await;
                }
                match request.path() {
                    "/.well-known/openid-configuration" => HttpResponse::Ok()
                        .json(json!({ "issuer": format!("{own}/"), "jwks_uri": format!("{own}/keys") })),
                    "/keys" => {
                        count.fetch_add(1, Ordering::SeqCst);
                        HttpResponse::Ok().json(json!({ "keys": *keys.lock() }))
                    }
                    _ => HttpResponse::NotFound().finish(),
                }
            }
        });
        Self { url, keys, asked, hangs }
    }

    fn claims(&self) -> Value {
        let now = chrono::Utc::now().timestamp();
        json!({ "iss": format!("{}/", self.url), "sub": SUBJECT, "aud": "their-app", "role": "authenticated", "iat": now, "exp": now + 600 })
    }

    fn changed(&self, name: &str, value: Value) -> Value {
        let mut claims = self.claims();
        claims[name] = value;
        claims
    }

    async fn app(&self) -> TestApp {
        let app = TestApp::with_settings(&[("FERROBASE_THIRD_PARTY_ISSUERS", &self.url)]).await;
        app.owner.batch_execute(SCHEMA).await.expect("a schema");
        let begun = Instant::now();
        while app.service().post("/rest/v1/rpc/who_am_i", json!({})).await.status != 200 {
            assert!(begun.elapsed() < Duration::from_secs(60), "the function is not in the schema cache");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        app
    }
}

fn rsa(kid: &str) -> Value {
    json!({ "kty": "RSA", "kid": kid, "alg": "RS256", "use": "sig", "n": MODULUS, "e": "AQAB" })
}

fn token(kid: Option<&str>, claims: &Value) -> String {
    signed(Algorithm::RS256, kid, claims)
}

fn signed(algorithm: Algorithm, kid: Option<&str>, claims: &Value) -> String {
    let mut header = Header::new(algorithm);
    header.kid = kid.map(str::to_owned);
    let key = PrivateKeyDer::from_pem_slice(RSA).expect("a key");
    encode(&header, claims, &EncodingKey::from_rsa_der(key.secret_der())).expect("a token")
}

fn with(app: &TestApp, token: String) -> Actor<'_> {
    let mut actor = app.anon();
    actor.token = Some(token);
    actor
}

/// The status of REST with this token.
async fn status(app: &TestApp, token: &str) -> u16 {
    with(app, token.to_owned()).post("/rest/v1/rpc/who_am_i", json!({})).await.status
}

#[actix_web::test]
async fn tokens_of_a_trusted_issuer_are_accepted_by_every_api_except_auth() {
    let provider = Provider::start();
    let app = provider.app().await;
    let theirs = token(Some("first"), &provider.claims());
    let actor = with(&app, theirs.clone());
    let rest = actor.post("/rest/v1/rpc/who_am_i", json!({})).await;
    assert_eq!((rest.status, &rest.body), (200, &json!({ "role": "authenticated", "sub": SUBJECT })));
    let function = actor.post("/functions/v1/who-am-i", json!({})).await;
    assert_eq!((function.status, &function.body["sub"]), (200, &json!(SUBJECT)));
    let file = actor.request(Method::POST, "/storage/v1/object/theirs/note").header("content-type", "text/plain");
    assert_eq!(send(file.body("note")).await.body["Key"], "theirs/note");
    assert_eq!(actor.get("/storage/v1/object/theirs/note").await.body, "note");
    let row = app
        .owner
        .query_one("select owner, owner_id from storage.objects where name = 'note'", &[])
        .await
        .expect("a row");
    assert_eq!((row.get::<_, Option<uuid::Uuid>>(0), row.get::<_, String>(1).as_str()), (None, SUBJECT));
    let mut socket = Client::open(&app).await;
    socket.join_as("theirs", json!({}), Some(&theirs)).await;
    let broadcast = json!({ "messages": [{ "topic": "theirs", "event": "hello", "payload": {} }] });
    assert_eq!(actor.post("/realtime/v1/api/broadcast", broadcast).await.status, 202);
    // Accounts are our own people's, and an API key is not somebody's token.
    assert!(matches!(actor.get("/auth/v1/user").await.status, 401 | 403));
    let service = token(Some("first"), &provider.changed("role", json!("service_role")));
    assert_eq!(send(app.plain(Method::GET, "/rest/v1/").header("apikey", &service)).await.status, 401);
    assert_eq!(provider.asked.load(Ordering::SeqCst), 1, "the keys are kept");
    // Without a role a token is anon's, as upstream.
    let mut none = provider.claims();
    none.as_object_mut().expect("claims").remove("role");
    let reply = with(&app, token(Some("first"), &none)).post("/rest/v1/rpc/who_am_i", json!({})).await;
    assert_eq!((reply.status, &reply.body["role"]), (200, &json!("anon")));
    // Our own people's tokens count as before.
    let ada = app.user("ada@test.example").await;
    assert_eq!(ada.actor.post("/rest/v1/rpc/who_am_i", json!({})).await.body["role"], "authenticated");
}

#[actix_web::test]
async fn a_third_party_token_needs_a_named_key_and_an_expiry() {
    let provider = Provider::start();
    let app = provider.app().await;
    assert_eq!(status(&app, &token(Some("first"), &provider.claims())).await, 200);
    let now = chrono::Utc::now().timestamp();
    let secret = EncodingKey::from_secret(MODULUS.as_bytes());
    let mut symmetric = Header::new(Algorithm::HS256);
    symmetric.kid = Some("first".to_owned());
    for (what, refused) in [
        ("another issuer", token(Some("first"), &provider.changed("iss", json!("https://accounts.google.com")))),
        (
            "an issuer that begins like it",
            token(Some("first"), &provider.changed("iss", json!(format!("{}/x", provider.url)))),
        ),
        ("no issuer", token(Some("first"), &provider.changed("iss", json!(null)))),
        ("our own issuer", token(Some("first"), &provider.changed("iss", json!("supabase-demo")))),
        ("no end", token(Some("first"), &provider.changed("exp", json!(null)))),
        ("its end has come", token(Some("first"), &provider.changed("exp", json!(now - 60)))),
        ("not yet", token(Some("first"), &provider.changed("nbf", json!(now + 600)))),
        ("no name of a key", token(None, &provider.claims())),
        ("what is published, as a secret", encode(&symmetric, &provider.claims(), &secret).expect("a token")),
    ] {
        let reply = with(&app, refused.clone()).post("/rest/v1/rpc/who_am_i", json!({})).await;
        assert_eq!(reply.status, 401, "{what}: {}", reply.body);
        let reply = with(&app, refused.clone()).post("/functions/v1/who-am-i", json!({})).await;
        assert_eq!(reply.status, 401, "{what}: {}", reply.body);
        let mut socket = Client::open(&app).await;
        let (_, answer) = socket.try_join("theirs", json!({}), Some(&refused)).await;
        assert_eq!(answer["status"], "error", "{what}");
    }
}

#[actix_web::test]
async fn rsa_pss_tokens_are_accepted_with_their_keys_algorithm() {
    let provider = Provider::start();
    let of = |kid: &str, algorithm: &str| {
        let mut key = rsa(kid);
        key["alg"] = json!(algorithm);
        key
    };
    *provider.keys.lock() = vec![of("256", "PS256"), of("384", "PS384"), of("512", "PS512")];
    let app = provider.app().await;
    for (algorithm, kid, expected) in [
        (Algorithm::PS256, "256", 200),
        (Algorithm::PS384, "384", 200),
        (Algorithm::PS512, "512", 200),
        (Algorithm::RS256, "256", 401),
        (Algorithm::PS512, "256", 401),
    ] {
        let theirs = signed(algorithm, Some(kid), &provider.claims());
        assert_eq!(status(&app, &theirs).await, expected, "{algorithm:?} with the key {kid}");
    }
}

#[actix_web::test]
async fn an_unknown_key_is_fetched_once_and_a_withdrawn_key_is_refused() {
    let provider = Provider::start();
    let app = provider.app().await;
    let old = token(Some("first"), &provider.claims());
    assert_eq!(status(&app, &old).await, 200);
    *provider.keys.lock() = vec![rsa("second")];
    // It is remembered by REST until the change is known.
    assert_eq!(status(&app, &old).await, 200);
    assert_eq!(status(&app, &token(Some("second"), &provider.claims())).await, 200);
    assert_eq!(status(&app, &old).await, 401, "its key is gone");
    let before = provider.asked.load(Ordering::SeqCst);
    assert_eq!(before, 2);
    // A flood of keys that nobody has asks the issuer no more often, and is answered at once.
    let begun = Instant::now();
    for n in 0..100 {
        assert_eq!(status(&app, &token(Some(&format!("key-{n}")), &provider.claims())).await, 401);
    }
    let allowed = 1 + begun.elapsed().as_secs() as usize / 10;
    assert!(provider.asked.load(Ordering::SeqCst) - before <= allowed, "{:?}", provider.asked);
    assert_eq!(status(&app, &token(Some("second"), &provider.claims())).await, 200);
}

#[actix_web::test]
async fn a_hanging_issuer_delays_only_its_own_users_and_only_briefly() {
    let provider = Provider::start();
    *provider.hangs.lock() = true;
    let app = provider.app().await;
    let ada = app.user("ada@test.example").await;
    let theirs = token(Some("first"), &provider.claims());
    let waiting = async {
        let begun = Instant::now();
        let all = (0..100).map(|_| status(&app, &theirs));
        (futures_util::future::join_all(all).await, begun.elapsed())
    };
    // While they wait, no connection is held and others are served.
    let others = async {
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            let begun = Instant::now();
            assert_eq!(ada.actor.post("/rest/v1/rpc/who_am_i", json!({})).await.status, 200);
            slowest = slowest.max(begun.elapsed());
        }
        slowest
    };
    let ((statuses, waited), slowest) = tokio::join!(waiting, others);
    assert!(statuses.iter().all(|status| *status == 401), "{statuses:?}");
    assert!(waited < Duration::from_secs(9), "{waited:?}");
    assert!(slowest < Duration::from_secs(4), "{slowest:?}");
    // It is asked again once it answers.
    *provider.hangs.lock() = false;
    let begun = Instant::now();
    while status(&app, &theirs).await != 200 {
        assert!(begun.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[actix_web::test]
async fn invalid_issuers_prevent_startup() {
    let app = TestApp::start().await;
    for wrong in ["http://issuer.example", "issuer.example", "https://issuer.example http://keys.example/"] {
        let problem =
            app.try_another(&[("FERROBASE_THIRD_PARTY_ISSUERS", wrong)]).await.err().expect("refused").to_string();
        assert!(problem.contains("FERROBASE_THIRD_PARTY_ISSUERS"), "{problem}");
    }
}
