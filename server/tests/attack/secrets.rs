//! Plants secrets in every part of a request to every route: header, cookie, query, body, and the path of a link. None
//! may appear in the log at any level. (`auth::logs` follows the secrets of the sign-in flows.)

use reqwest::Method;
use serde_json::json;

use super::report;
use super::routes::{CASES, Names, request};
use super::world::{ALL_ON, World};
use crate::auth::logs::log;
use crate::auth::tokens::signed;
use crate::support::alone::alone;
use crate::support::{TestApp, send};

/// Long enough not to occur by chance.
struct Planted {
    name: &'static str,
    value: String,
}

fn planted(name: &'static str) -> Planted {
    Planted {
        name,
        value: format!(
            "planted{}{}",
            name.replace(|c: char| !c.is_ascii_alphanumeric(), ""),
            uuid::Uuid::new_v4().simple()
        ),
    }
}

#[actix_web::test]
async fn no_log_at_any_level_contains_a_planted_secret() {
    if !alone("attack::secrets::no_log_at_any_level_contains_a_planted_secret") {
        return;
    }
    let log = log();
    let app = TestApp::with_settings(&ALL_ON).await;
    let world = World::new(&app).await;
    let names = Names::make(&app, &world.stranger.id).await;
    let places: Vec<Planted> = [
        "password",
        "new password",
        "token",
        "access_token",
        "refresh_token",
        "code",
        "verifier",
        "apikey",
        "nonce",
        "token_hash",
        "cookie",
        "header",
        "basic",
        "signature",
        "client secret",
        "body",
        "session token",
        "a bearer that is none",
        "captcha",
    ]
    .map(planted)
    .into_iter()
    .collect();
    let value = |name: &str| places.iter().find(|place| place.name == name).expect("planted").value.clone();
    // A complete token signed by somebody else; each of its parts is searched for.
    let foreign = signed(
        &json!({ "alg": "HS256" }),
        &json!({ "role": "service_role", "planted": value("token") }),
        "another-secret-of-thirty-two-bytes",
    );
    let mut secrets: Vec<(String, String)> =
        places.iter().map(|place| (place.name.to_owned(), place.value.clone())).collect();
    secrets.push(("a foreign token".to_owned(), foreign.clone()));
    secrets.push(("a foreign token's signature".to_owned(), foreign.rsplit('.').next().expect("a part").to_owned()));
    secrets.push(("the stranger's token".to_owned(), world.stranger.actor.token.clone().expect("a token")));
    secrets.push(("the service key".to_owned(), app.service_key.clone()));
    let bearers = [
        world.stranger.actor.token.clone().expect("a token"),
        foreign,
        format!("sb_secret_{}", value("a bearer that is none")),
    ];
    let mut tried = 0;
    for case in CASES {
        for bearer in &bearers {
            let mut actor = app.anon();
            actor.token = Some(bearer.clone());
            let built = request(&actor, case, &names).build().expect("a request");
            let (method, mut url, headers) = (built.method().clone(), built.url().clone(), built.headers().clone());
            // In the query, under every name used for secrets.
            for name in ["token", "access_token", "refresh_token", "code", "apikey", "token_hash", "password"] {
                let known = places.iter().find(|place| place.name == name).expect("planted");
                if name != "apikey" || case.endpoint.starts_with("storage") {
                    url.query_pairs_mut().append_pair(name, &known.value);
                }
            }
            url.query_pairs_mut().append_pair("X-Amz-Signature", &value("signature"));
            url.query_pairs_mut().append_pair("X-Amz-Security-Token", &value("session token"));
            let path = format!("{}?{}", url.path(), url.query().unwrap_or_default());
            let attack = app.plain(method.clone(), &path).headers(headers);
            let attack = attack
                .header("cookie", format!("sb-access-token={}; session={}", value("cookie"), value("cookie")))
                .header("x-signature", value("signature"))
                .header("x-api-key", value("header"))
                .header("x-webauthn", value("header"))
                .header("proxy-authorization", format!("Basic {}", value("basic")))
                .header("x-amz-security-token", value("session token"));
            let body = json!({
                "email": "planted@elsewhere.example", "phone": "15550001111", "password": value("password"), "current_password": value("password"),
                "new_password": value("new password"), "token": value("token"), "token_hash": value("token_hash"), "refresh_token": value("refresh_token"),
                "access_token": value("access_token"), "id_token": value("access_token"), "auth_code": value("code"), "code": value("code"), "code_verifier": value("verifier"),
                "nonce": value("nonce"), "client_secret": value("client secret"), "anything": value("body"), "data": { "secret": value("body") },
                "gotrue_meta_security": { "captcha_token": value("captcha") }, "provider": "github", "type": "recovery", "messages": [{ "topic": value("body") }],
                "prefix": value("body"), "challenge_id": value("code"), "credential": { "id": value("body") },
            });
            let attack = match method {
                Method::GET | Method::HEAD | Method::OPTIONS => attack,
                _ => attack.header("content-type", "application/json").body(body.to_string()),
            };
            let reply = send(attack).await;
            assert!(reply.status < 500, "{}: {} {}", case.endpoint, reply.status, reply.body);
            tried += 1;
        }
    }
    // Statements that fail inside the database, where PostgreSQL repeats values in its message.
    for (path, body) in [
        ("/rest/v1/notifications", json!({ "message": value("body"), "date": value("body") })),
        ("/rest/v1/rpc/check_request_code", json!({ "number": value("code"), "code": value("code") })),
        ("/rest/v1/rpc/accept_team_invitation", json!({ "token": value("token") })),
        (
            "/rest/v1/profile_identities",
            json!({ "user_id": world.stranger.id, "id_type": "Passport", "id_number": value("body").repeat(9) }),
        ),
        ("/functions/v1/get-categories", json!({ "nonprofit_id": value("body") })),
    ] {
        world.stranger.actor.post(path, body).await;
        tried += 1;
    }
    let seen = log.text();
    // The log was captured completely.
    for line in ["request answered", "TRACE", "/auth/v1/token", "/storage/v1/object/sign/"] {
        assert!(seen.contains(line), "the log is not what it should be: no '{line}'");
    }
    for (what, secret) in secrets {
        if let Some(at) = seen.find(&secret) {
            let start = seen[..at].rfind('\n').map_or(0, |newline| newline + 1);
            panic!("{what} is in the log: {}", seen[start..].lines().next().unwrap_or_default());
        }
    }
    report("requests with planted secrets, all log levels", tried, "not in the log");
}
