//! The migrator against a real database: the platform's SQL, a project's migrations, demo data.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use ferrobase::embedded_pg::{EmbeddedOptions, EmbeddedPostgres};
use ferrobase::migrate::{self, GivenUrls, Seeded, Source};
use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::support::cluster::{Database, Template};

/// An empty database and a folder for its migrations.
struct Fixture {
    database: Option<Database>,
    postgres: Option<EmbeddedPostgres>,
    root: PathBuf,
    /// Of the owner, who runs migrations.
    url: String,
    /// Of the superuser, to whom the platform belongs.
    admin: String,
}

static COUNTER: AtomicU32 = AtomicU32::new(0);

impl Fixture {
    /// In the cluster of all tests, which has the platform's roles already.
    async fn new() -> Self {
        let database = Database::new(Template::Empty).await;
        let (url, admin) = (database.owner_url.clone(), database.url.clone());
        Self { database: Some(database), postgres: None, root: Self::folder(), url, admin }
    }

    /// The same with the platform.
    async fn with_platform() -> Self {
        let database = Database::new(Template::Platform).await;
        let (url, admin) = (database.owner_url.clone(), database.url.clone());
        Self { database: Some(database), postgres: None, root: Self::folder(), url, admin }
    }

    /// In a new cluster without roles other than its owner.
    async fn in_a_new_cluster() -> Self {
        let root = Self::folder();
        let options = EmbeddedOptions {
            data_root: root.clone(),
            port: 0,
            settings: vec![("fsync".to_owned(), "off".to_owned())],
            ..EmbeddedOptions::default()
        };
        let postgres = EmbeddedPostgres::start(&options).await.expect("PostgreSQL");
        let (url, admin) = (postgres.url.clone(), postgres.admin_url.clone());
        Self { database: None, postgres: Some(postgres), root, url, admin }
    }

    fn folder() -> PathBuf {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("ferrobase-migrate-{}-{number}", std::process::id()));
        std::fs::create_dir_all(root.join("sql")).expect("a temporary directory");
        root
    }

    fn write(&self, name: &str, sql: &str) -> Source {
        std::fs::write(self.root.join("sql").join(name), sql).expect("a migration");
        Source::Folder(self.root.join("sql"))
    }

    async fn one(&self, sql: &str) -> String {
        query(&self.admin, sql).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"))
    }

    async fn stop(mut self) {
        drop(self.database.take());
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
    let db = Fixture::in_a_new_cluster().await;
    let first = migrate::platform(&db.admin).await.expect("first run");
    assert!(!first.files.is_empty() && first.unchanged == 0, "{first:?}");
    let second = migrate::platform(&db.admin).await.expect("second run");
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
        (
            "select string_agg(nspname, ' ' order by nspname) from pg_namespace where nspowner = 'supabase_admin'::regrole
             and nspname in ('auth', 'storage', 'realtime', 'graphql_public', 'functions', 'ferrobase')",
            "auth ferrobase functions graphql_public realtime storage",
        ),
        ("select relowner::regrole from pg_class where oid = 'storage.objects'::regclass", "supabase_storage_admin"),
        ("select nspowner::regrole from pg_namespace where nspname = 'extensions'", "postgres"),
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
    migrate::platform(&db.admin).await.expect("platform");
    db.one("create table notes (id int); alter table notes enable row level security; insert into notes values (1)")
        .await;
    assert_eq!(db.one("set role anon; select count(*) from notes").await, "0");
    assert_eq!(db.one("set role service_role; select count(*) from notes").await, "1");
    db.stop().await;
}

