//! Files that run while requests lock the same tables.

use std::time::Duration;

use ferrobase::migrate;

use super::{Fixture, wait_for};
use crate::support::cluster::connect;

/// Longer than a statement of a file waits for a lock.
const LONG: Duration = Duration::from_millis(700);

/// A table that somebody waits for, or holds in the given mode.
fn waited_for(table: &str) -> String {
    format!("select exists (select from pg_locks where relation = '{table}'::regclass and not granted)")
}

fn held(table: &str, mode: &str) -> String {
    format!("select exists (select from pg_locks where relation = '{table}'::regclass and granted and mode = '{mode}')")
}

/// PostgreSQL ended the request, which had waited for longer than the file.
#[tokio::test]
async fn a_request_that_locks_in_another_order_is_not_the_victim() {
    let db = Fixture::new().await;
    let source = db.write("1_tables.sql", "create table a (n int); create table b (n int);");
    migrate::dir(&db.url, &source).await.expect("tables");
    // It holds `a` and goes on to `b` once the request, which holds `b`, waits for `a`.
    db.write(
        "2_columns.sql",
        "alter table a add more int;
         do $$ begin
           while not exists (select from pg_locks where relation = 'a'::regclass and not granted)
             and exists (select from pg_locks where relation = 'b'::regclass and granted) loop
             perform pg_sleep(0.01);
           end loop;
         end $$;
         alter table b add more int;",
    );
    let request = connect(&db.admin).await;
    request.batch_execute("set deadlock_timeout = '1s'; begin; insert into b values (1)").await.expect("b is locked");
    let (migrated, ()) = tokio::join!(migrate::dir(&db.url, &source), async {
        wait_for(&db, &held("a", "AccessExclusiveLock")).await;
        request.batch_execute("insert into a values (1); commit").await.expect("the request is served");
    });
    assert_eq!(migrated.expect("migrated").files, ["2_columns.sql"]);
    assert_eq!(db.one("select count(*) from a, b where a.more is null and b.more is null").await, "1");
    db.stop().await;
}

/// Requests queued behind the file, which waited for a dump.
#[tokio::test]
async fn a_file_that_waits_for_a_long_transaction_keeps_no_request_waiting() {
    let db = Fixture::new().await;
    let source = db.write("1_table.sql", "create table a (n int);");
    migrate::dir(&db.url, &source).await.expect("a table");
    db.write("2_column.sql", "alter table a add more int;");
    let (dump, request) = (connect(&db.admin).await, connect(&db.admin).await);
    dump.batch_execute("begin; lock table a in access share mode").await.expect("a lock");
    request.batch_execute("set lock_timeout = '10s'").await.expect("a limit");
    let (migrated, ()) = tokio::join!(migrate::dir(&db.url, &source), async {
        for _ in 0..3 {
            wait_for(&db, &waited_for("a")).await;
            request.batch_execute("select from a").await.expect("the request is served");
        }
        dump.batch_execute("commit").await.expect("the dump ends");
    });
    assert_eq!(migrated.expect("migrated").files, ["2_column.sql"]);
    db.stop().await;
}

#[tokio::test]
async fn what_is_not_repeated_waits_for_as_long_as_it_takes() {
    let db = Fixture::new().await;
    let source = db.write("1_table.sql", "create table a (n int);");
    migrate::dir(&db.url, &source).await.expect("a table");
    // The index is built outside of a transaction; what follows would find the row a second time.
    db.write(
        "2_index.sql",
        "insert into a values (1); create index concurrently i on a (n); alter table a add more int;",
    );
    let (other, reader) = (connect(&db.admin).await, connect(&db.admin).await);
    other.batch_execute("begin; insert into a values (2)").await.expect("a lock");
    // It is in the way of the last statement alone, and is there before the build goes on.
    reader.batch_execute("begin; lock table a in access share mode").await.expect("another lock");
    let building = "select exists (select from pg_stat_activity where datname = current_database()
                    and query like 'create index concurrently%' and wait_event_type = 'Lock')";
    let (migrated, ()) = tokio::join!(migrate::dir(&db.url, &source), async {
        wait_for(&db, building).await;
        tokio::time::sleep(LONG).await;
        other.batch_execute("commit").await.expect("the build goes on");
        wait_for(&db, &waited_for("a")).await;
        tokio::time::sleep(LONG).await;
        reader.batch_execute("commit").await.expect("the end");
    });
    assert_eq!(migrated.expect("migrated").files, ["2_index.sql"]);
    assert_eq!(db.one("select string_agg(n::text, ' ' order by n) from a").await, "1 2");
    db.stop().await;
}
