//! Projects and other databases: what is pushed, fetched, pulled, compared and advised.

use std::process::Command;

use serde_json::Value;

use crate::project::Project;
use crate::project_commands::installed;
use crate::support::cluster::place;
use crate::support::ports::free_ports;

const TASKS: &str = "create table tasks (id int primary key);\nalter table tasks enable row level security;\n";
const NOTES: &str =
    "-- what people write\ncreate table notes (body text);\ncreate policy \"own\" on tasks for select using (true)";
const WORDS: &str =
    "create table words (word text);\n\n\nCOPY words (word) FROM stdin;\none;two\n\\.\nselect 1; -- the end\n";

#[actix_web::test]
async fn migrations_roles_and_seeds_are_pushed_and_fetched() {
    let project = Project::new(
        "pushing",
        "[db.vault]\napi_key = \"s3cret\"\n",
        &[
            ("supabase/migrations/20240101000000_tasks.sql", TASKS),
            ("supabase/migrations/20240103000000_notes.sql", NOTES),
            ("supabase/migrations/20240103000001_words.sql", WORDS),
            ("supabase/roles.sql", "create role reporter nologin;"),
            ("supabase/seed.sql", "insert into tasks values (1), (2);"),
        ],
    );
    let remote = Project::new("pushed-to", "", &[]);
    remote.ok(&["start"]);
    let url = remote.status()["DB_URL"].as_str().expect("a URL").to_owned();
    let push = |more: &[&str]| project.run(&[&["db", "push", "--db-url", &url], more].concat());

    let everything = ["--include-seed", "--include-roles"];
    let (success, printed, told) = push(&[&everything[..], &["--dry-run"]].concat());
    assert!(success && printed == "Finished supabase db push.\n", "{told}");
    for line in [
        "DRY RUN: migrations will *not* be pushed to the database.\n",
        "Would create custom roles supabase/roles.sql...\n",
        "Would push these migrations:\n • 20240101000000_tasks.sql\n • 20240103000000_notes.sql\n",
        "Would seed these files:\n • supabase/seed.sql\n",
    ] {
        assert!(told.contains(line), "{line}{told}");
    }
    assert_eq!(remote.one("select to_regclass('tasks') is null and to_regrole('reporter') is null").await, "t");

    // A script that answers no stops; without an answer it continues, as with the Supabase CLI.
    let refused = project.command(&["db", "push", "--db-url", &url]).stdin(said("n\n")).output().expect("it runs");
    assert!(!refused.status.success());
    assert_eq!(remote.one("select to_regclass('tasks') is null").await, "t");
    let (success, _, told) = push(&everything);
    assert!(success && told.contains("Applying migration 20240103000000_notes.sql..."), "{told}");
    assert_eq!(remote.one("select count(*) from tasks").await, "2");
    assert_eq!(remote.one("select to_regrole('reporter') is not null").await, "t");
    let secret = "select decrypted_secret from vault.decrypted_secrets where name = 'api_key'";
    assert_eq!(remote.one(secret).await, "s3cret");
    assert_eq!(push(&["--include-seed"]).1, "Remote database is up to date.\n");

    // A seed that has changed is recorded and does not run again.
    project.write("supabase/seed.sql", "insert into tasks values (3);");
    let (_, _, told) = push(&["--include-seed", "--dry-run"]);
    assert!(told.contains(" • supabase/seed.sql (hash update)\n"), "{told}");

    // Older than the newest applied one.
    project.write("supabase/migrations/20240102000000_late.sql", "create table late ();");
    let (success, _, told) = push(&[]);
    assert!(!success && told.contains("--include-all") && told.lines().count() == 1, "{told}");
    assert!(push(&["--include-all", "--yes"]).0);
    project.write("supabase/migrations/20240104000000_bad.sql", "create table half ();\nselect nothing();\n");
    let (success, _, told) = push(&[]);
    assert!(!success && told.contains("20240104000000_bad.sql:2: function nothing() does not exist"), "{told}");
    assert_eq!(remote.one("select to_regclass('late') is not null and to_regclass('half') is null").await, "t");

    // The other side gets the files.
    remote.write("supabase/migrations/20240101000000_tasks.sql", "-- another text");
    let (_, told) = remote.ok(&["migration", "fetch"]);
    assert!(told.contains("Fetched supabase/migrations/20240103000000_notes.sql\n"), "{told}");
    let fetched = |name: &str| std::fs::read_to_string(remote.root.join("supabase/migrations").join(name)).expect(name);
    assert_eq!(fetched("20240101000000_tasks.sql"), TASKS);
    assert_eq!(fetched("20240103000000_notes.sql"), format!("{NOTES};\n"));
    let words = "create table words (word text);\nCOPY words (word) FROM stdin;\none;two\n\\.\nselect 1;\n";
    assert_eq!(fetched("20240103000001_words.sql"), words, "with the data of a copy");
    // Their statements are those that ran.
    let (_, told) = remote.ok(&["migration", "up"]);
    assert!(told.ends_with("Local database is up to date.\n") && !told.contains("was changed"), "{told}");
    remote.write("supabase/migrations/20240103000001_words.sql", &words.replace("one;two", "three"));
    let (_, told) = remote.ok(&["migration", "up"]);
    assert!(
        told.contains("20240103000001_words.sql was changed after it was applied") && !told.contains("notes"),
        "{told}"
    );
    remote
        .one("insert into supabase_migrations.schema_migrations (version, name) values ('20240105000000', '../../x')")
        .await;
    let (success, _, told) = project.run(&["migration", "fetch", "--db-url", &url]);
    assert!(!success && told.contains("cannot be a file") && !project.root.join("x.sql").exists(), "{told}");

    for (wrong, word) in [
        (vec!["db", "push", "--db-url", "postgresql://postgres:no@127.0.0.1:1/x"], "cannot connect to the database"),
        (vec!["db", "push", "--linked"], "pass its database with --db-url"),
        (vec!["db", "push"], "the project is not running"),
        (vec!["migration", "fetch", "--db-url", "nonsense"], "connection string"),
    ] {
        let (success, _, told) = project.run(&wrong);
        assert!(!success && told.contains(word) && told.lines().count() == 1, "{wrong:?}: {told}");
    }
}

