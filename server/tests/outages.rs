//! Connections, statements and answers when a client disconnects or the database hangs.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ferrobase::config::Source;
use ferrobase::db::{self, Pool, PoolOptions};
use ferrobase::rest::live::Live;
use futures_util::join;
use serde_json::json;

use crate::support::cluster::{Database, Template, connect};
use crate::support::valve::{Valve, until};
use crate::support::{Reply, TestApp, send};

fn pool(url: &str, size: usize) -> Pool {
    Pool::new(url, &PoolOptions { size, ..PoolOptions::default() }).expect("a pool")
}

/// The number of running statements in this database, except the asking one.
async fn running(owner: &tokio_postgres::Client, like: &str) -> i64 {
    let sql = "select count(*) from pg_stat_activity where datname = current_database() and state = 'active' \
               and pid <> pg_backend_pid() and query like $1";
    owner.query_one(sql, &[&like]).await.expect("who works").get(0)
}

#[tokio::test]
async fn an_abandoned_statement_is_cancelled_and_its_connection_replaced() {
    let database = Database::new(Template::Empty).await;
    let owner = connect(&database.url).await;
    let pool = pool(&database.url, 1);
    let lease = pool.lease().await.expect("a lease");
    let pid: i32 = lease.query_one("select pg_backend_pid()", &[]).await.expect("its process").get(0);
    let nap = tokio::time::timeout(Duration::from_millis(200), lease.batch_execute("select pg_sleep(60)"));
    assert!(nap.await.is_err());
    assert_eq!(running(&owner, "%pg_sleep%").await, 1);
    drop(lease);
    let lease = pool.lease().await.expect("another");
    let other: i32 = lease.query_one("select pg_backend_pid()", &[]).await.expect("its process").get(0);
    assert_ne!(other, pid);
    until("the sleeper is cancelled", async || running(&owner, "%pg_sleep%").await == 0).await;
}

#[tokio::test]
async fn an_open_transaction_is_rolled_back_and_its_connection_kept() {
    let database = Database::new(Template::Empty).await;
    let pool = pool(&database.url, 1);
    let transaction = pool.as_login().await.expect("a transaction");
    let client = transaction.client().expect("open");
    client.batch_execute("create table left_open (a int); set local application_name = 'mine'").await.expect("made");
    let pid: i32 = client.query_one("select pg_backend_pid()", &[]).await.expect("its process").get(0);
    drop(transaction);
    let lease = pool.lease().await.expect("the same connection");
    let found = lease
        .query_one(
            "select pg_backend_pid(), to_regclass('left_open') is null, current_setting('application_name')",
            &[],
        )
        .await
        .expect("what is left");
    assert_eq!((found.get::<_, i32>(0), found.get::<_, bool>(1), found.get(2)), (pid, true, "ferrobase"));
}

#[tokio::test]
async fn connecting_and_health_checks_time_out() {
    let database = Database::new(Template::Empty).await;
    let valve = Valve::before(&database.url).await;
    let pool = pool(&valve.url(&database.url), 1);
    pool.answers().await.expect("well");
    valve.freeze();
    tokio::time::sleep(Duration::from_millis(600)).await;
    let started = Instant::now();
    let (health, lease) = join!(pool.answers(), pool.lease());
    assert!(health.is_err() && lease.is_err());
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    valve.thaw();
    until("it is well again", async || pool.answers().await.is_ok() && pool.lease().await.is_ok()).await;
}

/// Regression: the check never got beyond the first host, so that health checks failed for ever and every statement after
/// three seconds.
#[tokio::test]
async fn a_silent_first_host_is_no_fault_of_the_second_one() {
    let database = Database::new(Template::Empty).await;
    let valve = Valve::before(&database.url).await;
    valve.freeze();
    let pool = pool(&valve.before_own_host(&database.url), 2);
    until("the health check has found the second host", async || pool.answers().await.is_ok()).await;
    // Connections begin with that host from now on.
    let started = Instant::now();
    let lease = pool.lease().await.expect("a connection");
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    lease.batch_execute("select pg_sleep(7)").await.expect("it may take its time");
}

/// Regression: an idle connection to a former primary that hangs was used, and its statement waited for ever.
#[tokio::test]
async fn a_statement_to_a_host_that_hangs_fails_while_another_host_is_well() {
    let database = Database::new(Template::Empty).await;
    let valve = Valve::before(&database.url).await;
    let pool = pool(&valve.before_own_host(&database.url), 3);
    pool.answers().await.expect("well at the first host");
    let leases = [pool.lease().await.expect("a lease"), pool.lease().await.expect("a lease")];
    drop(leases);
    valve.freeze();
    until("the second host is found", async || {
        tokio::time::sleep(Duration::from_millis(500)).await;
        pool.answers().await.is_ok()
    })
    .await;
    for _ in 0..2 {
        let started = Instant::now();
        let lease = pool.lease().await.expect("an idle connection");
        assert!(lease.batch_execute("select 1").await.is_err(), "it goes to the first host");
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    }
    pool.lease().await.expect("a new connection").batch_execute("select 1").await.expect("an answer");
}

/// Regression: one silence at an address ended all long statements there from then on.
#[tokio::test]
async fn a_long_statement_continues_at_a_host_that_answers_again() {
    let database = Database::new(Template::Empty).await;
    let valve = Valve::before(&database.url).await;
    let pool = pool(&valve.before_own_host(&database.url), 1);
    drop(pool.lease().await.expect("a connection to the first host"));
    valve.freeze();
    until("the second host is found", async || {
        tokio::time::sleep(Duration::from_millis(500)).await;
        pool.answers().await.is_ok()
    })
    .await;
    valve.thaw();
    let lease = pool.lease().await.expect("the idle connection");
    lease.batch_execute("select pg_sleep(7)").await.expect("it may take its time");
}

