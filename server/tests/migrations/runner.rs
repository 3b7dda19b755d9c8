//! The runner: order, records, errors with their position, concurrency, and seeds.

use ferrobase::migrate::{self, Seeded, Source};

use super::Fixture;

#[tokio::test]
async fn migrations_run_once_in_name_order_and_are_recorded_like_the_clis() {
    let db = Fixture::new().await;
    migrate::platform(&db.admin).await.expect("platform");
    db.write("20240102000000_fill.sql", "insert into t values (1); insert into t values (2);");
    let source = db.write("20240101000000_make.sql", "create table t (n int); -- a comment;\n");
    let applied = migrate::dir(&db.url, &source).await.expect("migrate");
    assert_eq!(applied.files, ["20240101000000_make.sql", "20240102000000_fill.sql"]);
    assert_eq!(
        db.one(
            "select string_agg(version || ' ' || name || ' ' || cardinality(statements), '; ' order by version)
                from supabase_migrations.schema_migrations"
        )
        .await,
        "20240101000000 make 1; 20240102000000 fill 2"
    );
    let again = migrate::dir(&db.url, &source).await.expect("again");
    assert_eq!((again.files.len(), again.unchanged), (0, 2));
    assert_eq!(db.one("select count(*) from t").await, "2");
    db.stop().await;
}

/// Regression: the lock of an instance whose machine had died stayed for hours, because the reset before each file undid this.
#[tokio::test]
async fn postgresql_notices_soon_that_the_machine_of_the_instance_with_the_lock_has_died() {
    let db = Fixture::new().await;
    db.write("1_a.sql", "create table a ()");
    let settings =
        "create table told as select string_agg(setting, ' ' order by name) from pg_settings where name like 'tcp%'";
    let source = db.write("2_b.sql", settings);
    migrate::dir(&db.url, &source).await.expect("migrate");
    assert_eq!(db.one("select * from told").await, "3 10 5 20000");
    db.stop().await;
}

#[tokio::test]
async fn a_supabase_project_is_found_by_its_root() {
    let db = Fixture::new().await;
    let project = db.root.join("project");
    std::fs::create_dir_all(project.join("supabase/migrations")).expect("folders");
    std::fs::write(project.join("supabase/migrations/1_a.sql"), "create table a ()").expect("file");
    let applied = migrate::dir(&db.url, &Source::Folder(project)).await.expect("migrate");
    assert_eq!(applied.files, ["1_a.sql"]);
    db.stop().await;
}

#[tokio::test]
async fn an_edited_migration_is_refused_and_nothing_new_is_applied() {
    let db = Fixture::new().await;
    let source = db.write("1_a.sql", "create table a ()");
    migrate::dir(&db.url, &source).await.expect("migrate");
    db.write("1_a.sql", "create table a (n int)");
    db.write("2_b.sql", "create table b ()");
    let error = migrate::dir(&db.url, &source).await.expect_err("edited").to_string();
    assert!(error.starts_with("1_a.sql was changed after it was applied on 20") && !error.contains('\n'), "{error}");
    assert_eq!(db.one("select to_regclass('b') is null").await, "t");
    db.stop().await;
}

#[tokio::test]
async fn a_failing_file_is_rolled_back_and_reported_with_its_line() {
    let db = Fixture::new().await;
    let source = db.write("1_bad.sql", "create table half ();\n\n-- é\ninsert into missing values (1);\n");
    let error = migrate::dir(&db.url, &source).await.expect_err("bad").to_string();
    assert_eq!(
        error,
        "1_bad.sql:4: relation \"missing\" does not exist (42P01), at: insert into missing values (1) (nothing of the file \
         was kept)"
    );
    assert_eq!(db.one("select to_regclass('half') is null").await, "t");
    let fixed = db.write("1_bad.sql", "create table half ();");
    assert_eq!(migrate::dir(&db.url, &fixed).await.expect("fixed").files, ["1_bad.sql"]);
    db.stop().await;
}