/// `db reset` and `migration down` on a database that runs elsewhere, with everything in it that a project can make.
#[actix_web::test]
async fn another_database_is_emptied_and_loaded_again() {
    let project = Project::new(
        "resetting",
        "[db.vault]\napi_key = \"s3cret\"\n",
        &[
            ("supabase/migrations/20240101000000_tasks.sql", TASKS),
            ("supabase/migrations/20240103000000_notes.sql", NOTES),
            ("supabase/seed.sql", "insert into tasks values (1), (2);"),
        ],
    );
    let remote = Project::new("reset-there", "", &[]);
    remote.ok(&["start"]);
    let status = remote.status();
    let (url, key) = (status["DB_URL"].as_str().expect("a URL"), status["ANON_KEY"].as_str().expect("a key"));
    project.ok(&["db", "push", "--db-url", url, "--include-seed", "--yes"]);
    remote.ok(&["migration", "fetch"]);
    remote.write(
        "supabase/migrations/20240104000000_all.sql",
        "create schema inside; create table inside.rooms (id int generated always as identity primary key);
         create extension citext with schema extensions; create extension pg_cron; create extension pgmq;
         create extension hstore with schema public; select pgmq.create('jobs');
         select cron.schedule('nightly', '0 0 * * *', 'select 1');
         create type mood as enum ('good'); create domain word as text; create type pair as (a int, b mood);
         create sequence numbers; create table moods (id serial, m mood, w word, p pair, c extensions.citext, h hstore);
         create view all_moods as select * from moods; create materialized view kept_moods as select * from moods;
         create table parts (id int) partition by range (id); create table part_one partition of parts for values from (0) to (9);
         create statistics of_moods on id, m from moods; create collation plain from \"C\";
         create function add_one(int) returns int language sql return $1 + 1;
         create aggregate total(int) (sfunc = int4pl, stype = int, initcond = '0');
         create operator === (leftarg = int, rightarg = int, function = int4eq);
         create procedure nothing() language sql as 'select 1';
         create text search configuration words (copy = simple);
         create function functions.hello() returns int language sql return 1;
         create function new_person() returns trigger language plpgsql as $$ begin return new; end $$;
         create trigger on_person after insert on auth.users for each row execute function new_person();
         create policy \"own files\" on storage.objects for select using (true);
         create publication mine for table moods; alter publication supabase_realtime add table moods;
         create function no_drops() returns event_trigger language plpgsql as $$ begin raise exception 'not here'; end $$;
         create event trigger no_drops on sql_drop execute function no_drops();
         insert into auth.users (id, email) values (gen_random_uuid(), 'a@x.example');
         insert into storage.buckets (id, name) values ('papers', 'papers');",
    );
    remote.ok(&["migration", "up"]);
    // Everything that is not the platform's: of schemas and extensions, of `public` and `functions`, and beside them.
    let left = "select concat_ws(' ',
        (select string_agg(nspname, ' ' order by nspname) from pg_namespace where nspowner = 'postgres'::regrole),
        (select string_agg(extname, ' ' order by extname) from pg_extension where extowner = 'postgres'::regrole),
        (select string_agg(relname, ' ' order by relname) from pg_class
          where relnamespace in ('public'::regnamespace, 'functions'::regnamespace) and relkind <> 'i'),
        (select string_agg(proname, ' ' order by proname) from pg_proc p
          where pronamespace in ('public'::regnamespace, 'functions'::regnamespace)),
        (select string_agg(typname, ' ' order by typname) from pg_type
          where typnamespace = 'public'::regnamespace and typtype in ('e', 'd')),
        (select string_agg(oprname, ' ') from pg_operator where oprnamespace = 'public'::regnamespace),
        (select string_agg(collname, ' ') from pg_collation where collnamespace = 'public'::regnamespace),
        (select string_agg(cfgname, ' ') from pg_ts_config where cfgnamespace = 'public'::regnamespace),
        (select string_agg(policyname, ' ' order by policyname) from pg_policies where schemaname in ('public', 'storage')),
        (select string_agg(pubname, ' ' order by pubname) from pg_publication),
        (select string_agg(evtname, ' ' order by evtname) from pg_event_trigger where evtname = 'no_drops'),
        (select string_agg(tgname, ' ') from pg_trigger where tgrelid = 'auth.users'::regclass and tgname = 'on_person'),
        (select count(*) from auth.users), (select string_agg(name, ' ') from storage.buckets),
        (select string_agg(version, ' ' order by version) from supabase_migrations.schema_migrations))";
    let full = remote.one(left).await;
    for part in
        ["inside", "citext", "pgmq", "pg_cron", "all_moods", "hello", "pair", "===", "words", "own files", "no_drops"]
    {
        assert!(full.contains(part), "{part}: {full}");
    }
    let (success, _, told) = project.run(&["db", "reset", "--db-url", url]);
    assert!(!success && told.contains("nothing was reset"), "{told}");
    assert_eq!(remote.one(left).await, full);

    let (_, told) = project.ok(&["db", "reset", "--db-url", url, "--yes"]);
    assert!(told.contains("Applying migration 20240103000000_notes.sql..."), "{told}");
    assert!(told.contains("Seeding data from supabase/seed.sql..."), "{told}");
    let fresh = "extensions supabase_migrations pg_net pg_stat_statements pgcrypto supabase_vault uuid-ossp notes tasks own \
                 supabase_realtime supabase_realtime_messages_publication 0 papers 20240101000000 20240103000000";
    assert_eq!(remote.one(left).await, fresh);
    assert_eq!(remote.one("select count(*) from tasks").await, "2");
    let secret = "select decrypted_secret from vault.decrypted_secrets where name = 'api_key'";
    assert_eq!(remote.one(secret).await, "s3cret");
    // The server has gone on, and people can sign up.
    let begun = std::time::Instant::now();
    while remote.get("/rest/v1/tasks?select=id&order=id", key).await != (200, "[{\"id\":1}, \n {\"id\":2}]".to_owned())
    {
        assert!(begun.elapsed().as_secs() < 30, "the API does not see the new tables");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let signed_up = reqwest::Client::new()
        .post(format!("{}/auth/v1/signup", status["API_URL"].as_str().expect("a URL")))
        .header("apikey", key)
        .json(&serde_json::json!({ "email": "b@x.example", "password": "password123" }));
    assert_eq!(signed_up.send().await.expect("an answer").status(), 200);

    let (success, _, told) = project.run(&["migration", "down", "--db-url", url]);
    assert!(!success && told.contains("nothing was reverted"), "{told}");
    project.ok(&["migration", "down", "--db-url", url, "--yes"]);
    let state = "select (to_regclass('notes') is null) || ' ' || (select count(*) from tasks) || ' ' || (select count(*) from auth.users)";
    assert_eq!(remote.one(state).await, "true 2 0");
    project.ok(&["db", "reset", "--db-url", url, "--yes", "--no-seed", "--version", "20240101000000"]);
    assert_eq!(remote.one(state).await, "true 0 0");
}

