//! The platform's roles, grants, logins, mail, storage functions and reload trigger.

use std::time::Duration;

use ferrobase::migrate::{self, GivenUrls};
use tokio_postgres::NoTls;

use super::{Fixture, query};

#[tokio::test]
async fn the_platform_creates_supabases_roles_and_is_idempotent() {
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
             and nspname in ('auth', 'storage', 'realtime', 'graphql_public', 'functions', 'ferrobase', '_supavisor')",
            "_supavisor auth ferrobase functions graphql_public realtime storage",
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
async fn new_public_tables_are_granted_to_the_api_roles_subject_to_policies() {
    let db = Fixture::new().await;
    migrate::platform(&db.admin).await.expect("platform");
    db.one("create table notes (id int); alter table notes enable row level security; insert into notes values (1)")
        .await;
    assert_eq!(db.one("set role anon; select count(*) from notes").await, "0");
    assert_eq!(db.one("set role service_role; select count(*) from notes").await, "1");
    db.stop().await;
}

/// Databases of 0.1.0: only the creator had rights, and what `postgres` had given itself was the superuser's after the roles
/// changed.
#[tokio::test]
async fn objects_of_the_first_release_get_the_rights_of_new_ones() {
    let db = Fixture::new().await;
    migrate::platform(&db.admin).await.expect("platform");
    db.one(
        "set role supabase_auth_admin;
         create table auth.people (id bigint generated always as identity primary key);
         create function auth.whose() returns text language sql as 'select current_user'",
    )
    .await;
    let rights = "set search_path = ''; select string_agg(line, '; ' order by line) from (
        select format('%s %s', c.oid::regclass, (select string_agg(a::text, ' ' order by a::text) from unnest(c.relacl) a)) line
        from pg_class c where c.relnamespace in ('auth'::regnamespace, 'realtime'::regnamespace) and c.relkind in ('r', 'p', 'v', 'S')
        union all
        select format('%s %s', p.oid::regprocedure, (select string_agg(a::text, ' ' order by a::text) from unnest(p.proacl) a))
        from pg_proc p where p.pronamespace in ('auth'::regnamespace, 'realtime'::regnamespace)) lines";
    let fresh = db.one(rights).await;
    assert!(fresh.contains("dashboard_user=arwd") && fresh.contains("auth.whose() =X/"), "{fresh}");
    db.one(
        "revoke all on all tables in schema auth, realtime from postgres, dashboard_user;
         revoke all on all sequences in schema auth, realtime from postgres, dashboard_user;
         revoke all on all routines in schema auth, realtime from postgres, dashboard_user;
         grant select on auth.people to supabase_admin with grant option;
         delete from _supavisor.platform_files where name = '90_rights.sql'",
    )
    .await;
    assert_ne!(db.one(rights).await, fresh);
    migrate::platform(&db.admin).await.expect("once more");
    // Who could pass the right to read on still can.
    let of_people = "auth.people dashboard_user=arwdDxtm/supabase_auth_admin postgres=ar";
    assert!(fresh.contains(of_people), "{fresh}");
    assert_eq!(db.one(rights).await, fresh.replacen(of_people, &format!("{of_people}*"), 1));
    // What a project takes away since stays away.
    db.one(
        "revoke all on auth.people from postgres;
         delete from _supavisor.platform_files where name = '90_rights.sql'",
    )
    .await;
    migrate::platform(&db.admin).await.expect("again");
    let rights = db.one(rights).await;
    assert!(
        rights.contains("auth.people dashboard_user=arwdDxtm/supabase_auth_admin supabase_auth_admin="),
        "{rights}"
    );
    db.stop().await;
}

#[tokio::test]
async fn the_servers_roles_log_in_with_derived_passwords() {
    let db = Fixture::in_a_new_cluster().await;
    let urls = migrate::prepare(&db.admin, "a secret", &GivenUrls::default()).await.expect("prepare");
    assert_eq!(migrate::prepare(&db.admin, "a secret", &GivenUrls::default()).await.expect("again"), urls);
    for (url, user) in [
        (&urls.rest_url, "authenticator"),
        (&urls.auth_url, "supabase_auth_admin"),
        (&urls.service_url, "supabase_ferrobase_admin"),
    ] {
        assert_eq!(query(url, "select current_user").await.expect("login"), user);
    }
    // The auth server may create objects in its own schema but not in public; the outbox login sees only the outbox.
    query(&urls.auth_url, "create table auth.t ()").await.expect("its own schema");
    assert!(query(&urls.auth_url, "create table public.t ()").await.is_err());
    query(&urls.service_url, "select count(*) from _supavisor.outbox").await.expect("its own table");
    assert!(query(&urls.service_url, "select count(*) from auth.t").await.is_err());
    db.stop().await;
}

/// Regression: a command without the server's settings set passwords that the server could not derive, which locked it
/// out.
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
        // The rule applies once the postmaster has reloaded its configuration.
        match migrate::prepare(&open, "", &GivenUrls::default()).await.expect_err("refused").to_string() {
            text if text.starts_with("cannot connect") => tokio::time::sleep(Duration::from_millis(20)).await,
            text => break text,
        }
    };
    assert!(error.starts_with("the database URL has no password: set JWT_SECRET"), "{error}");
    migrate::prepare(&open, "a secret", &GivenUrls::default()).await.expect("with the secret");
    db.stop().await;
}

#[tokio::test]
async fn two_databases_of_one_cluster_can_be_prepared_concurrently() {
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
async fn only_definer_functions_and_service_role_queue_mail() {
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
    assert_eq!(db.one("select count(*) from _supavisor.outbox").await, "2");
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
async fn ddl_triggers_a_schema_cache_reload() {
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
    let heard = tokio::time::timeout(Duration::from_secs(30), told.recv()).await.expect("in time");
    assert_eq!(heard.as_deref(), Some("reload schema"));
    db.one("drop table t").await;
    let heard = tokio::time::timeout(Duration::from_secs(30), told.recv()).await.expect("in time");
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
    // The owner's migrations create policies on storage and references to auth.
    db.write("1_a.sql", "create table notes (id int); create policy own on storage.objects for select using (true);");
    let source = db.write("2_b.sql", "alter table notes enable row level security;");
    assert_eq!(migrate::dir(&url, &source).await.expect("migrate").files.len(), 2);
    query(&urls.auth_url, "create table auth.t ()").await.expect("the auth server's own schema");
    db.stop().await;
}
