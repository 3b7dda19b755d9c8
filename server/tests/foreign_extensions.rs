//! Extensions of a project's migrations on an external PostgreSQL, which has none of our files.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ferrobase::embedded_pg::{EmbeddedOptions, EmbeddedPostgres};
use ferrobase::jobs::{Jobs, JobsConfig, Outbound};
use ferrobase::migrate::{self, GivenUrls};
use tokio_postgres::Client;

use crate::support::cluster::{connect, place};
use crate::support::outside;
use crate::support::ports::free_port;

/// A server as others install it: only PostgreSQL's own folders are searched for extensions.
async fn foreign(root: &Path) -> EmbeddedPostgres {
    let settings = [
        ("extension_control_path", "$system"),
        ("dynamic_library_path", "$libdir"),
        ("fsync", "off"),
        ("shared_preload_libraries", ""),
    ];
    let options = EmbeddedOptions {
        data_root: root.to_owned(),
        port: free_port(),
        settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        ..EmbeddedOptions::default()
    };
    EmbeddedPostgres::start(&options).await.expect("a server")
}

/// Every one of ours that is SQL alone, an extension that the server has, and what dumps say about one of them.
const MIGRATION: &str = "create extension if not exists pg_net with schema extensions;
create extension pg_cron;
create extension if not exists pgmq;
create schema if not exists tools;
create extension \"pgjwt\" with schema tools cascade;
create extension pg_hashids with schema extensions version '1.3';
create extension pg_jsonschema with schema extensions;
create extension if not exists http with schema extensions;
create extension pg_graphql;
create extension index_advisor with schema extensions cascade;
create extension plpgsql_check with schema extensions;
create extension timescaledb with schema extensions;
create extension pgaudit;
create extension if not exists pg_hashids with schema public;
comment on extension pgjwt is 'JSON Web Token';
create extension hstore with schema tools version '9.9';
create table ticks (at timestamptz default now());
create table shapes (body json check (extensions.json_matches_schema('{\"type\": \"object\"}', body)));
select pgmq.create('letters');
select cron.schedule('tick', '1 second', 'insert into public.ticks default values');
select net.http_post('OUTSIDE/hook', '{\"a\": 1}');
";

async fn one(client: &Client, sql: &str) -> String {
    client.query_one(&format!("select ({sql})::text"), &[]).await.unwrap_or_else(|e| panic!("{sql}: {e:?}")).get(0)
}

