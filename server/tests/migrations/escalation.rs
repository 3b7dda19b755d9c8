//! A project's code never runs as a superuser.

use ferrobase::migrate;

use super::{Fixture, query};

/// Code that a project tries to run as a superuser. Its errors are ignored.
pub const GRAB: &str = "create function public.grab() returns boolean language plpgsql as $$ begin
    execute 'alter role postgres superuser';

    return true;
  exception when others then
    return true;
  end $$;
  create function public.grab_row() returns trigger language plpgsql as $$ begin perform public.grab(); return new; end $$;
  create function public.grab_ddl() returns event_trigger language plpgsql as $$ begin perform public.grab(); end $$;";

/// Asserts that `postgres` is not a superuser after running `sql` in a separate session, whether it failed or not.
async fn stays_plain(db: &Fixture, sql: &str) {
    let outcome = query(&db.url, sql).await;
    assert_plain(db, sql).await;
    if let Err(error) = outcome {
        assert!(error.as_db_error().is_some(), "{sql}: {error}");
    }
}

pub async fn assert_plain(db: &Fixture, after: &str) {
    let is_super = db.one("select rolsuper from pg_roles where rolname = 'postgres'").await;
    if is_super == "t" {
        // Other tests share the cluster.
        query(&db.admin, "alter role postgres nosuperuser").await.expect("as before");
    }
    assert_eq!(is_super, "f", "a superuser after: {after}");
}