/// Regression: without versions, the history was replaced unasked, and lost if one of the files could not be recorded.
#[actix_web::test]
async fn the_whole_history_is_repaired_only_after_a_yes_and_in_one_step() {
    let project = Project::new(
        "repaired",
        "",
        &[("supabase/migrations/1_tasks.sql", TASKS), ("supabase/migrations/2_more.sql", "create table more ();")],
    );
    project.ok(&["start"]);
    let url = project.status()["DB_URL"].as_str().expect("a URL").to_owned();
    let history = "select string_agg(version, ' ' order by version) from supabase_migrations.schema_migrations";
    project.write("supabase/migrations/3_late.sql", "create table late ();");
    let repair = |status: &str, more: &[&str]| {
        project.run(&[&["migration", "repair", "--db-url", &url, "--status", status], more].concat())
    };
    for status in ["reverted", "applied"] {
        let (success, _, told) = repair(status, &[]);
        assert!(!success && told.contains("Do you want to repair the entire migration history table"), "{told}");
        assert!(told.ends_with("ferrobase: nothing was repaired: confirm at the terminal, or with --yes\n"), "{told}");
        assert_eq!(project.one(history).await, "1 2");
    }
    let refuse = "alter table supabase_migrations.schema_migrations add constraint refuse check (version <> '3')";
    project.one(refuse).await;
    let (success, _, told) = repair("applied", &["--yes"]);
    assert!(!success && told.contains("refuse"), "{told}");
    assert_eq!(project.one(history).await, "1 2", "what was emptied came back");

    project.one("alter table supabase_migrations.schema_migrations drop constraint refuse").await;
    assert!(repair("applied", &["--yes"]).0);
    assert_eq!(project.one(history).await, "1 2 3");
    // Named versions need no confirmation.
    assert!(repair("reverted", &["2", "3"]).0);
    assert_eq!(project.one(history).await, "1");
    let command = ["migration", "repair", "--status", "reverted"];
    let output = project.command(&command).env("SUPABASE_YES", "1").output().expect("it runs");
    assert!(output.status.success());
    assert_eq!(project.one(history).await, "");
}