/// Regression: a failure without a position was reported in line 1, without the applied files.
#[tokio::test]
async fn a_failure_reports_its_statement_and_the_applied_files() {
    let db = Fixture::new().await;
    db.write("1_a.sql", "create table a (n int check (n > 0));");
    let source =
        db.write("2_b.sql", "create table b ();\n\n-- too small\ninsert into a\nvalues (0);\ncreate table c ();");
    let error = migrate::dir(&db.url, &source).await.expect_err("refused").to_string();
    assert!(error.starts_with("2_b.sql:4: new row for relation \"a\" violates check constraint"), "{error}");
    let end =
        ", at: insert into a values (0) (nothing of the file was kept); applied before it: 1 file(s), the last 1_a.sql";
    assert!(error.ends_with(end), "{error}");
    assert_eq!(db.one("select to_regclass('b') is null and to_regclass('a') is not null").await, "t");
    // Changes that a file commits before its error stay, and the error says so.
    let source = db.write("2_b.sql", "create table b (); commit; insert into a values (0);");
    let error = migrate::dir(&db.url, &source).await.expect_err("refused").to_string();
    assert!(error.contains("(what the file had committed before it stays)"), "{error}");
    assert_eq!(db.one("select to_regclass('b') is not null").await, "t");
    db.stop().await;
}