#[tokio::test]
async fn project_code_is_never_run_by_a_superuser() {
    let db = Fixture::with_platform().await;
    query(&db.url, GRAB).await.expect("functions");

    // A trigger on the table that the webhook function writes to, both as an earlier version created it and as it is
    // now.
    query(&db.admin, include_str!("../../../sql/project/webhooks.sql")).await.expect("webhooks");
    query(
        &db.admin,
        "alter function supabase_functions.http_request() owner to supabase_admin;
         delete from _supavisor.platform_files where name = '90_rights.sql'",
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

    // A function that matches better than PostgreSQL's own in the platform's statements.
    let database = db.one("select current_database()").await;
    let format = format!(
        "create function public.format(text, name, text) returns text language plpgsql as
           $$ begin perform public.grab(); return pg_catalog.format($1, $2, $3); end $$;
         create function public.format(text, text) returns text language plpgsql as
           $$ begin perform public.grab(); return pg_catalog.format($1, $2); end $$;
         revoke create on database {database} from supabase_auth_admin"
    );
    query(&db.url, &format).await.expect("a function and a grant less");
    query(&db.admin, "delete from _supavisor.platform_files").await.expect("all files run again");
    migrate::platform(&db.admin).await.expect("platform");
    assert_plain(&db, &format).await;
    let may = format!("select has_database_privilege('supabase_auth_admin', '{database}', 'create')");
    assert_eq!(db.one(&may).await, "t", "the grant is back");

    // A view in place of the history table.
    let history = "create schema supabase_migrations;
                   create view supabase_migrations.schema_migrations as
                     select case when public.grab() then '1' end as version, 'name'::text as name";
    query(&db.url, history).await.expect("a view");
    let known = migrate::project::known(&db.admin, &db.url).await.expect("known");
    assert_eq!(known.history.get("1").map(String::as_str), Some("name"));
    assert_plain(&db, history).await;

    // A key to a table is checked with the rights of the table's owner, and casts its own type.
    let key = "select vault.create_secret('s', 'one');
               create type public.key as enum ('a');
               create function public.uuid_of(public.key) returns uuid language plpgsql as
                 $$ begin perform public.grab(); return (select id from vault.secrets limit 1); end $$;
               create cast (public.key as uuid) with function public.uuid_of(public.key) as implicit;
               create table public.holders (secret public.key references vault.secrets (id));
               insert into public.holders values ('a')";
    query(&db.url, key).await.expect("a row that refers to a secret");
    assert_plain(&db, key).await;

    // A temporary type with a common name.
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

/// Puts functions of the project in place of those that ours called in the extension's schema, which the project owns.
const PLANTED: &str = "alter schema extensions rename to before; create schema extensions;
    create function extensions.pgp_sym_encrypt_bytea(bytea, text, text) returns bytea language plpgsql as
      $$ begin perform public.grab(); return ''; end $$;
    create function extensions.pgp_sym_decrypt_bytea(bytea, text) returns bytea language plpgsql as
      $$ begin perform public.grab(); return ''; end $$;
    create function extensions.hmac(text, text, text) returns bytea language plpgsql as
      $$ begin perform public.grab(); return ''; end $$;
    create function extensions.gen_random_bytes(integer) returns bytea language plpgsql as
      $$ begin perform public.grab(); return ''; end $$;
    create function extensions.http_call_open(text, text) returns text language plpgsql as
      $$ begin perform public.grab(); return ''; end $$;
    create table extensions._hypertables (id integer generated always as identity, relation regclass, time_column name);
    create trigger grab before insert on extensions._hypertables for each row execute function grab_row()";

/// What calls them.
const CALLS: [&str; 5] = [
    "select vault._crypto_aead_det_decrypt(vault._crypto_aead_det_encrypt('a', '', 0), '', 0)",
    "select vault.create_secret('s')",
    "select pgsodium.crypto_aead_det_encrypt('', '', id) from pgsodium.valid_key",
    "select before.http_get('http://127.0.0.1:9/')",
    "create table public.ticks (at timestamptz); select before._remember_hypertable('public.ticks', 'at')",
];

/// The extensions as earlier versions created them.
const EXTENSIONS_OF_OLD: &str = "create or replace function vault._crypto_aead_det_encrypt(
      message bytea, additional bytea, key_id bigint, context bytea default 'pgsodium', nonce bytea default null) returns bytea
    language sql stable security definer set search_path = pg_catalog, pg_temp as $$
      select extensions.pgp_sym_encrypt_bytea(message,
        vault._key() || encode(coalesce(additional, ''), 'hex') || encode(coalesce(nonce, ''), 'hex'),
        'cipher-algo=aes256, s2k-mode=0, compress-algo=0') $$;
    create or replace function vault._crypto_aead_det_decrypt(
      message bytea, additional bytea, key_id bigint, context bytea default 'pgsodium', nonce bytea default null) returns bytea
    language sql stable security definer set search_path = pg_catalog, pg_temp as $$
      select extensions.pgp_sym_decrypt_bytea(
        message, vault._key() || encode(coalesce(additional, ''), 'hex') || encode(coalesce(nonce, ''), 'hex')) $$;
    create or replace function vault._crypto_aead_det_noncegen() returns bytea
    language sql security invoker set search_path = pg_catalog, pg_temp as $$ select extensions.gen_random_bytes(16) $$;
    create or replace function pgsodium._secret(key_uuid uuid) returns text
    language plpgsql stable set search_path = pg_catalog, pg_temp as $$
    begin
      return pg_catalog.encode(extensions.hmac(
        key_uuid::text, pg_catalog.btrim(pg_catalog.pg_read_file('vault.key'), E' \\n'), 'sha256'), 'hex');
    end $$;
    alter extension supabase_vault drop function vault._pgp_sym_encrypt(bytea, text, text);
    alter extension supabase_vault drop function vault._pgp_sym_decrypt(bytea, text);
    alter extension supabase_vault drop function vault._random_bytes(integer);
    alter extension pgsodium drop function pgsodium._pgp_sym_encrypt(bytea, text, text);
    alter extension pgsodium drop function pgsodium._pgp_sym_decrypt(bytea, text);
    alter extension pgsodium drop function pgsodium._hmac(text, text, text);
    alter extension pgsodium drop function pgsodium._random_bytes(integer);
    drop function vault._pgp_sym_encrypt, vault._pgp_sym_decrypt, vault._random_bytes,
      pgsodium._pgp_sym_encrypt, pgsodium._pgp_sym_decrypt, pgsodium._hmac, pgsodium._random_bytes;
    alter extension http drop function ferrobase_http_open(text, text);
    alter extension http drop function ferrobase_http_send(text, text);
    alter extension http drop function ferrobase_http_is_busy(text);
    alter extension http drop function ferrobase_http_result(text);
    alter extension http drop function ferrobase_http_close(text);
    drop function ferrobase_http_open, ferrobase_http_send, ferrobase_http_is_busy, ferrobase_http_result, ferrobase_http_close;
    create function extensions.http_call_open(text, text) returns text language c strict as '$libdir/dblink', 'dblink_connect';
    alter extension http add function extensions.http_call_open(text, text);
    create or replace function extensions.http(request extensions.http_request) returns extensions.http_response
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
    begin
      perform extensions.http_call_open('ferrobase http', 'host=nowhere');
      return null;
    end $$;
    update pg_extension set extversion = '1.7' where extname = 'http';
    alter table _timescaledb_catalog._hypertables set schema extensions;
    grant all on extensions._hypertables to postgres with grant option;
    create or replace function extensions._remember_hypertable(relation regclass, time_column name) returns integer
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
    declare
      new_id integer;
    begin
      insert into extensions._hypertables as h (relation, time_column) values (relation, time_column) returning h.id into new_id;
      return new_id;
    end $$;
    alter extension timescaledb drop schema _timescaledb_catalog;
    drop schema _timescaledb_catalog;
    update _supavisor.platform_files set checksum = 'of then' where name in ('80_extensions.sql', '90_rights.sql')";

#[tokio::test]
async fn what_a_project_puts_into_a_schema_of_its_own_is_not_called_by_extensions() {
    for is_old in [false, true] {
        let db = Fixture::with_platform().await;
        query(&db.url, GRAB).await.expect("functions");
        let create = "create extension pgsodium; create extension http schema extensions; create extension timescaledb schema extensions;
                      create table public.days (at timestamptz); select extensions.create_hypertable('public.days', 'at');
                      select vault.create_secret('kept', 'old'), pgsodium.create_key()";
        query(&db.url, create).await.expect("extensions");
        if is_old {
            db.one(EXTENSIONS_OF_OLD).await;
            let trigger =
                "create trigger grab before insert on extensions._hypertables for each row execute function grab_row()";
            query(&db.url, trigger).await.expect("a trigger of then");
            migrate::platform(&db.admin).await.expect("platform");
        }
        query(&db.url, PLANTED).await.expect("planted");
        for call in CALLS {
            let outcome = query(&db.url, call).await;
            assert_plain(&db, call).await;
            if !call.contains("http_get") {
                outcome.unwrap_or_else(|error| panic!("old: {is_old}, {call}: {error:?}"));
            }
        }
        let kept = "select decrypted_secret from vault.decrypted_secrets where name = 'old'";
        assert_eq!(query(&db.url, kept).await.expect("a secret"), "kept");
        let lists = "select count(*) from _timescaledb_catalog._hypertables";
        assert_eq!(query(&db.url, lists).await.expect("the list"), "2");
        // What only they may execute, and the list that only they may write.
        let open = "select concat_ws(' ',
            (select string_agg(p.oid::regprocedure::text, ' ') from pg_proc p
             where (p.proname like 'ferrobase_http%' or p.pronamespace = 'vault'::regnamespace and p.probin is not null)
               and has_function_privilege('postgres', p.oid, 'execute')),
            (select string_agg(r, ' ') from unnest(array['postgres', 'anon']) r
             where has_table_privilege(r, '_timescaledb_catalog._hypertables', 'insert, delete, trigger')))";
        assert_eq!(db.one(open).await, "");
        db.stop().await;
    }
}