/// Regression: `migration up` left the secrets of `[db.vault]` as they were.
#[actix_web::test]
async fn migrations_find_the_secrets_of_the_configuration() {
    let project = Project::new("secretive", "[db.vault]\napi_key = \"env(API_KEY)\"\nother = \"env(OTHER)\"\n", &[]);
    project.write("supabase/.env", "API_KEY=first\n");
    project.ok(&["start"]);
    let secrets = "select string_agg(name || ' ' || decrypted_secret, ', ' order by name) from vault.decrypted_secrets";
    assert_eq!(project.one(secrets).await, "api_key first");
    project.write("supabase/.env", "API_KEY=second\nOTHER=third\n");
    project.write("supabase/migrations/1_seen.sql", &format!("create table seen as {secrets}"));
    project.ok(&["migration", "up"]);
    assert_eq!(project.one("table seen").await, "api_key second, other third");
    // Also if there is no migration to apply, as with the Supabase CLI.
    project.write("supabase/.env", "API_KEY=fourth\n");
    project.ok(&["migration", "up"]);
    assert_eq!(project.one(secrets).await, "api_key fourth, other third");
}

/// Standard input that holds `text`.
fn said(text: &str) -> std::process::Stdio {
    use std::io::{Seek, Write};
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    file.rewind().expect("rewound");
    file.into()
}

