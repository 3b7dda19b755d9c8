//! Failing HTTP hooks: retries, time limits, and the client's answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_web::HttpResponse;
use serde_json::json;

use crate::auth::text;
use crate::support::{PASSWORD, Reply, TestApp, outside};

/// How much of an answer is read, in bytes.
const LIMIT: usize = 200 * 1024;

/// A hook server that answers by path and counts its requests.
struct Hooks {
    base: String,
    asked: Arc<AtomicUsize>,
}

impl Hooks {
    fn start() -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let base = outside::serve(move |request, body| {
            let times = count.fetch_add(1, Ordering::Relaxed) + 1;
            async move {
                match (request.path(), request.method().as_str()) {
                    // What a followed request is answered depends on its method and body.
                    ("/told", "POST") if body.contains("before-user-created") => answer("/largest", times).await,
                    ("/told", _) => HttpResponse::BadRequest().finish(),
                    (path, _) => answer(path, times).await,
                }
            }
        });
        Self { base, asked }
    }

    /// The number of requests since the last call.
    fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::Relaxed)
    }
}

async fn answer(path: &str, times: usize) -> HttpResponse {
    let padded = |length: usize| format!("{{{}}}", " ".repeat(length - 2));
    let json = |body: String| HttpResponse::Ok().content_type("application/json; charset=utf-8").body(body);
    match path {
        "/text" => HttpResponse::Ok().content_type("text/plain").body("{}"),
        "/untyped" => {
            let mut response = HttpResponse::Ok().body("{}");
            response.head_mut().headers.remove("content-type");
            response
        }
        "/largest" => json(padded(LIMIT)),
        "/larger" => json(padded(LIMIT + 1)),
        "/cut" => json("{".to_owned()),
        "/accepted" => HttpResponse::Accepted().content_type("application/json").body("{}"),
        "/nothing" => HttpResponse::NoContent().finish(),
        "/bad" => HttpResponse::BadRequest().finish(),
        "/unauthorized" => HttpResponse::Unauthorized().finish(),
        "/busy" => HttpResponse::ServiceUnavailable().finish(),
        "/third" if times < 3 => HttpResponse::TooManyRequests().insert_header(("retry-after", "true")).finish(),
        "/third" => json("{}".to_owned()),
        "/moved" => HttpResponse::TemporaryRedirect().insert_header(("location", "/told")).finish(),
        "/never" => HttpResponse::ServiceUnavailable().insert_header(("retry-after", "1")).finish(),
        _ => std::future::pending().await,
    }
}

/// Signs up at a server whose hook is at `uri`.
async fn sign_up(house: &TestApp, uri: &str, email: &str) -> Reply {
    let settings = [
        ("GOTRUE_HOOK_BEFORE_USER_CREATED_ENABLED", "true"),
        ("GOTRUE_HOOK_BEFORE_USER_CREATED_URI", uri),
        ("GOTRUE_HOOK_BEFORE_USER_CREATED_SECRETS", "v1,whsec_c2VjcmV0"),
    ];
    let app = house.another(&settings).await;
    app.anon().post("/auth/v1/signup", json!({ "email": email, "password": PASSWORD })).await
}

#[actix_web::test]
async fn hook_answers_are_used_retried_or_reported() {
    let house = TestApp::start().await;
    let hooks = Hooks::start();
    for (path, status, code, message, asked) in [
        (
            "text",
            400,
            "hook_payload_invalid_content_type",
            "Invalid JSON response. Received content-type: text/plain",
            1,
        ),
        ("untyped", 400, "hook_payload_invalid_content_type", "Invalid Content-Type: Missing Content-Type header", 1),
        ("larger", 422, "hook_payload_over_size_limit", "Payload size exceeded size limit of 204800 bytes", 1),
        ("cut", 500, "unexpected_failure", "Error unmarshaling JSON output.", 1),
        ("bad", 500, "unexpected_failure", "Invalid payload sent to hook", 1),
        ("unauthorized", 500, "unexpected_failure", "Hook requires authorization token", 1),
        ("busy", 500, "unexpected_failure", "Service currently unavailable due to hook", 1),
        ("never", 500, "unexpected_failure", "Service currently unavailable due to hook", 3),
        ("largest", 200, "", "", 1),
        ("accepted", 200, "", "", 1),
        ("nothing", 200, "", "", 1),
        ("third", 200, "", "", 3),
        ("moved", 200, "", "", 2),
    ] {
        let reply = sign_up(&house, &format!("{}/{path}", hooks.base), &format!("{path}@test.example")).await;
        assert_eq!((reply.status, hooks.asked()), (status, asked), "{path}: {}", reply.body);
        if status != 200 {
            assert_eq!((text(&reply.body, "error_code"), text(&reply.body, "msg")), (code, message), "{path}");
        }
    }
    let users: i64 = house.owner.query_one("select count(*) from auth.users", &[]).await.expect("count").get(0);
    assert_eq!(users, 5, "of the others nothing is left");
}

#[actix_web::test]
async fn unreachable_and_silent_hooks_time_out() {
    let house = TestApp::start().await;
    let hooks = Hooks::start();
    let silent = format!("{}/silent", hooks.base);
    // Nothing listens on the discard port.
    let (unreachable, silent) = futures_util::join!(
        sign_up(&house, "http://127.0.0.1:9/", "a@test.example"),
        sign_up(&house, &silent, "b@test.example")
    );
    let told =
        |reply: &Reply| (reply.status, text(&reply.body, "error_code").to_owned(), text(&reply.body, "msg").to_owned());
    let after_retries = "Failed to reach hook after maximum retries";
    assert_eq!(told(&unreachable), (422, "hook_timeout_after_retry".to_owned(), after_retries.to_owned()));
    let too_long = "Failed to reach hook within maximum time of 5.000000 seconds";
    assert_eq!(told(&silent), (422, "hook_timeout".to_owned(), too_long.to_owned()));
    assert_eq!(hooks.asked(), 1, "a hook that times out is not retried");
}
