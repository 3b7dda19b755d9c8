//! Lasting overload at auth and storage: what could only wait is refused, nothing that has begun is lost, and afterwards
//! everybody is served again. For `/rest/v1` see `rest_isolation/limits.rs`.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;

use crate::support::{PASSWORD, Reply, TestApp};

/// As outside of development.
const REFUSES: (&str, &str) = ("FERROBASE_REFUSE_OVERLOAD", "true");

/// Clients that ask without a pause.
const FLOOD: usize = 80;

/// Asks `flood` times at once without a pause until one is refused, and returns that refusal.
async fn refusal(flood: usize, ask: impl AsyncFn() -> Reply) -> Reply {
    let (is_over, begun) = (AtomicBool::new(false), Instant::now());
    let asking = join_all((0..flood).map(|_| async {
        while !is_over.load(Ordering::Relaxed) {
            assert!(begun.elapsed() < Duration::from_secs(60), "no request is refused");
            let reply = ask().await;
            if reply.status == 503 {
                is_over.store(true, Ordering::Relaxed);
                return Some(reply);
            }
            assert_eq!(reply.status, 200, "{}", reply.body);
        }
        None
    }));
    asking.await.into_iter().flatten().next().expect("a refusal")
}

/// Asks for two seconds without a pause, and returns all refusals.
async fn flood(ask: impl AsyncFn() -> Reply) -> Vec<Reply> {
    let begun = Instant::now();
    let asking = join_all((0..FLOOD).map(|_| async {
        let mut refused = Vec::new();
        while begun.elapsed() < Duration::from_secs(2) {
            let reply = ask().await;
            match reply.status {
                200 => {}
                503 => refused.push(reply),
                other => panic!("{other}: {}", reply.body),
            }
        }
        refused
    }));
    asking.await.into_iter().flatten().collect()
}

#[actix_web::test]
async fn auth_refuses_requests_under_overload() {
    let app = TestApp::with_settings(&[("GOTRUE_DB_MAX_POOL_SIZE", "2"), REFUSES]).await;
    let ada = app.user("ada@test.example").await;
    let slow = "create function public.take_time() returns trigger language plpgsql as $$ begin perform pg_sleep(0.02); return new; end $$; \
                create trigger take_time before update on auth.users for each row execute function public.take_time()";
    app.owner.batch_execute(slow).await.expect("a slow trigger");
    let refused = refusal(FLOOD, async || ada.actor.put("/auth/v1/user", json!({ "data": { "a": 1 } })).await).await;
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.body["error_code"], "unexpected_failure", "{}", refused.body);
    assert_eq!(ada.actor.get("/auth/v1/user").await.status, 200);
    // Requests with bodies of other lengths get copies of such refusals, and the next on their connection is understood.
    let next = AtomicUsize::new(0);
    let change = async || {
        let text = "x".repeat(next.fetch_add(1, Ordering::Relaxed) % 2000);
        ada.actor.put("/auth/v1/user", json!({ "data": { "a": text } })).await
    };
    let refused = flood(change).await;
    assert!(refused.len() > 2 * FLOOD, "{}", refused.len());
    assert!(refused.iter().all(|reply| reply.body["error_code"] == "unexpected_failure"));
    assert_eq!(ada.actor.put("/auth/v1/user", json!({ "data": { "a": "last" } })).await.status, 200);
    let user = ada.actor.get("/auth/v1/user").await;
    assert_eq!(user.body["user_metadata"]["a"], "last", "{}", user.body);
}

#[actix_web::test]
async fn sign_ins_that_would_wait_for_others_are_refused() {
    let slow = ("FERROBASE_PASSWORD_COST", "10");
    let settings = [slow, ("FERROBASE_PASSWORD_THREADS", "1"), ("GOTRUE_RATE_LIMIT_TOKEN_REFRESH", "1000000"), REFUSES];
    let app = TestApp::with_settings(&settings).await;
    // Each has fewer sign-ins at once than an account may.
    let users: Vec<String> = (0..8).map(|number| format!("user{number}@test.example")).collect();
    for email in &users {
        app.user(email).await;
    }
    let next = AtomicUsize::new(0);
    let sign_in = async || {
        let email = &users[next.fetch_add(1, Ordering::Relaxed) % users.len()];
        let body = json!({ "email": email, "password": PASSWORD });
        app.anon().post("/auth/v1/token?grant_type=password", body).await
    };
    let refused = refusal(FLOOD / 2, sign_in).await;
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(sign_in().await.status, 200);
}

