//! The application's own files: upgrades of older databases, and definitions.

use std::path::PathBuf;
use std::process::Command;

use ferrobase::migrate::{self, GivenUrls, Source};
use tokio_postgres::NoTls;

use super::{Fixture, query};

/// A database with the platform and the auth schema, as the application's files expect it.
async fn before_the_application() -> Fixture {
    let db = Fixture::new().await;
    let urls = migrate::prepare(&db.admin, ferrobase::config::DEVELOPMENT_JWT_SECRET, &GivenUrls::default()).await;
    migrate::auth(&urls.expect("platform").auth_url).await.expect("auth schema");
    db
}

/// The former files of the application: those of version 0.1.0 and five that were never released.
fn files_of_then(db: &Fixture) -> PathBuf {
    let folder = db.root.join("then");
    std::fs::create_dir_all(&folder).expect("a folder");
    let released = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/migrations/app_0035.tar.gz");
    let tar = Command::new("tar").args(["-xzf", released, "-C"]).arg(&folder).status().expect("tar");
    assert!(tar.success());
    let later = concat!(env!("CARGO_MANIFEST_DIR"), "/../sql/app/history");
    for file in std::fs::read_dir(later).expect("the later ones").flatten() {
        std::fs::copy(file.path(), folder.join(file.file_name())).expect("a copy");
    }
    folder
}

/// The schema of the application, one line per object.
async fn catalog(db: &Fixture) -> Vec<String> {
    let (client, connection) = tokio_postgres::connect(&db.admin, NoTls).await.expect("connect");
    tokio::spawn(connection);
    // With an empty search path, all names are printed in full.
    client.batch_execute("set search_path = ''").await.expect("a path");
    let rows = client.query(include_str!("catalog.sql"), &[]).await.expect("the catalogue");
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_database_of_earlier_application_files_is_upgraded_to_the_current_schema() {
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
    // The tables exist, so only later files run.
    let ran: Vec<&String> = made.iter().filter(|file| !file.starts_with("000") || *file == "0009_words.sql").collect();
    assert_eq!(taken.iter().collect::<Vec<_>>(), ran);
    assert_eq!(catalog(&older).await, expected);
    let history = "select string_agg(version || ' ' || name || ' ' || checksum, ', ' order by version)
                   from supabase_migrations.schema_migrations";
    assert_eq!(older.one(history).await, fresh.one(history).await);
    assert_eq!(older.one("select count(*) from public.profiles").await, "1", "existing rows are kept");
    let again = migrate::dir(&older.url, &Source::App).await.expect("again");
    assert_eq!((again.files.len(), again.unchanged), (0, made.len()));
    // A former version would take today's files for edited ones.
    let error = migrate::dir(&older.url, &then).await.expect_err("refused").to_string();
    assert!(error.starts_with("0001_foundation.sql was changed after it was applied"), "{error}");
    older.stop().await;
    fresh.stop().await;
}

/// Simulates a database at the file `last` by removing later ones.
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
async fn a_database_of_the_last_release_first_runs_the_later_files() {
    let (fresh, released) = (before_the_application().await, before_the_application().await);
    migrate::dir(&fresh.url, &Source::App).await.expect("fresh");
    stands_at(&released, "0035_four_eyes.sql").await;
    released
        .one("insert into auth.users (id, email) values ('00000000-0000-4000-8000-000000000001', 'ada@x.example')")
        .await;
    // A last name that ends in spaces where it is cut, metadata that are no object, and numbers that only My Profile showed.
    released
        .one(
            "insert into auth.users (id, email, phone, raw_user_meta_data) values
             ('00000000-0000-4000-8000-000000000002', 'eve@x.example', '12075550100', 'null'),
             ('00000000-0000-4000-8000-000000000003', 'bob@x.example', null, '{}')",
        )
        .await;
    released
        .one(
            "update public.profiles set phone = null, full_name = 'Eve x' || repeat(' ', 100) || 'y'
             where email = 'eve@x.example'",
        )
        .await;
    released.one("update auth.users set raw_user_meta_data = 'null' where email = 'eve@x.example'").await;
    released
        .one("update public.profiles set full_name = 'Bob King', phone = '207 1' where email = 'bob@x.example'")
        .await;
    migrate::dir(&released.url, &Source::App).await.expect("taken over");
    assert_eq!(catalog(&released).await, catalog(&fresh).await);
    assert_eq!(released.one("select count(*) from public.profiles").await, "3");
    let said =
        "select concat_ws('|', p.first_name, coalesce(p.last_name, '-'), p.phone, jsonb_typeof(u.raw_user_meta_data),
                  u.raw_user_meta_data ->> 'full_name' = p.full_name, u.raw_user_meta_data ->> 'phone')
                from public.profiles p join auth.users u on u.id = p.id where p.email = ";
    assert_eq!(released.one(&format!("{said} 'eve@x.example'")).await, "Eve|-|12075550100|object|t|12075550100");
    assert_eq!(released.one(&format!("{said} 'bob@x.example'")).await, "Bob|King|207 1|object|t|207 1");
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
async fn all_definitions_run_again_if_one_has_changed() {
    let db = before_the_application().await;
    let made = migrate::dir(&db.url, &Source::App).await.expect("fresh").files;
    let expected = catalog(&db).await;
    let definitions: Vec<&String> = made.iter().filter(|file| !file.starts_with("00")).collect();
    // The state left by an earlier version of the file, including a policy that was removed since.
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

/// Each object is defined in one place: today's file, not a numbered one.
#[tokio::test]
async fn every_application_object_is_defined_in_one_file() {
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
    let text = include_str!("../../../sql/app/base/functions.sql");
    let line = 1 + text.lines().position(|line| line.contains("private.keep_content(")).expect("the function");
    let refusal = format!("base/functions.sql:{line}: column \"hash\" of relation \"sent_contents\" does not exist");
    assert!(error.starts_with(&refusal), "{error}");
    assert!(error.ends_with("at: function private.keep_content(…) (nothing of the file was kept)"), "{error}");
    assert_eq!(db.one("select max(applied_at) from supabase_migrations.definition_files").await, before);
    db.stop().await;
}