/// The functions that run as the superuser: with its rights, or called by another of them or by a trigger.
const OF_THE_SUPERUSER: &str = "with recursive running as (
      select p.oid, p.oid::regprocedure::text as name, p.prosrc from pg_proc p join pg_roles r on r.oid = p.proowner
      where r.rolsuper and (p.prosecdef or p.prorettype in ('trigger'::regtype, 'event_trigger'::regtype)) and p.prolang <> 12
      union
      select p.oid, p.oid::regprocedure::text, p.prosrc
      from running, regexp_matches(running.prosrc, '([a-z_]\\w*)\\.([a-z_]\\w*)\\(', 'g') called
      join pg_namespace n on n.nspname = called[1]
      join pg_proc p on p.pronamespace = n.oid and p.proname = called[2]
      where n.nspname <> 'pg_catalog'
    ), named as (
      select running.name, n.oid as schema, n.nspname, word[2] as word,
             to_regclass(format('%I.%I', n.nspname, word[2])) as relation, running.prosrc
      from running, regexp_matches(running.prosrc, '([a-z_]\\w*)\\.([a-z_]\\w*)', 'g') word
      join pg_namespace n on n.nspname = word[1])";

#[tokio::test]
async fn what_runs_as_the_superuser_uses_nothing_of_the_projects() {
    let db = Fixture::with_platform().await;
    for extension in ferrobase::extensions::names() {
        let sql = format!("set search_path = extensions; create extension if not exists {extension} cascade");
        query(&db.url, &sql).await.unwrap_or_else(|error| panic!("{extension}: {error:?}"));
    }
    query(&db.admin, include_str!("../../../sql/project/webhooks.sql")).await.expect("webhooks");
    let known = format!(
        "{OF_THE_SUPERUSER} select count(*) from running where name ~ 'vault._key|ferrobase.send_mail|pgtle._write'"
    );
    assert_eq!(db.one(&known).await, "4", "functions are found");
    let foreign = format!(
        "{OF_THE_SUPERUSER} select string_agg(distinct name || ' names ' || nspname || '.' || word, '; ') from named
         where nspname <> 'pg_catalog' and (has_schema_privilege('postgres', schema, 'create')
           or (select pg_has_role('postgres', n.nspowner, 'member') from pg_namespace n where n.oid = schema))"
    );
    assert_eq!(db.one(&foreign).await, "");
    let triggered = format!(
        "{OF_THE_SUPERUSER} select string_agg(distinct name || ' writes ' || relation, '; ') from named
         where has_table_privilege('postgres', relation, 'trigger')
           and prosrc ~* ('(insert into|update|delete from)\\s+' || nspname || '\\.' || word)"
    );
    assert_eq!(db.one(&triggered).await, "");
    db.stop().await;
}

