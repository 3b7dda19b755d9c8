//! No request acts as another user, whatever happens concurrently, and none is left half done.

use std::sync::Arc;
use std::time::Duration;

use crate::rest_isolation::fixture::Fixture;

/// Concurrent requests of three roles on few connections, a third of them abandoned: every answer names the role and
/// subject of its own request.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_mixed_roles_never_swap_identities() {
    let fixture = Arc::new(Fixture::start(&[("DB_POOL", "3")]).await);
    let workers: Vec<_> = (0..24)
        .map(|worker| {
            let fixture = fixture.clone();
            tokio::spawn(async move {
                let (actor, role, sub) = match worker % 3 {
                    0 => ("anon".to_owned(), "studio_visitor", None),
                    1 => (format!("member:m{worker}"), "studio_member", Some(format!("m{worker}"))),
                    _ => (format!("keeper:k{worker}"), "studio_keeper", Some(format!("k{worker}"))),
                };
                let mut answered = 0;
                for round in 0..60 {
                    let mut request = fixture.request(&actor, "GET", "/rpc/whoami");
                    let abandoned = (round + worker) % 3 == 0;
                    if abandoned {
                        let nap =
                            fixture.request(&actor, "POST", "/rpc/nap").json(&serde_json::json!({"seconds": 0.02}));
                        request = nap.timeout(Duration::from_millis(round % 20));
                    }
                    match request.send().await {
                        Ok(response) if !abandoned => {
                            let seen: serde_json::Value = response.json().await.expect("json");
                            assert_eq!(seen["role"], role);
                            assert_eq!(seen["claimed"], role);
                            assert_eq!(seen["sub"].as_str().map(str::to_owned), sub);
                            answered += 1;
                        }
                        Ok(_) => {}
                        Err(error) => assert!(abandoned && error.is_timeout(), "{error}"),
                    }
                }
                answered
            })
        })
        .collect();
    let mut answered = 0;
    for worker in workers {
        answered += worker.await.expect("no mix-up");
    }
    assert_eq!(answered, 24 * 40);
    Arc::into_inner(fixture).expect("alone").stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_request_is_cancelled_and_frees_its_slot() {
    let fixture = Fixture::start(&[("DB_POOL", "1")]).await;
    let nap = fixture.request("member:a", "POST", "/rpc/nap").json(&serde_json::json!({"seconds": 30}));
    let gone = nap.timeout(Duration::from_millis(300)).send().await;
    assert!(gone.expect_err("abandoned").is_timeout());
    let request = fixture.request("anon", "GET", "/rpc/add?a=1").timeout(Duration::from_secs(20));
    assert_eq!(fixture.send(request).await.body, "11");
    let mut left = String::new();
    for _ in 0..50 {
        left = fixture.one("select count(*) from pg_stat_activity where datname = current_database() and query like '%nap%' and state <> 'idle' and pid <> pg_backend_pid()").await;
        if left == "0" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(left, "0");
    fixture.stop().await;
}

/// A waiting COMMIT (here on a deferred check) ends with its client: it is all or nothing, and its connection is free
/// again.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_disconnecting_during_commit_leaves_all_or_nothing() {
    let fixture = Fixture::start(&[("DB_POOL", "1")]).await;
    let slow = "create table kept (id int primary key); grant select, insert on kept to studio_visitor; \
                create function wait() returns trigger language plpgsql as \
                $$ begin perform pg_advisory_xact_lock(4714); return null; end $$; \
                create constraint trigger wait after insert on kept deferrable initially deferred \
                for each row execute function wait()";
    fixture.reload_with(slow, "/kept").await;
    let holder = crate::support::cluster::connect(&fixture.database.url).await;
    holder.batch_execute("select pg_advisory_lock(4714)").await.expect("held");
    let post = || fixture.request("anon", "POST", "/kept").json(&serde_json::json!([{ "id": 1 }, { "id": 2 }]));
    let gone = post().timeout(Duration::from_millis(500)).send().await;
    assert!(gone.expect_err("abandoned").is_timeout());
    // The only connection serves others while the check would still be waiting.
    let request = fixture.request("anon", "GET", "/rpc/add?a=1").timeout(Duration::from_secs(20));
    assert_eq!(fixture.send(request).await.body, "11");
    holder.batch_execute("select pg_advisory_unlock(4714)").await.expect("free");
    let left = "select count(*) from pg_stat_activity where datname = current_database() \
                and wait_event_type = 'Lock' and wait_event = 'advisory'";
    for _ in 0..100 {
        if fixture.one(left).await == "0" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(fixture.one(left).await, "0");
    let kept = fixture.one("select count(*) from kept").await;
    let again = fixture.send(post()).await.status;
    assert_eq!((kept.as_str(), again), if kept == "0" { ("0", 201) } else { ("2", 409) });
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_refused_by_a_check_are_rolled_back() {
    let fixture = Fixture::start(&[]).await;
    let rows = serde_json::json!([{"id": 50, "name": "x"}, {"id": 51, "name": "y"}]);
    let single = fixture.request("member:a", "POST", "/clients").json(&rows);
    let reply = fixture.send(single.header("Accept", "application/vnd.pgrst.object+json")).await;
    assert_eq!((reply.status, reply.json()["code"].as_str()), (406, Some("PGRST116")));

    let limited = fixture.request("member:a", "PATCH", "/clients").json(&serde_json::json!({"city": "Nowhere"}));
    let reply = fixture.send(limited.header("Prefer", "handling=strict, max-affected=1")).await;
    assert_eq!((reply.status, reply.json()["code"].as_str()), (400, Some("PGRST124")));

    let put = fixture.request("member:a", "PUT", "/clients?id=eq.60").json(&serde_json::json!({"id": 61, "name": "z"}));
    let reply = fixture.send(put).await;
    assert_eq!((reply.status, reply.json()["code"].as_str()), (400, Some("PGRST115")));

    assert_eq!(fixture.one("select count(*) from clients where id >= 50 or city = 'Nowhere'").await, "0");
    assert_eq!(
        fixture
            .one("select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in%'")
            .await,
        "0"
    );
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_statements_survive_schema_changes() {
    let fixture = Fixture::start(&[]).await;
    let target = "/clients?select=*&id=eq.1";
    for _ in 0..4 {
        assert_eq!(fixture.send(fixture.request("anon", "GET", target)).await.status, 200);
    }
    fixture.one("alter table clients add column since int default 7").await;
    let reply = fixture.send(fixture.request("anon", "GET", target)).await;
    assert_eq!((reply.status, reply.json()[0]["since"].as_i64()), (200, Some(7)));
    fixture.stop().await;
}

/// A reload keeps connections unless new ones would start with other settings; then all are replaced while requests
/// continue.
#[tokio::test(flavor = "multi_thread")]
async fn changed_login_settings_replace_connections_without_refusals() {
    const PIDS: &str = "select coalesce(string_agg(pid::text, ',' order by pid), '') from pg_stat_activity \
                        where datname = current_database() and application_name = 'PostgREST 16.2' and query not ilike 'listen%'";
    const LISTENERS: &str =
        "select count(*) from pg_stat_activity where datname = current_database() and query ilike 'listen%'";
    let fixture = Fixture::start(&[("DB_POOL", "2"), ("DB_POOL_MAX_IDLETIME", "600")]).await;
    // Before it listens, the listener looks like a pool connection.
    while fixture.one(LISTENERS).await != "1" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let ask = || async {
        let replies = (0..8).map(|_| fixture.send(fixture.request("anon", "GET", "/rpc/add?a=1")));
        for reply in futures_util::future::join_all(replies).await {
            assert_eq!((reply.status, reply.body.as_str()), (200, "11"));
        }
    };
    ask().await;
    let before: Vec<String> = fixture.one(PIDS).await.split(',').map(str::to_owned).collect();
    assert!((1..=2).contains(&before.len()), "{before:?}");
    let timeout = || async { fixture.send(fixture.request("anon", "GET", "/rpc/lock_timeout")).await.body };
    fixture
        .one("create function lock_timeout() returns text stable language sql as $$ select current_setting('lock_timeout') $$; notify pgrst")
        .await;
    for _ in 0..200 {
        if timeout().await == "\"0\"" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    ask().await;
    let same = fixture.one(PIDS).await;
    assert!(before.iter().all(|pid| same.split(',').any(|kept| kept == pid)), "{same}");

    let database = &fixture.database.name;
    fixture
        .one(&format!("alter role studio_gate in database {database} set lock_timeout = '4321ms'; notify pgrst"))
        .await;
    let mut after = fixture.one(PIDS).await;
    for _ in 0..200 {
        ask().await;
        after = fixture.one(PIDS).await;
        if !after.split(',').any(|pid| before.iter().any(|old| old == pid)) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!after.is_empty() && !after.split(',').any(|pid| before.iter().any(|old| old == pid)), "{after}");
    assert!(after.split(',').count() <= 2, "{after}");
    assert_eq!(timeout().await, "\"4321ms\"");
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_result_is_complete_valid_json() {
    let fixture = Fixture::start(&[]).await;
    let long = "create table long as select n as id, repeat('x', 50) as text from generate_series(1, 60000) n";
    fixture.reload_with(&format!("{long}; grant select on long to studio_visitor"), "/long?id=eq.1").await;
    let reply = fixture.send(fixture.request("anon", "GET", "/long")).await;
    assert_eq!((reply.status, reply.header("transfer-encoding")), (200, Some("chunked")));
    let rows = reply.json();
    assert_eq!(rows.as_array().map(Vec::len), Some(60000));
    assert_eq!(rows[59999]["id"], 60000);
    fixture.stop().await;
}
