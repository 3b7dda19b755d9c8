//! A project's database: what `postgres` owns, what migrations and extensions expect, and upgrades of older clusters.

use ferrobase::embedded_pg::{EmbeddedOptions, EmbeddedPostgres};
use ferrobase::migrate::{self, GivenUrls};

use super::{Fixture, base_image, query};

#[tokio::test]
async fn the_project_is_owned_by_postgres_who_is_not_a_superuser() {
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
            "grant_foreign_data_wrappers guard_event_triggers pgrst_ddl_watch pgrst_drop_watch publish_generated_columns",
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
        "delete from _supavisor.platform_files",
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
async fn a_projects_migrations_find_what_they_expect() {
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

/// Regression from a public pgTAP suite, in which 181 of 193 tests failed because extension functions could not be
/// called.
#[tokio::test]
async fn extensions_stay_usable_after_a_project_revokes_function_rights() {
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
        // If it was recreated, it would run with the rights of anybody who creates a table.
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

/// On Supabase, `postgres` owns the wrapper of `postgres_fdw`. Here it may use it, and let others use it.
#[tokio::test]
async fn a_project_reads_another_database_through_postgres_fdw() {
    let db = Fixture::with_platform().await;
    let far: tokio_postgres::Config = db.url.parse().expect("a URL");
    let password = String::from_utf8_lossy(far.get_password().expect("a password")).into_owned();
    let server = format!(
        "create server far foreign data wrapper postgres_fdw options (host '127.0.0.1', port '{}', dbname '{}')",
        far.get_ports()[0],
        far.get_dbname().expect("a database")
    );
    let mapping =
        format!("create user mapping for current_user server far options (user 'postgres', password '{password}')");
    let setup = [
        "create table words (word text); insert into words values ('far away')",
        "create extension postgres_fdw with schema extensions",
        &server,
        &mapping,
        "create schema far; import foreign schema public limit to (words) from server far into far",
        "create role fdw_user nologin; grant usage on foreign data wrapper postgres_fdw to fdw_user",
    ];
    for sql in setup {
        query(&db.url, sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    assert_eq!(query(&db.url, "select word from far.words").await.expect("its rows"), "far away");
    for refused in [
        "alter foreign data wrapper postgres_fdw no validator",
        "alter foreign data wrapper postgres_fdw owner to postgres",
        "alter user mapping for current_user server far options (add password_required 'false')",
        "select ferrobase.create_foreign_data_wrapper('loose', 'extensions.postgres_fdw_handler()', null, '{}')",
        "create extension file_fdw",
        "select _supavisor.grant_foreign_data_wrappers()",
    ] {
        let error = query(&db.url, refused).await.expect_err(refused);
        assert_eq!(error.code().map(|code| code.code()), Some("42501"), "{refused}: {error:?}");
    }
    // Those of the administrator's own extensions stay closed, and a database of before catches up.
    db.one("create extension file_fdw").await;
    db.one(
        "revoke usage on foreign data wrapper postgres_fdw from postgres cascade;
         drop event trigger grant_foreign_data_wrappers;
         delete from _supavisor.platform_files where name = '72_foreign_wrappers.sql'",
    )
    .await;
    assert_eq!(db.one(USABLE_WRAPPERS).await, "");
    migrate::platform(&db.admin).await.expect("platform");
    assert_eq!(db.one(USABLE_WRAPPERS).await, "postgres_fdw");
    query(&db.url, "drop extension postgres_fdw cascade; drop role fdw_user").await.expect("the project's to drop");
    db.stop().await;
}

const USABLE_WRAPPERS: &str = "select coalesce(string_agg(fdwname, ' '), '') from pg_foreign_data_wrapper
    where has_foreign_data_wrapper_privilege('postgres', oid, 'usage')";

/// Converts a cluster to the state in which `postgres` was the superuser and owned everything.
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
                    drop role passing; update _supavisor.platform_files set checksum = 'of then'",
    )
    .await
    .expect("as it was");
}

#[tokio::test]
async fn a_database_with_postgres_as_superuser_is_upgraded() {
    let mut db = base_image().await;
    as_of_old(&db).await;
    query(&db.url, "drop schema graphql; create extension hstore; create type mood as enum ('good'); create schema private;
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
        (GRAPHQL, "supabase_admin t"),
        (OWNERS_OF_EXTENSIONS, "hstore pg_stat_statements pgcrypto supabase_vault uuid-ossp"),
        (UNRECORDED_OWNERS, "0"),
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
    // A second start has nothing to do.
    EmbeddedPostgres::start(&options).await.expect("again").stop().await;
}

const GRAPHQL: &str = "select format('%s %s', nspowner::regrole, has_schema_privilege('anon', oid, 'usage')
    and graphql_public.graphql() ? 'errors') from pg_namespace where nspname = 'graphql'";
const OWNERS_OF_EXTENSIONS: &str = "select string_agg(extname, ' ' order by extname) from pg_extension
    where extowner = 'postgres'::regrole";
/// Owners whom `drop role` would not find.
const UNRECORDED_OWNERS: &str = "select count(*) from pg_extension e where extowner <> 10 and not exists (
    select from pg_shdepend d where d.classid = 'pg_extension'::regclass and d.objid = e.oid and d.refobjid = e.extowner
      and d.deptype = 'o' and d.dbid = (select oid from pg_database where datname = current_database()))";

/// Before the schema `graphql`, and when the platform's extensions were still the superuser's.
#[tokio::test]
async fn a_database_from_before_the_schema_graphql_gets_it_and_its_extensions_become_the_projects() {
    let db = base_image().await;
    for extension in ["pg_stat_statements", "supabase_vault"] {
        // As they were made then: there is no statement that changes the owner.
        db.one(&format!("drop extension {extension} cascade")).await;
        let place = if extension == "supabase_vault" { "" } else { " schema extensions" };
        db.one(&format!("create extension {extension}{place}")).await;
    }
    db.one("drop schema graphql; create extension hstore").await;
    db.one("update _supavisor.platform_files set checksum = 'of then'").await;
    query(&db.url, "create extension pg_trgm schema extensions").await.expect("the project's own");
    assert_eq!(db.one(OWNERS_OF_EXTENSIONS).await, "pg_trgm pgcrypto uuid-ossp");
    for _ in 0..2 {
        migrate::prepare(&db.admin, "a secret", &GivenUrls::default()).await.expect("platform");
        assert_eq!(db.one(GRAPHQL).await, "supabase_admin t");
        // What the administrator made beside them stays the administrator's.
        assert_eq!(db.one(OWNERS_OF_EXTENSIONS).await, "pg_stat_statements pg_trgm pgcrypto supabase_vault uuid-ossp");
        assert_eq!(db.one(UNRECORDED_OWNERS).await, "0");
    }
    let owner = "select proowner::regrole from pg_proc where proname = 'create_secret'";
    assert_eq!(db.one(owner).await, "supabase_admin", "its objects stay the platform's");
    query(&db.url, "drop extension pg_stat_statements; drop extension supabase_vault")
        .await
        .expect("the project's to drop");
    db.stop().await;
}
