//! Stored broadcasts: sent without a partition, replayed to returning clients, none lost in between.

use serde_json::json;

use super::client::{Client, Got};
use crate::support::TestApp;
use crate::support::valve::until;

async fn run(app: &TestApp, sql: &str) {
    app.owner.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}

fn number(got: &Got) -> i64 {
    got.payload["payload"]["n"].as_i64().expect("a number")
}

/// This many broadcasts of the channel.
async fn heard(client: &mut Client, count: usize) -> Vec<Got> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(client.wait_for_event("broadcast").await);
    }
    all
}

#[actix_web::test]
async fn a_message_without_a_partition_is_sent() {
    let app = TestApp::logical(&[]).await;
    let mut client = Client::with_key(&app, &app.service_key).await;
    client.join("room", json!({ "private": true, "broadcast": { "replication_ready": true } })).await;
    client.wait_for_event("system").await;
    run(
        &app,
        "do $$ declare part text; begin
           for part in select c.oid::regclass from pg_inherits i join pg_class c on c.oid = i.inhrelid
             where i.inhparent = 'realtime.messages'::regclass
           loop execute 'drop table ' || part; end loop;
         end $$",
    )
    .await;
    // As a role that may only send.
    run(
        &app,
        "create policy sends on realtime.messages for insert to authenticated with check (true);
         grant usage on schema realtime to authenticated;
         set role authenticated; select realtime.send('{\"n\": 1}', 'e', 'room'); reset role",
    )
    .await;
    assert_eq!(number(&client.wait_for_event("broadcast").await), 1);
}

/// The server's daily work waited for a dump's lock, and everything that uses the table waited behind it.
#[actix_web::test]
async fn a_dump_does_not_stop_messages_when_partitions_are_due() {
    let app = TestApp::start().await;
    let old = "create table if not exists realtime.messages_2020_01_01 partition of realtime.messages
               for values from ('2020-01-01') to ('2020-01-02');
               alter table realtime.messages_2020_01_01 owner to supabase_realtime_admin";
    let dump = crate::support::cluster::connect(&app.owner_url).await;
    let is_there = "select to_regclass('realtime.messages_2020_01_01') is not null";
    let is_there = async || app.owner.query_one(is_there, &[]).await.expect("a row").get::<_, bool>(0);
    // The server does the same at its start.
    until("an old partition is read", async || {
        run(&app, old).await;
        dump.batch_execute("commit; begin; select count(*) from realtime.messages").await.expect("read");
        is_there().await
    })
    .await;
    // The lock that the function wants is given up before others wait long for it.
    run(&app, "select realtime.keep_partitions()").await;
    assert!(is_there().await);
    dump.batch_execute("commit").await.expect("ended");
    run(&app, "select realtime.keep_partitions()").await;
    assert!(!is_there().await);
}

#[actix_web::test]
async fn only_objects_are_sent_and_only_changes_of_rows() {
    let app = TestApp::start().await;
    run(
        &app,
        "select realtime.send(payload, 'e', 'odd') from (values ('[1]'::jsonb), ('\"x\"'), ('{}')) sent (payload)",
    )
    .await;
    let sent = app.owner.query("select jsonb_typeof(payload) from realtime.messages where topic = 'odd'", &[]).await;
    let kinds: Vec<String> = sent.expect("rows").iter().map(|row| row.get(0)).collect();
    assert_eq!(kinds, ["object"]);
    for (operation, level, reason) in [
        ("'TRUNCATE'", "ROW", "Failed to process the row: Unexpected operation type: TRUNCATE"),
        ("null", "ROW", "Failed to process the row: Unexpected operation type: <NULL>"),
        (
            "'INSERT'",
            "STATEMENT",
            "Failed to process the row: function can only be triggered for each row, not for each statement",
        ),
    ] {
        let sql = format!(
            "select realtime.broadcast_changes('t', 'e', {operation}, 't', 'public', null::record, null::record, '{level}')"
        );
        let refused = app.owner.batch_execute(&sql).await.expect_err("refused");
        assert_eq!(refused.as_db_error().map(tokio_postgres::error::DbError::message), Some(reason));
    }
}