async fn migrated(url: &str, folder: &Path, name: &str, text: &str) -> Result<Vec<String>, String> {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file");
    let paths: Vec<PathBuf> = vec![path];
    migrate::project::migrations(url, &paths, None, &|_| {}).await.map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn migrations_get_extensions_on_a_server_without_our_files() {
    let root = tempfile::tempdir_in(place()).expect("a folder");
    let server = foreign(&root.path().join("data")).await;
    let (heard, mut hooks) = tokio::sync::mpsc::unbounded_channel();
    let outside = outside::serve_apart(move |request, body| {
        let heard = heard.clone();
        async move {
            let _ = heard.send(format!("{} {body}", request.path()));
            actix_web::HttpResponse::Ok().finish()
        }
    });
    let migration = MIGRATION.replace("OUTSIDE", &outside);

    // The owner of a hosted database is not a superuser.
    let admin = connect(&server.admin_url).await;
    admin
        .batch_execute("create role chief login superuser password 'tenant'; create role tenant login createrole password 'tenant'")
        .await
        .expect("two roles");
    for (owner, database) in [("tenant", "rented"), ("chief", "owned")] {
        admin.batch_execute(&format!("create database {database} owner {owner}")).await.expect("a database");
        let url = &format!("postgresql://{owner}:tenant@127.0.0.1:{}/{database}", server.port);
        let urls =
            migrate::prepare(url, "a-secret-of-more-than-32-characters-x", &GivenUrls::default()).await.expect(url);
        migrated(url, root.path(), "1_extensions.sql", &migration).await.expect(url);
        let client = connect(url).await;
        for (sql, told) in [
            ("select string_agg(name || '.' || schema, ' ' order by name) from _supavisor.extensions",
             "http.extensions hypopg.extensions index_advisor.extensions pg_cron.public pg_graphql.graphql pg_hashids.extensions \
              pg_jsonschema.extensions pg_net.extensions pgaudit.public pgjwt.tools pgmq.pgmq plpgsql_check.extensions \
              timescaledb.extensions"),
            // PostgreSQL's own are real, in the version that is there.
            ("select string_agg(extname || '.' || extnamespace::regnamespace, ' ' order by extname) from pg_extension
              where extname in ('hstore', 'pgcrypto')", "hstore.tools pgcrypto.extensions"),
            ("select valid from tools.verify(tools.sign('{}', 's'), 's')", "true"),
            ("select extensions.id_encode(1, 'this is my salt')", "NV"),
            ("select pgmq.send('letters', '{\"to\": \"you\"}')", "1"),
            ("select message from pgmq.read('letters', 30, 1)", "{\"to\": \"you\"}"),
            ("select extensions.time_bucket('1 day', timestamptz '2024-02-28 22:10Z') at time zone 'utc'", "2024-02-28 00:00:00"),
            ("select graphql_public.graphql(query => '{ a }') -> 'errors' -> 0 ->> 'message'", "pg_graphql extension is not enabled."),
            ("select current_setting('search_path')", "\"$user\", public"),
        ] {
            if sql.contains("graphql_public") && one(&client, "select to_regnamespace('graphql_public') is null").await == "true" {
                continue;
            }
            assert_eq!(one(&client, sql).await, told, "{url}: {sql}");
        }
        let refused = client.batch_execute("insert into shapes values ('[]')").await.expect_err("no object");
        assert_eq!(refused.code().map(|code| code.code()), Some("23514"));
        let refused =
            client.batch_execute("select extensions.http_get('http://127.0.0.1/')").await.expect_err("not made");
        assert_eq!(refused.code().map(|code| code.code()), Some("0A000"), "{refused:?}");

        // The server's workers serve them.
        let outbound = Outbound { reaches_private: true, api: "127.0.0.1:9".parse().expect("an address") };
        let jobs = JobsConfig { service_url: urls.service_url.clone(), owner_url: url.clone(), outbound };
        let jobs = Jobs::start(jobs).expect("workers");
        let hook =
            tokio::time::timeout(Duration::from_secs(60), hooks.recv()).await.expect("in time").expect("a request");
        assert_eq!(hook, "/hook {\"a\": 1}");
        let begun = Instant::now();
        while one(&client, "select count(*) > 0 from ticks").await == "false" {
            assert!(
                begun.elapsed().as_secs() < 60,
                "{}",
                one(&client, "select array_agg(d) from cron.job_run_details d").await
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        jobs.stop().await;

        // A second time, and what only the server itself can have.
        for (name, sql, told) in [
            ("2_again.sql", "select 1;\ncreate extension pgjwt;", ":2: extension \"pgjwt\" already exists (42710)"),
            (
                "2_vector.sql",
                "-- embeddings\n\ncreate extension if not exists vector with schema extensions;",
                ":3: extension \"vector\" cannot be had on this server: it is compiled",
            ),
            (
                "2_vault.sql",
                "create extension supabase_vault with schema vault;",
                ":1: extension \"supabase_vault\" cannot be had",
            ),
        ] {
            let error = migrated(url, root.path(), name, sql).await.expect_err(name);
            assert!(error.contains(&format!("{name}{told}")) && !error.contains('\n'), "{error}");
            assert!(error.contains("nothing of the file was kept"), "{error}");
        }
        // What was created can be dropped, and created again.
        let dependent = "drop extension if exists pg_jsonschema;";
        let error = migrated(url, root.path(), "3_drop.sql", dependent).await.expect_err("a table depends on it");
        assert!(
            error
                .contains("3_drop.sql:1: cannot drop extension \"pg_jsonschema\" because other objects depend on it: ")
        );
        assert!(error.contains("shapes") && error.contains("(2BP01)"), "{error}");
        assert_eq!(one(&client, "select count(*) from _supavisor.extensions where name = 'pg_jsonschema'").await, "1");
        let drops = "drop extension pg_jsonschema cascade;
                     drop extension if exists pg_hashids, hstore, \"not there\";
                     drop extension pgmq cascade;
                     create extension pg_hashids with schema tools;
                     drop extension timescaledb restrict;";
        migrated(url, root.path(), "3_drop.sql", drops).await.expect("dropped");
        for (sql, told) in [
            (
                "select string_agg(name || '.' || schema, ' ') from _supavisor.extensions
              where name in ('pg_jsonschema', 'pg_hashids', 'pgmq', 'timescaledb')",
                "pg_hashids.tools",
            ),
            ("select tools.id_encode(1, 'this is my salt')", "NV"),
            ("select count(*) from pg_proc where proname in ('json_matches_schema', 'time_bucket')", "0"),
            (
                "select count(*) from pg_proc where proname = 'id_encode' and pronamespace = 'extensions'::regnamespace",
                "0",
            ),
            ("select to_regnamespace('pgmq') is null", "true"),
            ("select count(*) from pg_extension where extname = 'hstore'", "0"),
            ("select count(*) from pg_constraint where conrelid = 'shapes'::regclass and contype = 'c'", "0"),
        ] {
            assert_eq!(one(&client, sql).await, told, "{url}: {sql}");
        }
        let doctor = std::process::Command::new(env!("CARGO_BIN_EXE_ferrobase"))
            .arg("doctor")
            .current_dir(root.path())
            .env("DATABASE_URL", url)
            .output()
            .expect("it runs");
        let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
        for line in [
            "the extension pgjwt is not on this server: its objects were created in schema tools",
            "this server cannot provide the extensions vector, postgis, supabase_vault, ",
        ] {
            assert!(doctor.contains(line), "{doctor}");
        }
    }
    server.stop().await;
}

/// With pg_tle an extension of ours becomes a real one. The stand-in for pg_tle says what it is given.
#[tokio::test]
async fn pg_tle_gets_the_scripts_where_it_is_installed() {
    let root = tempfile::tempdir_in(place()).expect("a folder");
    let server = foreign(&root.path().join("data")).await;
    let url = &server.admin_url;
    migrate::platform(url).await.expect("the platform");
    let client = connect(url).await;
    client
        .batch_execute(
            "create schema pgtle;
             create function pgtle.available_extensions() returns table (name name) language sql as $$ select null::name where false $$;
             create function pgtle.install_extension(text, text, text, text, text[]) returns boolean language plpgsql as $$ begin
               raise exception 'given % % % %', $1, $2, $5, $4 like '%create function @extschema@.sign(%'; end $$;
             set allow_system_table_mods = on;
             insert into pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
               select 99999, 'pg_tle', 10, 'pgtle'::regnamespace, false, '1.4.0'",
        )
        .await
        .expect("pg_tle");
    let error =
        migrated(url, root.path(), "1_jwt.sql", "create extension pgjwt with schema extensions version '0.1';").await;
    let error = error.expect_err("it says what it got");
    assert!(error.contains("given pgjwt 0.2.0 {pgcrypto} t"), "{error}");
    server.stop().await;
}