#[tokio::test]
async fn copy_data_is_loaded_and_event_triggers_are_created_by_the_platform() {
    let db = Fixture::with_platform().await;
    db.write("1_t.sql", "create table t (a text);\nCOPY public.t (a) FROM stdin;\none;two\n\\N\n\\.\n");
    let source = db.write("2_e.sql", "
        create function on_ddl() returns event_trigger language plpgsql as $$ begin insert into public.t values ('ddl'); end $$;
        create event trigger watching on ddl_command_end when tag in ('CREATE TABLE') execute function on_ddl();
        create table other ();
        drop event trigger if exists watching;
        drop event trigger if exists never_there;");
    migrate::dir(&db.url, &source).await.expect("migrate");
    assert_eq!(db.one("select string_agg(coalesce(a, 'null'), ' ' order by a) from t").await, "ddl one;two null");
    db.stop().await;
}

#[tokio::test]
async fn files_that_cannot_run_in_our_transaction_still_run() {
    let db = Fixture::new().await;
    db.write("1_t.sql", "create table t (n int);");
    db.write("2_i.sql", "set search_path = ''; create index concurrently i on public.t (n); vacuum public.t;");
    let source = db.write("3_own.sql", "begin; insert into t values (1); commit; set role pg_monitor;");
    migrate::dir(&db.url, &source).await.expect("migrate");
    assert_eq!(db.one("select count(*) from supabase_migrations.schema_migrations").await, "3");
    assert_eq!(db.one("select indisvalid from pg_index where indexrelid = 'i'::regclass").await, "t");
    assert_eq!(db.one("select n from t").await, "1");
    db.stop().await;
}

/// The disk is waited for once, after the last file; a failing file ends with the statement that failed, whatever follows it.
#[tokio::test]
async fn files_are_loaded_without_waiting_for_each_commit_and_answer() {
    let db = Fixture::new().await;
    // The cluster of the tests never waits.
    db.one(
        "do $$ begin execute format('alter database %I set synchronous_commit = local', current_database()); end $$",
    )
    .await;
    let note = "insert into t select current_setting('synchronous_commit');";
    db.write("1_t.sql", &format!("create table t (s text); {note}"));
    db.write("2_t.sql", note);
    let source = db.write("3_t.sql", note);
    migrate::dir(&db.url, &source).await.expect("migrate");
    assert_eq!(db.one("select string_agg(s, ' ' order by ctid) from t").await, "off off local");
    let rows: String = (0..100).map(|n| format!("insert into t values ('{n}');\n")).collect();
    db.write("4_t.sql", &format!("{rows}savepoint a;\nselect 1 / 0;\nselect 2;\nrollback to a;\ncommit;\n"));
    let error = migrate::dir(&db.url, &source).await.expect_err("a failure").to_string();
    assert!(
        error.starts_with("4_t.sql:102: division by zero") && error.contains("nothing of the file was kept"),
        "{error}"
    );
    assert_eq!(db.one("select count(*) from t").await, "3");
    db.stop().await;
}

#[tokio::test]
async fn two_concurrent_instances_apply_each_file_once() {
    let db = Fixture::in_a_new_cluster().await;
    db.write("1_t.sql", "create table t (n int);");
    let source = db.write("2_row.sql", "select pg_sleep(0.3); insert into t values (1);");
    let (a, b) = tokio::join!(
        async {
            migrate::platform(&db.admin).await?;
            migrate::dir(&db.url, &source).await
        },
        async {
            migrate::platform(&db.admin).await?;
            migrate::dir(&db.url, &source).await
        },
    );
    let (a, b) = (a.expect("first"), b.expect("second"));
    assert_eq!(a.files.len() + b.files.len(), 2, "{a:?} {b:?}");
    assert_eq!(db.one("select count(*) from t").await, "1");
    db.stop().await;
}

/// Regression: the waiting instance held a snapshot that the other's index build waited for, which was a deadlock.
#[tokio::test]
async fn a_waiting_instance_does_not_block_a_concurrent_index_build() {
    let db = Fixture::new().await;
    migrate::platform(&db.admin).await.expect("platform");
    let source =
        db.write("1_t.sql", "create table t (n int); select pg_sleep(0.5); create index concurrently i on t (n);");
    let (a, b) = tokio::join!(migrate::dir(&db.url, &source), migrate::dir(&db.url, &source));
    assert_eq!(a.expect("one").files.len() + b.expect("the other").files.len(), 1);
    assert_eq!(db.one("select indisvalid from pg_index where indexrelid = 'i'::regclass").await, "t");
    db.stop().await;
}

#[tokio::test]
async fn a_deferred_constraint_failure_is_reported_with_its_file() {
    let db = Fixture::new().await;
    let source = db.write(
        "1_t.sql",
        "create table t (n int primary key deferrable initially deferred);\ninsert into t values (1), (1);\n",
    );
    let error = migrate::dir(&db.url, &source).await.expect_err("refused").to_string();
    assert!(error.starts_with("1_t.sql:3: duplicate key value"), "{error}");
    assert_eq!(db.one("select to_regclass('t') is null").await, "t");
    db.stop().await;
}

#[tokio::test]
async fn a_seed_is_loaded_once_and_refused_beside_real_accounts() {
    let db = Fixture::new().await;
    migrate::platform(&db.admin).await.expect("platform");
    db.one("set role supabase_auth_admin; create table auth.users (id uuid primary key, email text, phone text)").await;
    let insert = "insert into auth.users values ('00000000-0000-0000-0000-00000000000%', 'demo%@x.example') on conflict do nothing;";
    let source = db.write("1_users.sql", &insert.replace('%', "1"));
    assert!(!migrate::has_demo_accounts(&db.url).await.expect("look"));
    assert_eq!(migrate::seed(&db.url, &source).await.expect("seed"), Seeded::Loaded(vec!["1_users.sql".to_owned()]));
    assert!(migrate::has_demo_accounts(&db.url).await.expect("look"));
    assert_eq!(migrate::seed(&db.url, &source).await.expect("again"), Seeded::AlreadyLoaded);
    // A newer seed is accepted while only demo accounts exist …
    db.write("2_more.sql", &insert.replace('%', "2"));
    assert!(matches!(migrate::seed(&db.url, &source).await.expect("newer"), Seeded::Loaded(files) if files.len() == 2));
    // … but not beside a real user's account.
    db.one("insert into auth.users values (gen_random_uuid(), 'ada@example.org')").await;
    assert_eq!(migrate::seed(&db.url, &source).await.expect("unchanged"), Seeded::AlreadyLoaded);
    db.write("3_late.sql", &insert.replace('%', "3"));
    let error = migrate::seed(&db.url, &source).await.expect_err("refused").to_string();
    assert_eq!(error, "seeding is refused: the database has 1 user(s) that no seed created (such as ada@example.org)");
    assert_eq!(db.one("select count(*) from auth.users").await, "3");
    db.stop().await;
}