#[actix_web::test]
async fn a_database_is_pulled_and_later_its_additions() {
    if installed("client/bin/pg_dump").is_none() {
        return;
    }
    let remote = Project::new("pulled-from", "", &[]);
    remote.ok(&["start"]);
    let url = remote.status()["DB_URL"].as_str().expect("a URL").to_owned();
    remote
        .one(
            "create table people (id int primary key, name text); alter table people enable row level security;
             create policy \"files of all\" on storage.objects for select using (true)",
        )
        .await;
    let project = Project::new("pulling", "", &[]);
    let (printed, told) = project.ok(&["db", "pull", "--db-url", &url]);
    assert_eq!(printed, "Finished supabase db pull.\n");
    assert!(told.contains("Dumping schema from remote database...") && told.contains("=> applied"), "{told}");
    let files = |project: &Project| crate::support::commands::names(&project.root.join("supabase/migrations"));
    let [first] = files(&project).try_into().expect("one file");
    assert!(first.ends_with("_remote_schema.sql"), "{first}");
    let text = std::fs::read_to_string(project.root.join("supabase/migrations").join(&first)).expect("a migration");
    for part in [
        "CREATE TABLE IF NOT EXISTS \"public\".\"people\"",
        "CREATE POLICY \"files of all\" ON \"storage\".\"objects\"",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let (printed, _) = project.ok(&["db", "push", "--db-url", &url]);
    assert_eq!(printed, "Remote database is up to date.\n");

    if installed("../diff/node_modules/@pgkit/migra").is_none() {
        return;
    }
    let (success, _, told) = project.run(&["db", "pull", "--db-url", &url]);
    assert!(!success && told.ends_with("ferrobase: No schema changes found\n"), "{told}");
    remote.one("alter table people add column born date").await;
    project.ok(&["db", "pull", "births", "--db-url", &url, "--yes"]);
    let second = files(&project).pop().expect("a file");
    let text = std::fs::read_to_string(project.root.join("supabase/migrations").join(&second)).expect("a migration");
    assert!(second.ends_with("_births.sql") && text.contains("add column \"born\" date"), "{second}: {text}");
    // What was pulled is a project that starts.
    project.ok(&["start"]);
    assert_eq!(project.one("select count(born) from people").await, "0");
    project.ok(&["stop"]);

    std::fs::remove_file(project.root.join("supabase/migrations").join(&second)).expect("removed");
    let (success, _, told) = project.run(&["db", "pull", "--db-url", &url]);
    assert!(!success && told.contains("does not match local files") && told.contains("--status reverted"), "{told}");
}

#[actix_web::test]
async fn declared_schemas_become_migrations() {
    if installed("../diff/node_modules/@pgkit/migra").is_none() {
        return;
    }
    let project = Project::new(
        "declared",
        "",
        &[
            ("supabase/migrations/1_tasks.sql", "create table tasks (id int primary key);"),
            ("supabase/seed.sql", "insert into tasks values (1);"),
            ("supabase/schemas/1_tasks.sql", "create table tasks (id int primary key, title text);"),
            ("supabase/schemas/views/titles.sql", "create view titles as select title from tasks;"),
        ],
    );
    // It need not run for that.
    let (printed, told) = project.ok(&["db", "diff", "-f", "titles"]);
    let heading = "Creating local database from declarative schemas:\n • supabase/schemas/1_tasks.sql\n • supabase/schemas/views/titles.sql\n";
    assert!(told.contains(heading), "{told}");
    let path = printed.trim().strip_prefix("Created new migration at ").expect("a path").to_owned();
    let text = std::fs::read_to_string(project.root.join(&path)).expect("a migration");
    assert!(text.contains("add column \"title\" text") && text.contains("view \"public\".\"titles\""), "{text}");
    let (printed, told) = project.ok(&["db", "diff"]);
    assert!(printed.is_empty() && told.ends_with("No schema changes found\n"), "{printed}{told}");

    project.write("supabase/schemas/views/titles.sql", "-- wrong\ncreate view titles as\nselect nowhere from tasks;");
    let (success, _, told) = project.run(&["db", "diff"]);
    let place = "supabase/schemas/views/titles.sql:3: column \"nowhere\" does not exist";
    assert!(!success && told.lines().last().is_some_and(|line| line.contains(place)), "{told}");
    // Another database is compared with the migrations.
    let remote = Project::new("undeclared", "", &[]);
    remote.ok(&["start"]);
    remote.one("create table tasks (id int primary key); create table extra ()").await;
    let url = remote.status()["DB_URL"].as_str().expect("a URL").to_owned();
    let (printed, _) = project.ok(&["db", "diff", "--db-url", &url]);
    assert!(printed.contains("create table \"public\".\"extra\"") && printed.contains("drop view"), "{printed}");
}

/// A table for nearly every rule.
const SINS: &str = "
create table bare (id int, password text);
create table tasks (id int primary key, owner uuid references auth.users, kind regproc);
alter table tasks enable row level security;
create policy \"own\" on tasks for select using (auth.uid() = owner);
create policy \"all read\" on tasks for select using (true);
create policy \"all write\" on tasks for insert to anon, authenticated with check (true);
create policy \"trusting\" on tasks for update using ((auth.jwt() -> 'user_metadata' ->> 'role') = 'admin');
create index first on tasks (kind);
create index second on tasks (kind);
create table closed (id int primary key);
alter table closed enable row level security;
create table forgotten (id int primary key);
create policy \"nobody asks it\" on forgotten using (true);
create view people as select id, email from auth.users;
create view safe with (security_invoker) as select id from closed;
create materialized view counts as select count(*) from tasks;
create function loose() returns int language sql as 'select 1';
create function mighty() returns int language sql security definer set search_path = '' as 'select 1';
create extension pg_trgm with schema public;
create table of_account (email text references auth.users (phone));
insert into storage.buckets (id, name, public) values ('papers', 'papers', true);
create policy \"list them\" on storage.objects for select using (bucket_id = 'papers');
";

#[actix_web::test]
async fn advisors_report_open_and_slow_schemas() {
    let project = Project::new("advised", "", &[("supabase/migrations/1_sins.sql", SINS)]);
    project.ok(&["start"]);
    let advisors = |more: &[&str]| {
        let (success, printed, told) = project.run(&[&["db", "advisors"], more].concat());
        let found: Vec<Value> = serde_json::from_str(&printed).unwrap_or_default();
        (success, found, told)
    };
    let (success, found, told) = advisors(&["--level", "info"]);
    assert!(success, "{told}");
    let mut keys: Vec<&str> = found.iter().map(|finding| finding["cache_key"].as_str().expect("a key")).collect();
    // Their end is a hash of the body.
    keys.iter_mut().for_each(|key| *key = key.split("_public_loose_").next().unwrap_or(key));
    keys.sort_unstable();
    let expected = [
        "anon_security_definer_function_executable_public_mighty_",
        "auth_rls_init_plan_public_tasks_own",
        "auth_rls_init_plan_public_tasks_trusting",
        "auth_users_exposed_public_people",
        "authenticated_security_definer_function_executable_public_mighty_",
        "duplicate_index_public_tasks_{first,second}",
        "extension_in_public_pg_trgm",
        "fkey_to_auth_unique_public_of_account_of_account_email_fkey",
        "function_search_path_mutable",
        "materialized_view_in_api_public_counts",
        "multiple_permissive_policies_public_tasks_anon_SELECT",
        "multiple_permissive_policies_public_tasks_authenticated_SELECT",
        "no_primary_key_public_bare",
        "no_primary_key_public_of_account",
        "policy_exists_rls_disabled_public_forgotten",
        "public_bucket_allows_listing_papers",
        "rls_disabled_in_public_public_bare",
        "rls_disabled_in_public_public_forgotten",
        "rls_disabled_in_public_public_of_account",
        "rls_enabled_no_policy_public_closed",
        "rls_policy_always_true_public_tasks_all write",
        "rls_references_user_metadata_public_tasks_trusting",
        "security_definer_view_public_people",
        "sensitive_columns_exposed_public_bare",
        "unindexed_foreign_keys_public_of_account_of_account_email_fkey",
        "unindexed_foreign_keys_public_tasks_tasks_owner_fkey",
        "unsupported_reg_types_public_tasks_kind",
        "unused_index_public_tasks_first",
        "unused_index_public_tasks_second",
    ];
    let missing: Vec<_> = expected.iter().filter(|key| !keys.contains(key)).collect();
    // Every role may be another of the platform's.
    let of_role = |key: &str| key.starts_with("multiple_permissive_policies_public_tasks_") && key.ends_with("_SELECT");
    let more: Vec<_> = keys.iter().filter(|key| !expected.contains(key) && !of_role(key)).collect();
    assert!(missing.is_empty() && more.is_empty(), "missing {missing:?}, more {more:?}");
    let open = found.iter().find(|f| f["cache_key"] == "rls_disabled_in_public_public_bare").expect("a finding");
    assert_eq!(open["detail"], "Table `public.bare` is public, but RLS has not been enabled.");
    assert_eq!(
        (&open["level"], &open["facing"], &open["categories"][0], &open["metadata"]["name"]),
        (&"ERROR".into(), &"EXTERNAL".into(), &"SECURITY".into(), &"bare".into())
    );
    let link = "https://supabase.com/docs/guides/database/database-linter?lint=0013_rls_disabled_in_public";
    assert_eq!(open["remediation"], link);

    let (_, slow, _) = advisors(&["--type", "performance"]);
    let names: std::collections::BTreeSet<&str> = slow.iter().filter_map(|finding| finding["name"].as_str()).collect();
    let expected = ["auth_rls_initplan", "duplicate_index", "multiple_permissive_policies"];
    assert_eq!(names.into_iter().collect::<Vec<_>>(), expected);
    let (success, found, told) = advisors(&["--type", "security", "--level", "error", "--fail-on", "error"]);
    assert!(!success && told == "ferrobase: fail-on is set to error, non-zero exit\n", "{told}");
    assert!(found.iter().all(|finding| finding["level"] == "ERROR"));
    let url = project.status()["DB_URL"].as_str().expect("a URL").to_owned();
    let (printed, _) = project.ok(&["db", "advisors", "-o", "table", "--level", "error", "--db-url", &url]);
    assert!(printed.contains("ERROR | SECURITY | rls_disabled_in_public       | Table `public.bare`"), "{printed}");
    let clean = Project::new("blameless", "", &[]);
    clean.ok(&["start"]);
    let (printed, told) = clean.ok(&["db", "advisors"]);
    assert!(printed.is_empty() && told == "No issues found\n", "{printed}{told}");
    let wrong = project.command(&["db", "advisors", "--level", "loud"]).output().expect("it runs");
    assert_eq!(wrong.status.code(), Some(2));
}

#[actix_web::test]
async fn a_new_project_starts_and_signs_with_a_key_of_its_own() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let root = tempfile::Builder::new().prefix("new project").tempdir_in(place()).expect("a folder");
    let ports = free_ports::<3>().map(|port| port.to_string());
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ferrobase"));
        command.args(arguments).current_dir(root.path()).env_clear().stdin(std::process::Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        for (name, port) in ["API", "DB", "LOCAL_SMTP"].iter().zip(&ports) {
            command.env(format!("SUPABASE_{name}_PORT"), port);
        }
        command
    };
    let run = |arguments: &[&str]| {
        let output = command(arguments).output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    // A key can be generated without a project, too.
    let (success, key, told) = run(&["gen", "signing-key"]);
    let key: Value = serde_json::from_str(&key).expect("a key");
    assert!(success && key["alg"] == "ES256" && key["d"].is_string() && told.contains("signing_keys_path"), "{told}");
    assert_eq!(run(&["init"]), (true, "Finished supabase init.\n".to_owned(), String::new()));
    let (success, _, told) = run(&["init"]);
    assert!(!success && told.contains("--force") && told.lines().count() == 1, "{told}");

    let config = root.path().join("supabase/config.toml");
    let text = std::fs::read_to_string(&config).expect("a configuration");
    let named = text.replace("# signing_keys_path = ", "signing_keys_path = ");
    assert_ne!(text, named);
    std::fs::write(&config, named).expect("written");
    let (success, _, told) = run(&["start"]);
    assert!(!success && told.contains("auth.signing_keys_path names the file "), "{told}");
    assert!(run(&["gen", "signing-key"]).0);
    let (success, printed, told) = run(&["gen", "signing-key", "--append", "--algorithm", "RS256"]);
    assert!(success && printed.is_empty() && told.contains("now contains 2 keys"), "{told}");
    let file = root.path().join("supabase/signing_keys.json");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).expect("the keys").permissions());
    assert_eq!(mode & 0o777, 0o600);
    let keys: Vec<Value> = serde_json::from_slice(&std::fs::read(&file).expect("the keys")).expect("JSON");
    let kinds: Vec<&str> = keys.iter().filter_map(|key| key["alg"].as_str()).collect();
    assert_eq!(kinds, ["ES256", "RS256"]);

    let (success, _, told) = run(&["start"]);
    // As with the Supabase CLI, only the seed is missing.
    let warnings: Vec<&str> = told.lines().filter(|line| line.starts_with("WARN")).collect();
    assert!(success && warnings == ["WARN: no files matched pattern: ./seed.sql"], "{told}");
    let served = format!("http://127.0.0.1:{}/auth/v1/.well-known/jwks.json", ports[0]);
    let served: Value = reqwest::get(served).await.expect("an answer").json().await.expect("keys");
    let kids = |keys: &[Value]| keys.iter().map(|key| key["kid"].to_string()).collect::<Vec<_>>();
    assert_eq!(kids(served["keys"].as_array().expect("keys")), kids(&keys));
    let (_, token, _) = run(&["gen", "bearer-jwt", "--role", "anon"]);
    let header = jsonwebtoken::decode_header(token.trim()).expect("a token");
    assert_eq!(header.kid.as_deref(), keys[0]["kid"].as_str());
    assert!(run(&["stop", "--no-backup"]).0);
    let wrong = command(&["gen", "signing-key", "--algorithm", "HS256"]).output().expect("it runs");
    assert_eq!(wrong.status.code(), Some(2));
}

#[actix_web::test]
async fn invalid_settings_are_reported_with_key_and_line() {
    for (config, told) in [
        ("[auth]\nsite_url = \"not a URL\"\n", "supabase/config.toml:9: auth.site_url must be a URL"),
        ("[auth]\njwt_expiry = \"soon\"\n", "supabase/config.toml:9: auth.jwt_expiry must be "),
        ("[storage]\nfile_size_limit = \"much\"\n", "supabase/config.toml:9: storage.file_size_limit must be a size"),
        ("[auth.email\n", "supabase/config.toml:8: "),
    ] {
        let project = Project::new("wrong", config, &[]);
        let (success, printed, complaint) = project.run(&["start"]);
        assert!(!success && printed.is_empty() && complaint.contains(told), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
    // A variable of another tool keeps its name.
    let project = Project::new("wrong-outside", "[auth]\nsite_url = \"http://localhost\"\n", &[]);
    let output = project.command(&["start"]).env("GOTRUE_JWT_EXP", "soon").output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains("GOTRUE_JWT_EXP must be"));
}