#[tokio::test]
async fn the_servers_roles_log_in_with_passwords_nobody_stored() {
    let db = Fixture::in_a_new_cluster().await;
    let urls = migrate::prepare(&db.admin, "a secret", &GivenUrls::default()).await.expect("prepare");
    assert_eq!(migrate::prepare(&db.admin, "a secret", &GivenUrls::default()).await.expect("again"), urls);
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

/// A failure without a position was reported in line 1, without the applied files.
#[tokio::test]
async fn a_failure_names_its_statement_and_what_was_applied_before() {
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
    // What a file commits before an error stays, and the error says so.
    let source = db.write("2_b.sql", "create table b (); commit; insert into a values (0);");
    let error = migrate::dir(&db.url, &source).await.expect_err("refused").to_string();
    assert!(error.contains("(what the file had committed before it stays)"), "{error}");
    assert_eq!(db.one("select to_regclass('b') is not null").await, "t");
    db.stop().await;
}

#[tokio::test]
async fn a_dumps_data_is_copied_and_event_triggers_are_made_by_the_platform() {
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

/// A database with the platform and the auth schema, as the application's files find it.
async fn before_the_application() -> Fixture {
    let db = Fixture::new().await;
    let urls = migrate::prepare(&db.admin, ferrobase::config::DEVELOPMENT_JWT_SECRET, &GivenUrls::default()).await;
    migrate::auth(&urls.expect("platform").auth_url).await.expect("auth schema");
    db
}

/// The files of the application that came before those of today: those of version 0.1.0 and five that were never released.
fn files_of_then(db: &Fixture) -> PathBuf {
    let folder = db.root.join("then");
    std::fs::create_dir_all(&folder).expect("a folder");
    let released = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/migrations/app_0035.tar.gz");
    let tar = std::process::Command::new("tar").args(["-xzf", released, "-C"]).arg(&folder).status().expect("tar");
    assert!(tar.success());
    let later = concat!(env!("CARGO_MANIFEST_DIR"), "/../sql/app/history");
    for file in std::fs::read_dir(later).expect("the later ones").flatten() {
        std::fs::copy(file.path(), folder.join(file.file_name())).expect("a copy");
    }
    folder
}

/// The schema of the application, a line per object.
async fn catalog(db: &Fixture) -> Vec<String> {
    let (client, connection) = tokio_postgres::connect(&db.admin, NoTls).await.expect("connect");
    tokio::spawn(connection);
    // With nothing on the path, every name is printed in full.
    client.batch_execute("set search_path = ''").await.expect("a path");
    let rows = client.query(include_str!("migrations/catalog.sql"), &[]).await.expect("the catalogue");
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_database_made_by_earlier_files_of_the_application_ends_up_like_a_fresh_one() {
    let (fresh, older) = (before_the_application().await, before_the_application().await);
    let made = migrate::dir(&fresh.url, &Source::App).await.expect("fresh").files;
    let then = Source::Folder(files_of_then(&older));
    assert_eq!(migrate::dir(&older.url, &then).await.expect("as of then").files.len(), 36);
    older
        .one("insert into auth.users (id, email) values ('00000000-0000-4000-8000-000000000001', 'ada@x.example')")
        .await;
    let expected = catalog(&fresh).await;
    assert!(expected.len() > 900, "{} lines", expected.len());

    let taken = migrate::dir(&older.url, &Source::App).await.expect("taken over").files;
    // The tables are there: only what came after them runs.
    let ran: Vec<&String> = made.iter().filter(|file| !file.starts_with("000") || *file == "0009_words.sql").collect();
    assert_eq!(taken.iter().collect::<Vec<_>>(), ran);
    assert_eq!(catalog(&older).await, expected);
    let history = "select string_agg(version || ' ' || name || ' ' || checksum, ', ' order by version)
                   from supabase_migrations.schema_migrations";
    assert_eq!(older.one(history).await, fresh.one(history).await);
    assert_eq!(older.one("select count(*) from public.profiles").await, "1", "what people have is kept");
    let again = migrate::dir(&older.url, &Source::App).await.expect("again");
    assert_eq!((again.files.len(), again.unchanged), (0, made.len()));
    // A version of then would take today's files for edited ones.
    let error = migrate::dir(&older.url, &then).await.expect_err("refused").to_string();
    assert!(error.starts_with("0001_foundation.sql was changed after it was applied"), "{error}");
    older.stop().await;
    fresh.stop().await;
}

/// Leaves out the last of the earlier files.
async fn stands_at(db: &Fixture, last: &str) {
    let folder = files_of_then(db);
    for file in std::fs::read_dir(&folder).expect("files").flatten() {
        if file.file_name().to_string_lossy().as_ref() > last {
            std::fs::remove_file(file.path()).expect("a later file goes");
        }
    }
    migrate::dir(&db.url, &Source::Folder(folder)).await.expect("as of then");
}

#[tokio::test]
async fn a_database_of_the_last_release_first_runs_the_files_that_came_after_it() {
    let (fresh, released) = (before_the_application().await, before_the_application().await);
    migrate::dir(&fresh.url, &Source::App).await.expect("fresh");
    stands_at(&released, "0035_four_eyes.sql").await;
    released
        .one("insert into auth.users (id, email) values ('00000000-0000-4000-8000-000000000001', 'ada@x.example')")
        .await;
    migrate::dir(&released.url, &Source::App).await.expect("taken over");
    assert_eq!(catalog(&released).await, catalog(&fresh).await);
    assert_eq!(released.one("select count(*) from public.profiles").await, "1");
    released.stop().await;
    fresh.stop().await;
}

#[tokio::test]
async fn a_database_from_before_the_first_release_is_refused() {
    let db = before_the_application().await;
    stands_at(&db, "0034_one_draft_one_picture.sql").await;
    let before = catalog(&db).await;
    let error = migrate::dir(&db.url, &Source::App).await.expect_err("refused").to_string();
    assert_eq!(
        error,
        "the database was made by a version of the application before 0.1.0 and stands at 0034_one_draft_one_picture.sql: \
         start it once with version 0.1.0, then with this one"
    );
    assert_eq!(catalog(&db).await, before);
    db.stop().await;
}

#[tokio::test]
async fn definitions_run_again_when_one_of_them_has_changed() {
    let db = before_the_application().await;
    let made = migrate::dir(&db.url, &Source::App).await.expect("fresh").files;
    let expected = catalog(&db).await;
    let definitions: Vec<&String> = made.iter().filter(|file| !file.starts_with("00")).collect();
    // As an earlier version of the file left it, with a policy that has gone since.
    query(
        &db.url,
        "create or replace function private.clean(p text) returns text language sql as 'select p';
         create policy \"once\" on public.requests using (true);
         grant select on private.request_codes to anon;
         update supabase_migrations.definition_files set checksum = 'of then' where name = 'base/functions.sql'",
    )
    .await
    .expect("as it was");
    assert_ne!(catalog(&db).await, expected);
    let ran = migrate::dir(&db.url, &Source::App).await.expect("again").files;
    assert_eq!(ran.iter().collect::<Vec<_>>(), definitions);
    assert_eq!(catalog(&db).await, expected);
    db.stop().await;
}

/// Each thing has one place: its file of today, not a numbered one.
#[tokio::test]
async fn every_function_view_trigger_and_policy_of_the_application_stands_in_one_file() {
    let definitions = Source::App.definitions().expect("definitions");
    let numbered = Source::App.read().expect("files");
    let count = |needle: &str| definitions.iter().map(|file| file.text.matches(needle).count()).sum::<usize>();
    let db = before_the_application().await;
    migrate::dir(&db.url, &Source::App).await.expect("fresh");
    let (client, connection) = tokio_postgres::connect(&db.admin, NoTls).await.expect("connect");
    tokio::spawn(connection);
    // Constraints and defaults call these two, so they belong to the tables.
    let of_tables = ["create function private.valid_email(", "create function private.new_token("];
    let of_application = "n.nspname in ('public', 'private', 'functions')";
    for made in [
        format!(
            "select distinct format('create or replace function %I.%I(', n.nspname, p.proname) from pg_proc p
             join pg_namespace n on n.oid = p.pronamespace
             where {of_application} and p.proname not in ('valid_email', 'new_token', 'require_own_request')"
        ),
        format!(
            "select format('create or replace view %I.%I ', n.nspname, c.relname) from pg_class c
             join pg_namespace n on n.oid = c.relnamespace where {of_application} and c.relkind = 'v'"
        ),
        format!(
            "select format('create policy \"%s\" on %I.%I ', d.polname, n.nspname, c.relname) from pg_policy d
             join pg_class c on c.oid = d.polrelid join pg_namespace n on n.oid = c.relnamespace
             where {of_application} and d.polname <> 'service role'"
        ),
        format!(
            "select format('execute function %s(', t.tgfoid::regproc) from pg_trigger t join pg_class c on c.oid = t.tgrelid
             join pg_namespace n on n.oid = c.relnamespace where {of_application} and not tgisinternal
             group by t.tgfoid having count(*) = 1"
        ),
    ] {
        let rows = client.query(&made, &[]).await.expect("the catalogue");
        assert!(rows.len() > 5, "{made}");
        for row in &rows {
            let statement: String = row.get(0);
            assert_eq!(count(&statement), 1, "{statement}… belongs into one file of sql/app/<subject>, once");
        }
    }
    for file in &numbered {
        let stray = file.text.lines().find(|line| {
            let line = line.trim_start().to_lowercase();
            [
                "create function",
                "create or replace",
                "create policy",
                "create view",
                "create trigger",
                "grant ",
                "revoke ",
            ]
            .iter()
            .any(|start| line.starts_with(start))
                && !of_tables.iter().any(|known| line.starts_with(known))
        });
        assert_eq!(stray, None, "{} is for tables and data: this belongs into sql/app/<subject>", file.file);
    }
    db.stop().await;
}

#[tokio::test]
async fn an_invalid_function_body_is_reported_with_its_file_and_line() {
    let db = before_the_application().await;
    migrate::dir(&db.url, &Source::App).await.expect("fresh");
    query(
        &db.url,
        "alter table private.sent_contents rename column hash to digest;
         update supabase_migrations.definition_files set checksum = 'of then' where name = 'upkeep/functions.sql'",
    )
    .await
    .expect("another table");
    let before = db.one("select max(applied_at) from supabase_migrations.definition_files").await;
    let error = migrate::dir(&db.url, &Source::App).await.expect_err("refused").to_string();
    let text = include_str!("../../sql/app/base/functions.sql");
    let line = 1 + text.lines().position(|line| line.contains("private.keep_content(")).expect("the function");
    let refusal = format!("base/functions.sql:{line}: column \"hash\" of relation \"sent_contents\" does not exist");
    assert!(error.starts_with(&refusal), "{error}");
    assert!(error.ends_with("at: function private.keep_content(…) (nothing of the file was kept)"), "{error}");
    assert_eq!(db.one("select max(applied_at) from supabase_migrations.definition_files").await, before);
    db.stop().await;
}

#[tokio::test]
async fn two_instances_at_once_apply_each_file_once() {
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

/// The waiting instance held a snapshot, for whose end the index of the other waited: a deadlock of the two.
#[tokio::test]
async fn an_instance_that_waits_does_not_keep_the_other_from_building_an_index_concurrently() {
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
    let db = Fixture::in_a_new_cluster().await;
    let open = db.admin.replace("supabase_admin:postgres@", "keyless@");
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
    let db = Fixture::in_a_new_cluster().await;
    db.one("create database one").await;
    db.one("create database two").await;
    let url = |name: &str| format!("{}/{name}", db.admin.trim_end_matches("/postgres"));
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
    migrate::platform(&db.admin).await.expect("platform");
    db.one("set role supabase_auth_admin; create table auth.users (id uuid primary key, email text, phone text)").await;
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
    migrate::platform(&db.admin).await.expect("platform");
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
    migrate::platform(&db.admin).await.expect("platform");
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
    let names = "select string_agg(name, ',') from storage.search_v2('x/', 'b', 100, 2)";
    assert_eq!(db.one(names).await, "x/One.txt,x/deep");
    let sizes = "update storage.objects set metadata = '{\"size\": 5}';
                 select size || ' in ' || bucket_id from storage.get_size_by_bucket()";
    assert_eq!(db.one(sizes).await, "20 in b");
    for (statement, code) in [
        ("delete from storage.objects", "42501"),
        ("delete from storage.buckets", "42501"),
        ("select storage.can_insert_object('b', 'new', null, '{}')", "PT200"),
        ("select storage.can_insert_object('b', 'y.txt', null, '{}')", "23505"),
    ] {
        let refused = query(&db.url, statement).await.expect_err(statement);
        assert_eq!(refused.code().map(|c| c.code()), Some(code), "{statement}");
    }
    assert_eq!(db.one("select count(*) from storage.objects").await, "4");
    db.stop().await;
}

#[tokio::test]
async fn ddl_tells_the_api_to_reload_its_schema_cache() {
    let db = Fixture::new().await;
    migrate::platform(&db.admin).await.expect("platform");
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
    let db = Fixture::in_a_new_cluster().await;
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

/// A fresh database with the platform and the auth schema, as a project's migrations find it.
async fn base_image() -> Fixture {
    let db = Fixture::in_a_new_cluster().await;
    let urls = migrate::prepare(&db.admin, "a secret", &GivenUrls::default()).await.expect("platform");
    migrate::auth(&urls.auth_url).await.expect("auth schema");
    db
}

#[tokio::test]
async fn the_project_belongs_to_postgres_who_is_no_superuser() {
    let db = base_image().await;
    assert_eq!(
        db.one(
            "select format('%s %s %s %s %s', rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls)
                from pg_roles where rolname = 'postgres'"
        )
        .await,
        "f t t t t"
    );
    for (sql, expected) in [
        ("select rolsuper from pg_roles where oid = 10 and rolname = 'supabase_admin'", "t"),
        ("select datdba::regrole from pg_database where datname = 'postgres'", "postgres"),
        ("select pubowner::regrole from pg_publication where pubname = 'supabase_realtime'", "postgres"),
        (
            "select setconfig::text from pg_db_role_setting where setrole = 'postgres'::regrole",
            r#"{"search_path=\"$user\", public, extensions"}"#,
        ),
        (
            "select string_agg(evtname, ' ' order by evtname) from pg_event_trigger where evtowner = 10",
            "guard_event_triggers pgrst_ddl_watch pgrst_drop_watch",
        ),
        (
            "select count(*) from pg_extension where extname in ('pgcrypto', 'uuid-ossp', 'pg_stat_statements')
          and extnamespace = 'extensions'::regnamespace",
            "3",
        ),
    ] {
        assert_eq!(db.one(sql).await, expected, "{sql}");
    }
    for refused in [
        "copy (select 1) to program 'true'",
        "alter role supabase_admin password 'x'",
        "set role supabase_admin",
        "drop schema auth cascade",
        "drop schema storage cascade",
        "update pg_authid set rolsuper = true where rolname = 'postgres'",
        "create function f() returns int language c as 'x', 'y'",
        "delete from ferrobase.platform_files",
        "drop event trigger pgrst_ddl_watch",
        "select ferrobase.change_event_trigger('pgrst_ddl_watch', 'drop')",
    ] {
        let error = query(&db.url, refused).await.expect_err(refused);
        assert_eq!(error.code().map(|code| code.code()), Some("42501"), "{refused}: {error:?}");
    }
    db.stop().await;
}

/// Common statements in the migrations and seeds of public projects.
#[tokio::test]
async fn a_projects_migrations_find_what_they_take_for_granted() {
    let db = base_image().await;
    for sql in [
        "create table profiles (id uuid primary key default uuid_generate_v4() references auth.users (id) on delete cascade)",
        "create function new_user() returns trigger language plpgsql security definer set search_path = '' as
         $$ begin insert into public.profiles (id) values (new.id); return new; end $$",
        "create trigger on_auth_user_created after insert on auth.users for each row execute function new_user()",
        "insert into auth.users (instance_id, id, aud, role, email, encrypted_password, email_confirmed_at)
         values ('00000000-0000-0000-0000-000000000000', gen_random_uuid(), 'authenticated', 'authenticated',
                 'seed@x.example', crypt('pw', gen_salt('bf', 4)), now())",
        "insert into storage.buckets (id, name, public) values ('avatars', 'avatars', true) on conflict do nothing",
        "alter table storage.objects enable row level security",
        "create policy \"own files\" on storage.objects for select to authenticated
         using (bucket_id = 'avatars' and (storage.foldername(name))[1] = auth.uid()::text)",
        "create policy listen on realtime.messages for select to authenticated using (realtime.topic() = 'room')",
        "alter publication supabase_realtime add table profiles",
        "drop publication if exists supabase_realtime; create publication supabase_realtime",
        "create extension if not exists pg_trgm with schema extensions",
        "create extension if not exists citext",
        "drop extension citext",
        "alter role authenticator set pgrst.db_schemas = 'public,api'",
        "set session_replication_role = replica",
        "create schema private; grant usage on schema private to service_role",
        "create role reader nologin; grant reader to authenticator",
        "comment on schema public is 'standard public schema'",
        "create function functions.hello() returns text language sql return 'hello'",
        "select ferrobase.send_mail('a@x.example', 's', 't', 'h')",
        "insert into ferrobase.hourly values ('public.sweep')",
        "create database copy_of_mine",
    ] {
        if let Err(error) = query(&db.url, sql).await {
            panic!("{sql}: {error:?}");
        }
    }
    assert_eq!(db.one("select count(*) from profiles").await, "1", "the trigger ran");
    db.stop().await;
}

/// Found with a public pgTAP suite, in which 181 of 193 tests failed because functions of extensions could not be
/// called.
#[tokio::test]
async fn extensions_stay_usable_when_a_project_closes_its_functions() {
    let db = Fixture::with_platform().await;
    for sql in [
        "alter default privileges revoke execute on functions from public",
        "create extension pg_trgm with schema extensions",
        "create function mine() returns int language sql return 1",
    ] {
        query(&db.url, sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    db.one("create role reader_of_extensions").await;
    for (function, expected) in
        [("extensions.similarity(text, text)", "t"), ("extensions.gen_salt(text)", "t"), ("mine()", "f")]
    {
        let sql = format!("select has_function_privilege('reader_of_extensions', '{function}', 'execute')");
        assert_eq!(db.one(&sql).await, expected, "{function}");
    }
    db.stop().await;
}

#[tokio::test]
async fn an_event_trigger_of_a_project_runs_with_its_owners_rights() {
    let db = Fixture::with_platform().await;
    for sql in [
        "create table seen (who text)",
        "create function watch() returns event_trigger language plpgsql as
         $$ begin insert into public.seen values (current_user); end $$",
        "select ferrobase.create_event_trigger('watching', 'ddl_command_end', array['CREATE TABLE'], 'watch()')",
        // If created again, it would run with the rights of anybody who creates a table.
        "create or replace function watch() returns event_trigger language plpgsql as
         $$ begin insert into public.seen values (current_user || ' again'); end $$",
    ] {
        query(&db.url, sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    db.one("create table made_by_the_superuser ()").await;
    assert_eq!(db.one("select string_agg(who, ',') from seen").await, "postgres again");
    query(&db.url, "select ferrobase.change_event_trigger('watching', 'drop')").await.expect("its own");
    db.stop().await;
}

/// Turns a cluster into one of the time when `postgres` was the superuser and owned everything.
async fn as_of_old(db: &Fixture) {
    db.one("create role passing superuser login password 'p'").await;
    let passing = db.admin.replace("supabase_admin:postgres@", "passing:p@");
    query(
        &passing,
        "begin; alter role postgres rename to once; alter role supabase_admin rename to postgres;
                     alter role postgres password 'postgres'; commit",
    )
    .await
    .expect("renamed");
    query(
        &db.url,
        "reassign owned by once to postgres; alter role once nologin;
                    create role supabase_admin superuser login; comment on role supabase_admin is 'Made by ferrobase';
                    create schema old_platform authorization supabase_admin;
                    drop role passing; update ferrobase.platform_files set checksum = 'of then'",
    )
    .await
    .expect("as it was");
}

#[tokio::test]
async fn a_database_of_the_time_when_postgres_was_superuser_goes_on() {
    let mut db = base_image().await;
    as_of_old(&db).await;
    query(&db.url, "create extension hstore; create type mood as enum ('good'); create schema private;
        create table private.notes (id int generated always as identity, m mood);
        create table notes (n serial primary key, id int);
        insert into private.notes (m) values ('good');
        create view all_notes as select * from private.notes;
        create function functions.mine() returns int language sql security definer return (select count(*) from private.notes);
        alter default privileges in schema public revoke all on tables from anon;
        create publication mine for table notes").await.expect("a project of old");
    let (options, port) = {
        let postgres = db.postgres.take().expect("running");
        let port = postgres.port;
        postgres.stop().await;
        (EmbeddedOptions { data_root: db.root.clone(), port, ..EmbeddedOptions::default() }, port)
    };
    let postgres = EmbeddedPostgres::start(&options).await.expect("the next version starts");
    assert_eq!(postgres.port, port);
    migrate::prepare(&postgres.admin_url, "a secret", &GivenUrls::default()).await.expect("platform");
    for (sql, expected) in [
        ("select rolsuper from pg_roles where rolname = 'postgres'", "f"),
        ("select rolname from pg_roles where oid = 10", "supabase_admin"),
        ("select count(*) from pg_roles where rolname in ('supabase_former_admin', 'supabase_rename_admin')", "0"),
        (
            "select string_agg(distinct relowner::regrole::text, ',') from pg_class
          where relnamespace in ('public'::regnamespace, 'private'::regnamespace)",
            "postgres",
        ),
        ("select typowner::regrole from pg_type where typname = 'mood'", "postgres"),
        ("select nspowner::regrole from pg_namespace where nspname = 'private'", "postgres"),
        ("select nspowner::regrole from pg_namespace where nspname = 'old_platform'", "supabase_admin"),
        ("select proowner::regrole from pg_proc where proname = 'mine'", "postgres"),
        ("select pubowner::regrole from pg_publication where pubname = 'mine'", "postgres"),
        ("select proowner::regrole from pg_proc where oid = 'hstore(text, text)'::regprocedure", "supabase_admin"),
        (
            "select defaclacl::text ~ 'anon' from pg_default_acl where defaclrole = 'postgres'::regrole
          and defaclnamespace = 'public'::regnamespace and defaclobjtype = 'r'",
            "f",
        ),
        ("select count(*) from private.notes", "1"),
    ] {
        assert_eq!(query(&postgres.admin_url, sql).await.expect(sql), expected, "{sql}");
    }
    query(&postgres.url, "alter table notes add column more int; drop extension hstore; select functions.mine()")
        .await
        .expect("the project goes on as postgres");
    postgres.stop().await;
    // A second start finds nothing to do.
    EmbeddedPostgres::start(&options).await.expect("again").stop().await;
}

/// Code that a project tries to run as a superuser. Its errors are ignored.
const GRAB: &str = "create function public.grab() returns boolean language plpgsql as $$ begin
    execute 'alter role postgres superuser';
    return true;
  exception when others then
    return true;
  end $$;
  create function public.grab_row() returns trigger language plpgsql as $$ begin perform public.grab(); return new; end $$;
  create function public.grab_ddl() returns event_trigger language plpgsql as $$ begin perform public.grab(); end $$;";

/// Asserts that `postgres` is not a superuser after running `sql` in a separate session, whether or not it failed.
async fn stays_plain(db: &Fixture, sql: &str) {
    let outcome = query(&db.url, sql).await;
    assert_plain(db, sql).await;
    if let Err(error) = outcome {
        assert!(error.as_db_error().is_some(), "{sql}: {error}");
    }
}

async fn assert_plain(db: &Fixture, after: &str) {
    let is_super = db.one("select rolsuper from pg_roles where rolname = 'postgres'").await;
    // Other tests share the cluster.
    query(&db.admin, "alter role postgres nosuperuser").await.expect("as before");
    assert_eq!(is_super, "f", "a superuser after: {after}");
}

#[tokio::test]
async fn what_a_project_makes_is_not_run_by_a_superuser() {
    let db = Fixture::with_platform().await;
    query(&db.url, GRAB).await.expect("functions");

    // A trigger on the table that the function of webhooks writes; as an earlier version made it, and as it becomes.
    query(&db.admin, include_str!("../../sql/project/webhooks.sql")).await.expect("webhooks");
    query(
        &db.admin,
        "alter function supabase_functions.http_request() owner to supabase_admin;
         delete from ferrobase.platform_files where name = '90_rights.sql'",
    )
    .await
    .expect("as of old");
    migrate::platform(&db.admin).await.expect("platform");
    let hook = "create trigger grab before insert on supabase_functions.hooks for each row execute function grab_row();
                create table hooked (i int);
                create trigger hook after insert on hooked for each row
                  execute function supabase_functions.http_request('http://x/', 'POST', '{}', '{}', '1000');
                insert into hooked values (1)";
    query(&db.url, hook).await.expect("a webhook");
    assert_plain(&db, hook).await;
    assert_eq!(db.one("select count(*) from net.http_request_queue").await, "1");
    stays_plain(
        &db,
        "create trigger grab before insert on net._http_response for each row execute function grab_row()",
    )
    .await;

    // A function that fits better than PostgreSQL's own, found by the platform's statements.
    let database = db.one("select current_database()").await;
    let format = format!(
        "create function public.format(text, name, text) returns text language plpgsql as
           $$ begin perform public.grab(); return pg_catalog.format($1, $2, $3); end $$;
         create function public.format(text, text) returns text language plpgsql as
           $$ begin perform public.grab(); return pg_catalog.format($1, $2); end $$;
         revoke create on database {database} from supabase_auth_admin"
    );
    query(&db.url, &format).await.expect("a function and a grant less");
    query(&db.admin, "delete from ferrobase.platform_files").await.expect("all files run again");
    migrate::platform(&db.admin).await.expect("platform");
    assert_plain(&db, &format).await;
    let may = format!("select has_database_privilege('supabase_auth_admin', '{database}', 'create')");
    assert_eq!(db.one(&may).await, "t", "the grant is back");

    // A view in the place of the history.
    let history = "create schema supabase_migrations;
                   create view supabase_migrations.schema_migrations as
                     select case when public.grab() then '1' end as version, 'name'::text as name";
    query(&db.url, history).await.expect("a view");
    let known = migrate::project::known(&db.admin, &db.url).await.expect("known");
    assert_eq!(known.history.get("1").map(String::as_str), Some("name"));
    assert_plain(&db, history).await;

    // A temporary type of a common name.
    stays_plain(
        &db,
        "create domain pg_temp.text as pg_catalog.text check (public.grab()); select vault.create_secret('a', 'b')",
    )
    .await;
    let loose = "select string_agg(p.oid::regprocedure::text, ' ') from pg_proc p join pg_roles r on r.oid = p.proowner
                 where r.rolsuper and p.prosecdef and not exists (
                   select from unnest(p.proconfig) setting where setting like 'search_path=%pg_temp')";
    assert_eq!(db.one(loose).await, "", "functions with a superuser's rights that look among temporary objects first");
    db.stop().await;
}

#[tokio::test]
async fn an_event_trigger_of_a_project_keeps_its_owners_rights_whatever_is_tried() {
    let db = Fixture::with_platform().await;
    query(&db.url, GRAB).await.expect("functions");
    let make = "select ferrobase.create_event_trigger('grab', 'ddl_command_end', null, 'public.grab_ddl()')";
    query(&db.url, make).await.expect("an event trigger");
    for way in [
        "alter routine public.grab_ddl() security invoker",
        "set session_replication_role = replica; alter function public.grab_ddl() security invoker",
        "drop function ferrobase.guard_event_triggers() cascade",
        "drop function extensions.guard_event_triggers() cascade",
    ] {
        stays_plain(&db, way).await;
        // A trusted extension's script runs as a superuser.
        query(&db.url, "create extension citext; drop extension citext").await.expect("an extension");
        assert_plain(&db, way).await;
        query(&db.url, "alter function public.grab_ddl() security invoker").await.expect("its own");
    }
    let definer = "select prosecdef from pg_proc where oid = 'public.grab_ddl()'::regprocedure";
    assert_eq!(db.one(definer).await, "t");
    db.stop().await;
}

#[tokio::test]
async fn an_extensions_script_finds_nothing_of_a_project() {
    let db = Fixture::with_platform().await;
    query(&db.url, GRAB).await.expect("functions");
    for (place, extension) in ["pg_cron", "pg_net"].into_iter().enumerate() {
        let sql = format!(
            "create schema evil{place};
             create function evil{place}.format(text, text) returns text language plpgsql as
               $$ begin perform public.grab(); return pg_catalog.format($1, $2); end $$;
             create extension {extension} schema evil{place}"
        );
        query(&db.url, &sql).await.unwrap_or_else(|error| panic!("{extension}: {error:?}"));
        assert_plain(&db, &sql).await;
    }
    // Its schema is its own, also under the empty search path of a dump; what a project has put there is not taken over.
    let taken = "create schema pgsodium; create function pgsodium.planted() returns int language sql as 'select 1';
                 create extension pgsodium";
    let refused = query(&db.url, taken).await.expect_err("a schema in use");
    assert_eq!(refused.as_db_error().map(|error| error.message()), Some("the schema pgsodium is in use already"));
    let sql =
        "create role planter; create schema pgsodium; grant all on schema pgsodium to planter; set search_path = '';
               create extension pgsodium";
    query(&db.url, sql).await.expect("an extension");
    assert_plain(&db, sql).await;
    for role in ["postgres", "planter"] {
        let may = format!("select has_schema_privilege('{role}', 'pgsodium', 'create')");
        assert_eq!(db.one(&may).await, "f", "{role}");
    }
    // A job made by a request belongs to the role whose rights the function has: the one that is run.
    query(
        &db.url,
        "create function public.plan() returns bigint language sql security definer set search_path = ''
           as $$ select cron.schedule('nightly', '@daily', 'select 1') $$;
         create function public.unplan() returns boolean language sql security definer set search_path = ''
           as $$ select cron.unschedule('nightly') $$",
    )
    .await
    .expect("functions");
    let request = "set session authorization authenticator; set role anon; select public.plan()";
    query(&db.admin, request).await.expect("a job");
    assert_eq!(db.one("select username || ' ' || jobname from cron.job").await, "postgres nightly");
    query(&db.admin, "set session authorization authenticator; set role anon; select public.unplan()")
        .await
        .expect("no job");
    assert_eq!(db.one("select count(*) from cron.job").await, "0");
    db.stop().await;
}

/// A server that takes connections and answers, or says nothing.
fn target(answers: bool) -> String {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            if answers {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
            } else {
                open.push(stream);
            }
        }
    });
    format!("http://{address}/")
}

#[tokio::test]
async fn queued_requests_go_on_beside_one_that_hangs_and_one_whose_answer_is_refused() {
    use ferrobase::jobs::{Jobs, JobsConfig, Outbound};
    let db = Fixture::with_platform().await;
    query(&db.url, GRAB).await.expect("functions");
    query(&db.url, "create extension pg_net; create extension pg_cron").await.expect("extensions");
    // As in databases of earlier versions, where everybody might do this.
    query(&db.admin, "grant trigger on net._http_response to postgres").await.expect("a grant");
    query(&db.url, "create trigger grab before insert on net._http_response for each row execute function grab_row()")
        .await
        .expect("a trigger");
    query(&db.admin, "alter table net._http_response add constraint refused check (id <> 2)").await.expect("a check");
    let urls = migrate::prepare(&db.admin, ferrobase::config::DEVELOPMENT_JWT_SECRET, &GivenUrls::default()).await;
    let jobs = Jobs::start(JobsConfig {
        service_url: urls.expect("logins").service_url,
        owner_url: db.url.clone(),
        outbound: Outbound { reaches_private: true, api: "127.0.0.1:1".parse().expect("an address") },
    })
    .expect("jobs");
    let (silent, good) = (target(false), target(true));
    query(&db.url, &format!("select net.http_get('{silent}', timeout_milliseconds => 2147483647)")).await.expect("1");
    wait_for(&db, "select count(*) = 0 from net.http_request_queue").await;
    query(&db.url, &format!("select net.http_get('{good}'), net.http_get('{good}')")).await.expect("2 and 3");
    wait_for(&db, "select exists (select from net._http_response where id = 3 and status_code = 200)").await;
    assert_eq!(db.one("select count(*) from net._http_response").await, "1");
    assert_plain(&db, "a trigger on net._http_response").await;
    // Of several rows none is gathered.
    query(&db.url, "select cron.schedule('rows', '1 second', 'select generate_series(1, 1000)')").await.expect("a job");
    wait_for(&db, "select exists (select from cron.job_run_details where return_message = '1000 rows')").await;
    jobs.stop().await;
    db.stop().await;
}

async fn wait_for(db: &Fixture, sql: &str) {
    for _ in 0..600 {
        if db.one(sql).await == "t" {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("not within a minute: {sql}");
}
