//! What tools write into migrations and seeds, and what projects expect there: `db pull`, `db diff`, dumps of rows.

use crate::project::Project;

const EARLIER: &str = "create extension if not exists \"pg_graphql\" with schema \"graphql\";
create extension if not exists \"pg_stat_statements\" with schema \"extensions\";
create extension if not exists \"supabase_vault\" with schema \"vault\";
drop extension if exists \"pg_net\";
create schema if not exists \"pgmq\";
create extension if not exists \"pgmq\" with schema \"pgmq\";
select pgmq.create('jobs');
create extension if not exists pg_trgm with schema extensions version '0.9';
create extension if not exists \"pgaudit\" with schema \"extensions\";
create extension if not exists pg_repack;
alter role authenticator set pgaudit.log = 'ddl';
create table integrations (secret uuid references vault.secrets (id) on delete cascade);
insert into integrations select vault.create_secret('s');
drop publication if exists supabase_realtime;
create publication supabase_realtime;
create table prices (net int, gross int generated always as (net * 2) stored);
alter table prices replica identity full;
alter publication supabase_realtime add table prices;
insert into prices values (1);
update prices set net = 2;
";

/// After a dump's header, nothing is found without its schema.
const DUMPED: &str = "SELECT pg_catalog.set_config('search_path', '', false);
CREATE EXTENSION IF NOT EXISTS \"pgsodium\";
CREATE PUBLICATION \"supabase_realtime_messages_publication\" WITH (publish = 'insert, update, delete, truncate');
ALTER PUBLICATION \"supabase_realtime_messages_publication\" OWNER TO \"postgres\";
CREATE EXTENSION \"citext\" WITH SCHEMA \"public\";
GRANT ALL ON FUNCTION \"public\".\"of_another_version\"(\"text\") TO \"anon\";
CREATE TABLE \"public\".\"letters\" (\"id\" bigint generated always as identity);
ALTER TABLE \"public\".\"letters\" OWNER TO \"postgres\";
";

const TEXTS: &str = "create extension if not exists pg_tle;
select pgtle.uninstall_extension_if_exists('greetings');
select pgtle.install_extension('greetings', '1.0', 'Says ''hello''',
  $text$ create function hello() returns text language sql as $$ select 'hello' $$; $text$, array['pgcrypto']);
select pgtle.install_update_path('greetings', '1.0', '1.1',
  $text$ create or replace function hello() returns text language sql as $$ select 'hello again' $$; $text$);
create extension greetings with schema public;
";

#[actix_web::test]
async fn migrations_written_by_tools_run() {
    let project = Project::new(
        "tools",
        "",
        &[
            ("supabase/migrations/1_earlier.sql", EARLIER),
            ("supabase/migrations/2_remote_schema.sql", DUMPED),
            ("supabase/migrations/3_texts.sql", TEXTS),
            (
                "supabase/seed.sql",
                "SELECT pg_catalog.setval('\"pgsodium\".\"key_key_id_seq\"', 1, false);\n\
                 SELECT pg_catalog.setval('\"cron\".\"jobid_seq\"', 7, true);\n\
                 SELECT pg_catalog.setval('\"public\".\"letters_id_seq\"', 41, true);\n\
                 INSERT INTO \"public\".\"letters\" DEFAULT VALUES;\n",
            ),
        ],
    );
    project.ok(&["start"]);
    assert_eq!(project.one("select id from letters").await, "42");
    let extensions = "select string_agg(extname, ' ' order by extname) from pg_extension
                      where extname in ('pg_net', 'pgmq', 'pg_graphql', 'pgsodium', 'pg_trgm', 'pgaudit', 'greetings', 'pg_repack')";
    assert_eq!(project.one(extensions).await, "greetings pg_graphql pg_repack pg_trgm pgaudit pgmq pgsodium");
    // Objects that the superuser runs are in schemas where nobody else can create anything.
    let owners = "select string_agg(nspname || '=' || nspowner::regrole, ' ' order by nspname) from pg_namespace
                  where nspname in ('pgmq', 'pgsodium', 'pgtle', 'graphql')";
    assert_eq!(
        project.one(owners).await,
        "graphql=supabase_admin pgmq=postgres pgsodium=supabase_admin pgtle=supabase_admin"
    );
    assert_eq!(project.one("select pgmq.send('jobs', '{}')").await, "1");

    // An extension given as SQL text belongs to its creator and grants no rights.
    let owner = "select hello() || ' ' || proowner::regrole from pg_proc where proname = 'hello'";
    assert_eq!(project.one(owner).await, "hello postgres");
    assert_eq!(project.one("alter extension greetings update to '1.1'; select hello()").await, "hello again");
    for (refused, why) in [
        ("pgtle.install_extension('pgcrypto', '1', '', '')", "control file already exists for the pgcrypto extension"),
        ("pgtle.install_extension('../x', '1', '', '')", "invalid extension name: \"../x\""),
        ("pgtle.install_extension('x', '1''\n', '', '')", "invalid extension version: \"1'"),
        (
            "pgtle.uninstall_extension('greetings')",
            "cannot uninstall extension \"greetings\", which is created in this database",
        ),
        ("pgtle.register_feature('now', 'passcheck')", "hooks of pg_tle are not served here"),
    ] {
        let tried = format!(
            "create function tried() returns text language plpgsql as $$ begin perform {refused}; return 'done';
             exception when others then return sqlerrm; end $$"
        );
        project.one(&tried).await;
        let told = project.one("select tried()").await;
        assert!(told.starts_with(why), "{refused}: {told}");
        project.one("drop function tried").await;
    }
    project.one("drop extension greetings").await;
    project.one("select pgtle.uninstall_extension('greetings')").await;
    assert_eq!(project.one("select count(*) from pg_available_extensions where name = 'greetings'").await, "0");

    // A trigger that sends the same row twice in one transaction sends two messages.
    let sent = "begin; select realtime.send(p, 'a', 'x'), realtime.send(p, 'b', 'x')
                from (select '{\"id\": \"0e7e8a8e-33a1-4c4c-8f5a-0d4f2f7c8f11\"}'::jsonb) as row (p); commit";
    project.one(sent).await;
    assert_eq!(project.one("select count(*) from realtime.messages where topic = 'x'").await, "2");

    // The error about an unavailable extension says how to get it.
    project.write("supabase/migrations/4_places.sql", "create extension postgis with schema extensions;");
    let (success, _, told) = project.run(&["migration", "up"]);
    assert!(!success && told.contains("4_places.sql:1: extension \"postgis\" is not available"), "{told}");
    assert!(told.contains("PG_BIN_DIR"), "{told}");
}