/// A server that refuses, with a bucket that takes long to read.
async fn with_a_slow_bucket() -> TestApp {
    let app = TestApp::with_settings(&[("FERROBASE_DB_CONNECTIONS", "19"), REFUSES]).await;
    let slow = "create policy slow on storage.buckets for select to authenticated using (pg_sleep(0.02) is not null); \
                insert into storage.buckets (id, name) values ('slow', 'slow')";
    app.owner.batch_execute(slow).await.expect("a slow policy");
    app
}

#[actix_web::test]
async fn storage_refuses_requests_under_overload() {
    let app = with_a_slow_bucket().await;
    let ada = app.user("ada@test.example").await;
    let refused = refusal(FLOOD, async || ada.actor.get("/storage/v1/bucket/slow").await).await;
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!((refused.body["code"].as_str(), refused.body["statusCode"].as_str()), (Some("SlowDown"), Some("503")));
    assert_eq!(ada.actor.get("/storage/v1/bucket/slow").await.status, 200);
}

/// Further requests of a flood get copies of the first refusals.
#[actix_web::test]
async fn each_refusal_of_a_flood_is_whole_and_has_the_id_of_its_request() {
    let app = with_a_slow_bucket().await;
    let ada = app.user("ada@test.example").await;
    let ask = async || ada.actor.get("/storage/v1/bucket/slow").await;
    refusal(FLOOD, ask).await;
    let refused = flood(ask).await;
    assert!(refused.len() > 2 * FLOOD, "{}", refused.len());
    for reply in &refused {
        assert_eq!((reply.header("retry-after"), reply.header("access-control-allow-origin")), ("1", "*"));
        assert_eq!(reply.body["code"], "SlowDown", "{}", reply.body);
    }
    let ids: HashSet<&str> = refused.iter().map(|reply| reply.header("x-request-id")).collect();
    assert_eq!(ids.len(), refused.len());
    // Nobody else is refused for it.
    let bob = app.user("bob@test.example").await;
    assert_eq!(bob.actor.get("/storage/v1/bucket/slow").await.status, 200);
}

#[actix_web::test]
async fn in_development_requests_wait_instead() {
    let settings = [("FERROBASE_DB_CONNECTIONS", "19")];
    let app = TestApp::with_settings(&settings).await;
    let slow = "create policy slow on storage.buckets for select to authenticated using (pg_sleep(0.02) is not null); \
                insert into storage.buckets (id, name) values ('slow', 'slow')";
    app.owner.batch_execute(slow).await.expect("a slow policy");
    let ada = app.user("ada@test.example").await;
    let begun = Instant::now();
    let asking = join_all((0..FLOOD).map(|_| async {
        while begun.elapsed() < Duration::from_secs(3) {
            let reply = ada.actor.get("/storage/v1/bucket/slow").await;
            assert_eq!(reply.status, 200, "{}", reply.body);
        }
    }));
    asking.await;
}

/// Regression: one address had at most 64 waiting, and the others were refused.
#[actix_web::test]
async fn a_hundred_users_behind_one_address_can_sign_up_at_once() {
    // Debug builds on a busy machine may take longer than ten seconds for all of them.
    let app = TestApp::with_settings(&[("GOTRUE_API_MAX_REQUEST_DURATION", "120s")]).await;
    let signing_up = join_all((0..100).map(|n| {
        let body = json!({ "email": format!("person-{n}@test.example"), "password": PASSWORD });
        let anon = app.anon();
        async move { anon.post("/auth/v1/signup", body).await.status }
    }));
    assert_eq!(signing_up.await, [200; 100]);
}