#[actix_web::test]
async fn messages_sent_while_no_server_runs_are_replayed() {
    let app = TestApp::logical(&[]).await;
    let mut client = Client::with_key(&app, &app.service_key).await;
    client.join("room", json!({ "private": true, "broadcast": { "replication_ready": true } })).await;
    client.wait_for_event("system").await;
    run(&app, "select realtime.send('{\"n\": 0}', 'e', 'room')").await;
    let last = client.wait_for_event("broadcast").await;
    assert_eq!(number(&last), 0);
    app.realtime.stop();
    assert_eq!(client.wait_for_close().await, Some(1012));
    // More than a replay by time returns. Other topics and public messages are not included.
    run(
        &app,
        "do $$ begin for n in 1 .. 60 loop
           perform realtime.send(jsonb_build_object('n', n), 'e', 'room');
         end loop; end $$;
         select realtime.send('{\"n\": -1}', 'e', 'other'), realtime.send('{\"n\": -1}', 'e', 'room', false)",
    )
    .await;
    let next = app.another(&[]).await;
    let mut client = Client::with_key(&next, &next.service_key).await;
    let after = |id: &serde_json::Value| json!({ "private": true, "broadcast": { "replay": { "after": id } } });
    client.join("room", after(&last.payload["meta"]["id"])).await;
    // The server followed nothing before this join; later commits are delivered.
    run(&app, "select realtime.send('{\"n\": 61}', 'e', 'room')").await;
    let told = heard(&mut client, 60).await;
    let mut numbers: Vec<i64> = told.iter().map(number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=60).collect::<Vec<_>>());
    assert!(told.iter().all(|got| got.payload["meta"]["replayed"] == true));
    let live = client.wait_for_event("broadcast").await;
    assert_eq!((number(&live), &live.payload["meta"]["replayed"]), (61, &serde_json::Value::Null));
    assert!(client.rest().await.is_empty(), "none twice");
    // An incomplete replay is reported.
    let missing = "Messages are missing from the replay: read them from the database";
    client.join("room", after(&json!("00000000-0000-4000-8000-000000000000"))).await;
    assert_eq!(client.wait_for_event("system").await.payload["message"], missing, "kept no more");
    run(
        &app,
        "insert into realtime.messages (topic, extension, payload, event, private, inserted_at)
         select 'room', 'broadcast', jsonb_build_object('n', n), 'many', true, now() at time zone 'utc'
         from generate_series(1, 1200) n",
    )
    .await;
    heard(&mut client, 1200).await;
    let (mut late, mut count) = (Client::with_key(&next, &next.service_key).await, 0);
    late.join("room", after(&live.payload["meta"]["id"])).await;
    assert_eq!(late.wait_for_event("system").await.payload["message"], missing, "too many");
    for got in late.rest().await {
        count += usize::from(got.event == "broadcast");
    }
    assert_eq!(count, 999, "the one it has is one of the thousand");
    for bad in [json!("x"), json!(7)] {
        let (_, answer) = late.try_join("room", after(&bad), None).await;
        assert_eq!(answer["response"]["reason"], "UnableToReplayMessages: Replay params are not valid");
    }
}

#[actix_web::test]
async fn a_message_between_replay_and_join_is_delivered_once() {
    let app = TestApp::logical(&[]).await;
    // A filter on this column waits for the lock.
    run(
        &app,
        "create function public.gate(value text) returns boolean language plpgsql as
           $$ begin perform pg_advisory_xact_lock_shared(4711); return true; end $$;
         create domain public.gated as text check (public.gate(value));
         create table public.slow (id int primary key, word public.gated);
         alter publication supabase_realtime add table public.slow;",
    )
    .await;
    let mut other = Client::with_key(&app, &app.service_key).await;
    other.join("room", json!({ "private": true, "broadcast": { "replication_ready": true } })).await;
    other.wait_for_event("system").await;
    run(&app, "select pg_advisory_lock(4711)").await;
    let mut client = Client::with_key(&app, &app.service_key).await;
    let payload = json!({ "config": {
        "private": true, "broadcast": { "replay": { "since": 0 } },
        "postgres_changes": [{ "event": "*", "schema": "public", "table": "slow", "filter": "word=eq.x" }],
    } });
    let reference = client.push("9", "realtime:room", "phx_join", payload).await;
    until("the join waits", async || {
        let waits = "select from pg_locks where locktype = 'advisory' and objid = 4711 and not granted";
        !app.owner.query(waits, &[]).await.expect("locks").is_empty()
    })
    .await;
    run(&app, "select realtime.send('{\"n\": 1}', 'e', 'room')").await;
    assert_eq!(number(&other.wait_for_event("broadcast").await), 1, "it has been delivered");
    run(&app, "select pg_advisory_unlock(4711)").await;
    assert_eq!(client.reply(&reference).await["status"], "ok");
    run(&app, "select realtime.send('{\"n\": 2}', 'e', 'room')").await;
    let told: Vec<_> = heard(&mut client, 2).await.iter().map(number).collect();
    assert_eq!(told, [1, 2]);
    assert!(client.rest().await.iter().all(|got| got.event != "broadcast"));
}