/// Regression: with few questions, a slow login was thrown away each time.
#[tokio::test]
async fn a_check_whose_login_takes_longer_than_a_caller_waits_succeeds_with_the_next_question() {
    let database = Database::new(Template::Empty).await;
    let valve = Valve::before(&database.url).await;
    valve.slow(Duration::from_millis(300));
    let pool = pool(&valve.url(&database.url), 1);
    assert!(pool.answers().await.is_err(), "the login takes longer");
    tokio::time::sleep(Duration::from_secs(6)).await;
    pool.answers().await.expect("well");
}

/// Regression: each such connection waited for the silent host.
#[tokio::test]
async fn connections_outside_of_pools_try_a_silent_host_last_too() {
    let database = Database::new(Template::Empty).await;
    let valve = Valve::before(&database.url).await;
    valve.freeze();
    let config = valve.before_own_host(&database.url).parse().expect("a URL");
    db::connect_client(&config).await.expect("the second host");
    let started = Instant::now();
    let (client, connection) = db::connect(&config).await.expect("the second host");
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    drop((client, connection));
}

/// Regression: such a statement waited for a quarter of an hour, because the check's new connection is well.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_statement_on_a_half_open_connection_fails_while_new_ones_are_well() {
    let database = Database::new(Template::Empty).await;
    let valve = Valve::before(&database.url).await;
    let pool = pool(&valve.url(&database.url), 1);
    drop(pool.lease().await.expect("a lease"));
    // What was sent so far is acknowledged by then, or the other side would send it again.
    tokio::time::sleep(Duration::from_millis(500)).await;
    valve.lose_packets();
    pool.answers().await.expect("well over a new connection");
    let started = Instant::now();
    let lease = pool.lease().await.expect("the idle connection");
    assert!(lease.batch_execute("select 1").await.is_err());
    let took = started.elapsed();
    assert!((Duration::from_secs(15)..Duration::from_secs(40)).contains(&took), "{took:?}");
    drop(lease);
    pool.lease().await.expect("a new connection").batch_execute("select 1").await.expect("an answer");
}

/// Regression: what listens stayed on a former primary that hangs while its kernel answers TCP.
#[tokio::test]
async fn a_connection_that_only_listens_leaves_a_host_that_hangs() {
    let database = Database::new(Template::Empty).await;
    let owner = connect(&database.url).await;
    let valve = Valve::before(&database.url).await;
    let source = Source::from_pairs([
        ("PGRST_DB_URI", valve.before_own_host(&database.url).as_str()),
        ("PGRST_DB_SCHEMAS", "public"),
        ("PGRST_DB_ANON_ROLE", "anon"),
        ("PGRST_LOG_LEVEL", "crit"),
    ]);
    let direct = pool(&database.url, 1);
    let live = Live::new(source, direct).expect("settings");
    live.start().await.expect("configuration");
    let loads = || live.counters.loads.load(Ordering::Relaxed);
    let listening =
        "select count(*) from pg_stat_activity where datname = current_database() and query like 'listen %'";
    until("it listens", async || owner.query_one(listening, &[]).await.expect("a count").get::<_, i64>(0) == 1).await;
    valve.freeze();
    let before = loads();
    owner.batch_execute("notify pgrst").await.expect("a notification");
    until("the reload is made up for at the other host", async || loads() > before).await;
    let before = loads();
    owner.batch_execute("notify pgrst").await.expect("a notification");
    until("the next one is heard", async || loads() > before).await;
}

#[tokio::test]
async fn a_long_statement_continues_while_the_database_answers_others() {
    let database = Database::new(Template::Empty).await;
    let pool = pool(&database.url, 1);
    let lease = pool.lease().await.expect("a lease");
    lease.batch_execute("select pg_sleep(7)").await.expect("it may take its time");
}

/// Requests that read through each API, and the health check.
async fn ask(app: &TestApp, token: &str) -> [Reply; 4] {
    let get = |path: &str| send(app.anon().request(reqwest::Method::GET, path).bearer_auth(token));
    let list = app.anon().request(reqwest::Method::POST, "/storage/v1/object/list/private");
    let list = send(list.bearer_auth(token).json(&json!({ "prefix": "a" })));
    let (rest, auth, storage, health) =
        join!(get("/rest/v1/nonprofits?select=id&limit=1"), get("/auth/v1/user"), list, get("/health"));
    [rest, auth, storage, health]
}

#[actix_web::test]
async fn every_api_reports_a_hanging_database_in_time() {
    let (app, valve) = TestApp::behind_valve(&[]).await;
    let user = app.user("ada@test.example").await;
    let token = user.actor.token.clone().expect("a token");
    assert_eq!(ask(&app, &token).await.map(|reply| reply.status), [200; 4]);
    valve.freeze();
    // A health result is cached for half a second.
    tokio::time::sleep(Duration::from_millis(600)).await;
    // Over open connections, then over new ones.
    for _ in 0..2 {
        let started = Instant::now();
        let replies = ask(&app, &token).await;
        assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
        assert_eq!(replies.each_ref().map(|reply| reply.status), [503; 4], "{replies:?}");
        for reply in &replies[..3] {
            assert!(!reply.header("retry-after").is_empty(), "{reply:?}");
        }
        let [_, auth, storage, _] = replies;
        assert_eq!((&auth.body["code"], &auth.body["error_code"]), (&json!(503), &json!("unexpected_failure")));
        assert_eq!((&storage.body["statusCode"], &storage.body["code"]), (&json!("503"), &json!("InternalError")));
    }
    valve.thaw();
    until("all is well again", async || ask(&app, &token).await.iter().all(|reply| reply.status == 200)).await;
}
