//! The migrator against a real database: the platform's SQL, a project's migrations, demo data.

#![allow(clippy::expect_used)]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use ferrobase::embedded_pg::{EmbeddedOptions, EmbeddedPostgres};
use ferrobase::migrate::{self, GivenUrls, Seeded, Source};
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// A PostgreSQL of its own for one test, and a folder for its migrations.
struct Fixture {
    postgres: Option<EmbeddedPostgres>,
    root: PathBuf,
    url: String,
}

static COUNTER: AtomicU32 = AtomicU32::new(0);

impl Fixture {
    async fn new() -> Self {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("ferrobase-migrate-{}-{number}", std::process::id()));
        std::fs::create_dir_all(root.join("sql")).expect("a temporary directory");
        let options = EmbeddedOptions {
            data_root: root.clone(),
            port: 0,
            settings: vec![("fsync".to_owned(), "off".to_owned())],
            ..EmbeddedOptions::default()
        };
        let postgres = EmbeddedPostgres::start(&options).await.expect("PostgreSQL");
        let url = postgres.url.clone();
        Self { postgres: Some(postgres), root, url }
    }

    fn write(&self, name: &str, sql: &str) -> Source {
        std::fs::write(self.root.join("sql").join(name), sql).expect("a migration");
        Source::Folder(self.root.join("sql"))
    }

    async fn one(&self, sql: &str) -> String {
        query(&self.url, sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"))
    }

    async fn stop(mut self) {
        if let Some(postgres) = self.postgres.take() {
            postgres.stop().await;
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

async fn query(url: &str, sql: &str) -> Result<String, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    for message in client.simple_query(sql).await? {
        if let SimpleQueryMessage::Row(row) = message {
            return Ok(row.get(0).unwrap_or("").to_owned());
        }
    }
    Ok(String::new())
}

#[tokio::test]
async fn the_platform_has_supabases_roles_and_runs_again_without_effect() {
    let db = Fixture::new().await;
    let first = migrate::platform(&db.url).await.expect("first run");
    assert!(!first.files.is_empty() && first.unchanged == 0, "{first:?}");
    let second = migrate::platform(&db.url).await.expect("second run");
    assert_eq!((second.files.len(), second.unchanged), (0, first.files.len()));

    for (role, attributes) in [
        ("anon", "login=f inherit=t bypassrls=f super=f createrole=f"),
        ("authenticated", "login=f inherit=t bypassrls=f super=f createrole=f"),
        ("service_role", "login=f inherit=t bypassrls=t super=f createrole=f"),
        ("authenticator", "login=t inherit=f bypassrls=f super=f createrole=f"),
        ("supabase_auth_admin", "login=t inherit=f bypassrls=f super=f createrole=t"),
        ("supabase_storage_admin", "login=t inherit=f bypassrls=f super=f createrole=t"),
    ] {
        let sql = format!(
            "select format('login=%s inherit=%s bypassrls=%s super=%s createrole=%s', rolcanlogin, rolinherit,
                           rolbypassrls, rolsuper, rolcreaterole) from pg_roles where rolname = '{role}'"
        );
        assert_eq!(db.one(&sql).await, attributes, "{role}");
    }
    for (sql, expected) in [
        ("select nspowner::regrole from pg_namespace where nspname = 'auth'", "supabase_auth_admin"),
        ("select nspowner::regrole from pg_namespace where nspname = 'storage'", "supabase_storage_admin"),
        ("select has_database_privilege('supabase_auth_admin', current_database(), 'create')", "t"),
        ("select has_schema_privilege('supabase_auth_admin', 'public', 'create')", "f"),
        ("select setconfig::text from pg_db_role_setting where setrole = 'anon'::regrole", "{statement_timeout=3s}"),
        ("select string_agg(rolname, ',' order by rolname) from pg_roles where pg_has_role('authenticator', oid, 'member')
          and rolname <> 'authenticator'", "anon,authenticated,service_role"),
        ("select extnamespace::regnamespace from pg_extension where extname = 'pgcrypto'", "extensions"),
        ("select count(*) from pg_publication where pubname = 'supabase_realtime'", "1"),
    ] {
        assert_eq!(db.one(sql).await, expected, "{sql}");
    }
    db.stop().await;
}

#[tokio::test]
async fn new_tables_in_public_are_open_to_the_api_roles_and_policies_decide() {
    let db = Fixture::new().await;
    migrate::platform(&db.url).await.expect("platform");
    db.one("create table notes (id int); alter table notes enable row level security; insert into notes values (1)")
        .await;
    assert_eq!(db.one("set role anon; select count(*) from notes").await, "0");
    assert_eq!(db.one("set role service_role; select count(*) from notes").await, "1");
    db.stop().await;
}

#[tokio::test]
async fn the_servers_roles_log_in_with_passwords_nobody_stored() {
    let db = Fixture::new().await;
    let urls = migrate::prepare(&db.url, "a secret", &GivenUrls::default()).await.expect("prepare");
    assert_eq!(migrate::prepare(&db.url, "a secret", &GivenUrls::default()).await.expect("again"), urls);
    for (url, user) in [
        (&urls.rest_url, "authenticator"),
        (&urls.auth_url, "supabase_auth_admin"),
        (&urls.service_url, "ferrobase_admin"),
    ] {
        assert_eq!(query(url, "select current_user").await.expect("login"), user);
    }
    // The auth server may create in its schema and nothing in public; the outbox login sees only the outbox.
    query(&urls.auth_url, "create table auth.t ()").await.expect("its own schema");
    assert!(query(&urls.auth_url, "create table public.t ()").await.is_err());
    query(&urls.service_url, "select count(*) from ferrobase.outbox").await.expect("its own table");
    assert!(query(&urls.service_url, "select count(*) from auth.t").await.is_err());
    db.stop().await;
}

#[tokio::test]
async fn migrations_run_once_in_name_order_and_are_recorded_as_the_cli_does() {
    let db = Fixture::new().await;
    migrate::platform(&db.url).await.expect("platform");
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

#[tokio::test]
async fn a_project_laid_out_as_supabase_does_is_found_by_its_root() {
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
async fn a_failing_file_names_its_line_and_leaves_no_trace() {
    let db = Fixture::new().await;
    let source = db.write("1_bad.sql", "create table half ();\n\n-- é\ninsert into missing values (1);\n");
    let error = migrate::dir(&db.url, &source).await.expect_err("bad").to_string();
    assert_eq!(error, "1_bad.sql:4: relation \"missing\" does not exist (42P01)");
    assert_eq!(db.one("select to_regclass('half') is null").await, "t");
    let fixed = db.write("1_bad.sql", "create table half ();");
    assert_eq!(migrate::dir(&db.url, &fixed).await.expect("fixed").files, ["1_bad.sql"]);
    db.stop().await;
}

#[tokio::test]
async fn files_that_cannot_or_will_not_run_in_our_transaction_still_run() {
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

#[tokio::test]
async fn two_instances_at_once_apply_each_file_once() {
    let db = Fixture::new().await;
    db.write("1_t.sql", "create table t (n int);");
    let source = db.write("2_row.sql", "select pg_sleep(0.3); insert into t values (1);");
    let (a, b) = tokio::join!(
        async {
            migrate::platform(&db.url).await?;
            migrate::dir(&db.url, &source).await
        },
        async {
            migrate::platform(&db.url).await?;
            migrate::dir(&db.url, &source).await
        },
    );
    let (a, b) = (a.expect("first"), b.expect("second"));
    assert_eq!(a.files.len() + b.files.len(), 2, "{a:?} {b:?}");
    assert_eq!(db.one("select count(*) from t").await, "1");
    db.stop().await;
}

/// The waiting instance held a snapshot, for whose end the index of the other waited: a deadlock of the two.
#[tokio::test]
async fn an_instance_that_waits_does_not_keep_the_other_from_building_an_index_concurrently() {
    let db = Fixture::new().await;
    migrate::platform(&db.url).await.expect("platform");
    let source =
        db.write("1_t.sql", "create table t (n int); select pg_sleep(0.5); create index concurrently i on t (n);");
    let (a, b) = tokio::join!(migrate::dir(&db.url, &source), migrate::dir(&db.url, &source));
    assert_eq!(a.expect("one").files.len() + b.expect("the other").files.len(), 1);
    assert_eq!(db.one("select indisvalid from pg_index where indexrelid = 'i'::regclass").await, "t");
    db.stop().await;
}

#[tokio::test]
async fn a_constraint_that_fails_at_the_end_names_its_file() {
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

/// A command without the server's settings set passwords that the server did not come to, and so locked it out.
#[tokio::test]
async fn an_owner_without_a_password_needs_the_secret() {
    let db = Fixture::new().await;
    let open = db.url.replace("postgres:postgres@", "keyless@");
    db.one("create role keyless superuser login").await;
    let hba = db.one("show hba_file").await;
    let rules = std::fs::read_to_string(&hba).expect("rules");
    std::fs::write(&hba, format!("host all keyless 127.0.0.1/32 trust\n{rules}")).expect("a rule");
    db.one("select pg_reload_conf()").await;
    let error = loop {
        // The rule holds once the postmaster has seen it.
        match migrate::prepare(&open, "", &GivenUrls::default()).await.expect_err("refused").to_string() {
            text if text.starts_with("cannot connect") => {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await
            }
            text => break text,
        }
    };
    assert!(error.starts_with("the database URL has no password: set JWT_SECRET"), "{error}");
    migrate::prepare(&open, "a secret", &GivenUrls::default()).await.expect("with the secret");
    db.stop().await;
}

#[tokio::test]
async fn two_databases_of_one_cluster_may_be_prepared_at_the_same_time() {
    let db = Fixture::new().await;
    db.one("create database one").await;
    db.one("create database two").await;
    let url = |name: &str| format!("{}/{name}", db.url.trim_end_matches("/postgres"));
    let (one, two) = (url("one"), url("two"));
    let none = GivenUrls::default();
    let (a, b) = tokio::join!(migrate::prepare(&one, "s", &none), migrate::prepare(&two, "s", &none));
    a.expect("one");
    b.expect("two");
    db.stop().await;
}

#[tokio::test]
async fn a_seed_is_loaded_once_and_refused_beside_peoples_own_accounts() {
    let db = Fixture::new().await;
    migrate::platform(&db.url).await.expect("platform");
    db.one("create table auth.users (id uuid primary key, email text, phone text)").await;
    let insert = "insert into auth.users values ('00000000-0000-0000-0000-00000000000%', 'demo%@x.example') on conflict do nothing;";
    let source = db.write("1_users.sql", &insert.replace('%', "1"));
    assert!(!migrate::has_demo_accounts(&db.url).await.expect("look"));
    assert_eq!(migrate::seed(&db.url, &source).await.expect("seed"), Seeded::Loaded(vec!["1_users.sql".to_owned()]));
    assert!(migrate::has_demo_accounts(&db.url).await.expect("look"));
    assert_eq!(migrate::seed(&db.url, &source).await.expect("again"), Seeded::AlreadyLoaded);
    // A newer seed is welcome while only demo accounts exist …
    db.write("2_more.sql", &insert.replace('%', "2"));
    assert!(matches!(migrate::seed(&db.url, &source).await.expect("newer"), Seeded::Loaded(files) if files.len() == 2));
    // … and not beside a person's.
    db.one("insert into auth.users values (gen_random_uuid(), 'ada@example.org')").await;
    assert_eq!(migrate::seed(&db.url, &source).await.expect("unchanged"), Seeded::AlreadyLoaded);
    db.write("3_late.sql", &insert.replace('%', "3"));
    let error = migrate::seed(&db.url, &source).await.expect_err("refused").to_string();
    assert_eq!(error, "seeding is refused: the database holds 1 user(s) that no seed made (such as ada@example.org)");
    assert_eq!(db.one("select count(*) from auth.users").await, "3");
    db.stop().await;
}

#[tokio::test]
async fn mail_is_queued_by_definer_functions_and_service_role_only() {
    let db = Fixture::new().await;
    migrate::platform(&db.url).await.expect("platform");
    db.one(
        "create function decide() returns bigint language sql security definer
            as $$ select ferrobase.send_mail('ada@example.org', 'Hello', 'text', '<p>html</p>') $$",
    )
    .await;
    assert_eq!(db.one("set role authenticated; select decide()").await, "1");
    assert_eq!(db.one("set role service_role; select ferrobase.send_mail(null, null, null, null)").await, "2");
    for role in ["anon", "authenticated"] {
        let refused =
            query(&db.url, &format!("set role {role}; select ferrobase.send_mail('a@b', 's', 't', 'h')")).await;
        assert!(refused.is_err(), "{role} must not send mail");
    }
    db.one("begin; select ferrobase.send_mail('a@b.c', 's', 't', 'h'); rollback").await;
    assert_eq!(db.one("select count(*) from ferrobase.outbox").await, "2");
    db.stop().await;
}

#[tokio::test]
async fn storage_functions_answer_as_documented() {
    let db = Fixture::new().await;
    migrate::platform(&db.url).await.expect("platform");
    for (sql, expected) in [
        ("select storage.foldername('a/b/c.txt')::text", "{a,b}"),
        ("select storage.foldername('c.txt')::text", "{}"),
        ("select storage.filename('a/b/c.tar.gz')", "c.tar.gz"),
        ("select storage.extension('a/b.d/c.tar.gz')", "gz"),
        ("select storage.extension('a/readme')", "readme"),
        ("select storage.get_common_prefix('data/a/b.txt', 'data/', '/')", "data/a/"),
        ("select storage.get_common_prefix('data/b.txt', 'data/', '/') is null", "t"),
        ("set storage.operation = 'storage.object.list'; select storage.allow_only_operation('object.list')", "t"),
        (
            "set storage.operation = 'storage.object.list'; select storage.allow_any_operation(array['object.sign'])",
            "f",
        ),
    ] {
        assert_eq!(db.one(sql).await, expected, "{sql}");
    }
    db.one(
        "insert into storage.buckets (id, name) values ('b', 'b');
            insert into storage.objects (bucket_id, name) values
              ('b', 'x/One.txt'), ('b', 'x/deep/two.txt'), ('b', 'x/deep/three.txt'), ('b', 'y.txt')",
    )
    .await;
    assert_eq!(
        db.one(
            "select string_agg(name || coalesce('', '') || (id is null)::text, ',')
                from storage.search('X/', 'b', 100, 2)"
        )
        .await,
        "deeptrue,One.txtfalse"
    );
    let refused = query(&db.url, "delete from storage.objects").await.expect_err("direct deletion");
    assert_eq!(refused.code().map(|c| c.code()), Some("42501"));
    db.stop().await;
}

#[tokio::test]
async fn ddl_tells_the_api_to_reload_its_schema_cache() {
    let db = Fixture::new().await;
    migrate::platform(&db.url).await.expect("platform");
    let (client, mut connection) = tokio_postgres::connect(&db.url, NoTls).await.expect("connect");
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
            if let tokio_postgres::AsyncMessage::Notification(n) = message {
                let _ = tell.send(n.payload().to_owned());
            }
        }
    });
    client.batch_execute("listen pgrst").await.expect("listen");
    db.one("create table t (n int)").await;
    let heard = tokio::time::timeout(std::time::Duration::from_secs(5), told.recv()).await.expect("in time");
    assert_eq!(heard.as_deref(), Some("reload schema"));
    db.one("drop table t").await;
    let heard = tokio::time::timeout(std::time::Duration::from_secs(5), told.recv()).await.expect("in time");
    assert_eq!(heard.as_deref(), Some("reload schema"));
    db.stop().await;
}

#[tokio::test]
async fn an_owner_without_superuser_rights_can_set_up_the_platform() {
    let db = Fixture::new().await;
    db.one("create role manager login createrole password 'm'").await;
    db.one("create database managed owner manager").await;
    let url = format!("postgresql://manager:m@127.0.0.1:{}/managed", db.url.split([':', '/']).nth(5).expect("port"));
    let urls = migrate::prepare(&url, "secret", &GivenUrls::default()).await.expect("prepare");
    for url in [&urls.rest_url, &urls.auth_url, &urls.service_url] {
        query(url, "select 1").await.expect("login");
    }
    // Policies on storage and references to auth are written by the owner's migrations.
    db.write("1_a.sql", "create table notes (id int); create policy own on storage.objects for select using (true);");
    let source = db.write("2_b.sql", "alter table notes enable row level security;");
    assert_eq!(migrate::dir(&url, &source).await.expect("migrate").files.len(), 2);
    query(&urls.auth_url, "create table auth.t ()").await.expect("the auth server's own schema");
    db.stop().await;
}