#[tokio::test]
async fn a_trigger_on_stopped_numbers_runs_without_a_superusers_rights() {
    let db = Fixture::with_platform().await;
    query(&db.url, GRAB).await.expect("functions");
    let stop = "select ferrobase.stop_sms('+15551234567', true)";
    for is_old in [false, true] {
        if is_old {
            db.one(
                "alter function ferrobase.stop_sms(text, boolean) owner to supabase_admin;
                 update _supavisor.platform_files set checksum = 'of then' where name = '60_ferrobase.sql'",
            )
            .await;
            migrate::platform(&db.admin).await.expect("platform");
        }
        query(
            &db.url,
            "create or replace trigger grab before insert or delete on _supavisor.sms_stopped for each row execute function grab_row()",
        )
        .await
        .expect("a trigger");
        db.one(
            "insert into _supavisor.outbox (channel, recipient, subject, body_text, body_html)
             values ('sms', '+15551234567', '', 'a', ''), ('mail', '+15551234567', '', 'a', '')",
        )
        .await;
        query(&db.url, stop).await.expect("stopped");
        assert_plain(&db, stop).await;
        assert_eq!(db.one("select string_agg(number, ' ') from _supavisor.sms_stopped").await, "+15551234567");
        assert_eq!(db.one("select count(*) from _supavisor.outbox where channel = 'sms'").await, "0");
        db.one("drop trigger grab on _supavisor.sms_stopped").await;
        query(&db.url, "select ferrobase.stop_sms('+15551234567', false)").await.expect("wanted again");
        assert_eq!(db.one("select count(*) from _supavisor.sms_stopped").await, "0");
    }
    db.stop().await;
}

#[tokio::test]
async fn a_projects_event_trigger_always_keeps_its_owners_rights() {
    let db = Fixture::with_platform().await;
    query(&db.url, GRAB).await.expect("functions");
    let make = "select ferrobase.create_event_trigger('grab', 'ddl_command_end', null, 'public.grab_ddl()')";
    query(&db.url, make).await.expect("an event trigger");
    for way in [
        "alter routine public.grab_ddl() security invoker",
        "set session_replication_role = replica; alter function public.grab_ddl() security invoker",
        "drop function _supavisor.guard_event_triggers() cascade",
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

    // Only the function that was checked becomes one's own, not another of the name.
    let overloads = "create function public.two(integer) returns event_trigger language plpgsql as $$ begin end $$";
    query(&db.url, overloads).await.expect_err("event triggers take no arguments");
    let overloads = "create function public.two(integer) returns integer language sql as 'select 1';
                     create function public.two() returns event_trigger language plpgsql as $$ begin perform public.grab(); end $$";
    query(&db.url, overloads).await.expect("two functions");
    for function in ["public.two(integer)", "public.grab()"] {
        let make = format!("select ferrobase.create_event_trigger('two', 'ddl_command_start', null, '{function}')");
        let refused = query(&db.url, &make).await.expect_err("another function");
        assert_eq!(refused.code().map(|code| code.code()), Some("42P17"), "{refused:?}");
    }
    db.one("create table public.made_by_the_superuser ()").await;
    assert_plain(&db, "a function of the same name").await;
    let make = "select ferrobase.create_event_trigger('two', 'ddl_command_start', null, 'public.two()')";
    query(&db.url, make).await.expect("an event trigger");
    db.one("drop table public.made_by_the_superuser").await;
    assert_plain(&db, make).await;
    db.stop().await;
}

#[tokio::test]
async fn a_foreign_data_wrapper_gets_the_functions_that_were_checked() {
    let db = Fixture::with_platform().await;
    query(&db.url, GRAB).await.expect("functions");
    let planted = "create function extensions.digest(options text[], catalog oid) returns void language plpgsql as
                     $$ begin perform public.grab(); end $$";
    query(&db.url, planted).await.expect("a function");
    let make = "select ferrobase.create_foreign_data_wrapper('w', null, 'extensions.digest(text, text)', null)";
    let refused = query(&db.url, make).await.expect_err("no validator");
    assert_eq!(refused.code().map(|code| code.code()), Some("42501"), "{refused:?}");
    let make = "select ferrobase.create_foreign_data_wrapper('w', 'extensions.gen_random_uuid()', null, null)";
    let refused = query(&db.url, make).await.expect_err("no handler");
    assert_eq!(refused.code().map(|code| code.code()), Some("42501"), "{refused:?}");
    assert_plain(&db, make).await;
    db.stop().await;
}

#[tokio::test]
async fn extension_scripts_do_not_resolve_project_objects() {
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
    // Its schema is its own, even under the empty search path of a dump; an existing schema of a project is not
    // adopted.
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
    // A job created through a function belongs to the role that the function runs as.
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
