//! Names of our own: what tools of the database see of them, and what instances of earlier versions still find.

use ferrobase::migrate;
use tokio_postgres::Client;

use super::{Fixture, query};
use crate::support::cluster::connect;

/// What is in the two schemas and belongs to no extension, so that dumps name it.
const SEEN: &str = "
    select coalesce(string_agg(name, ' ' order by name), '') from (
      select n.nspname::text as name, 'pg_namespace'::regclass as class, n.oid from pg_namespace n
      where n.nspname in ('ferrobase', 'functions')
      union all
      select p.oid::regprocedure::text, 'pg_proc'::regclass, p.oid from pg_proc p where p.pronamespace = 'ferrobase'::regnamespace
      union all
      select c.oid::regclass::text, 'pg_class'::regclass, c.oid from pg_class c
      where c.relnamespace = 'ferrobase'::regnamespace and c.relkind in ('r', 'v')
    ) o
    where not exists (select from pg_depend d where d.classid = o.class and d.objid = o.oid and d.deptype = 'e')";

/// Rights that a dump names, because they were changed since their objects became members of an extension.
const CHANGED: &str = "
    select coalesce(string_agg(name, ' ' order by name), '') from (
      select p.oid::regprocedure::text as name, 'pg_proc'::regclass as class, p.oid, p.proacl as rights from pg_proc p
      where p.pronamespace = 'ferrobase'::regnamespace
      union all
      select n.nspname, 'pg_namespace'::regclass, n.oid, n.nspacl from pg_namespace n where n.nspname in ('ferrobase', 'functions')
    ) o
    left join pg_init_privs i on i.classoid = o.class and i.objoid = o.oid and i.objsubid = 0
    where i.initprivs::text is distinct from o.rights::text";

#[tokio::test]
async fn helpers_that_projects_call_are_not_dumped_and_are_recreated_if_missing() {
    let db = Fixture::with_platform().await;
    assert_eq!((db.one(SEEN).await, db.one(CHANGED).await), (String::new(), String::new()));
    let tables = "select count(*) from pg_class where relnamespace = 'ferrobase'::regnamespace and relkind = 'r'";
    assert_eq!(db.one(tables).await, "0");
    // Nothing of it holds a table, which a restore could not drop then.
    let holding = "select count(*) from pg_depend d join pg_class t on t.oid = d.refobjid and t.relnamespace = '_supavisor'::regnamespace
                   join pg_depend m on m.classid = d.classid and m.objid = d.objid and m.deptype = 'e'";
    assert_eq!(db.one(holding).await, "0");

    // A project's own functions beside them are dumped, and so are rights that it gives.
    query(&db.url, "create function functions.mine() returns int language sql return 1").await.expect("its own");
    query(&db.url, "grant usage on schema functions to supabase_read_only_user").await.expect("its right");
    db.one("grant execute on function ferrobase.send_mail(text, text, text, text, jsonb) to dashboard_user").await;
    assert_ne!(db.one(CHANGED).await, "");
    migrate::platform(&db.admin).await.expect("once more");
    assert_eq!((db.one(SEEN).await, db.one(CHANGED).await), (String::new(), "functions".to_owned()));
    for statement in ["drop schema functions cascade", "drop function ferrobase.send_sms(text, text)"] {
        let refused = query(&db.url, statement).await.expect_err(statement);
        assert_eq!(refused.code().map(|code| code.code()), Some("42501"), "{statement}");
    }

    // A dump that was restored has neither, and a ledger that says otherwise.
    let names =
        "select string_agg(oid::regprocedure::text || coalesce(proacl::text, ''), ' ' order by oid::regprocedure::text)
                 from pg_proc where pronamespace = 'ferrobase'::regnamespace";
    let before = db.one(names).await;
    db.one(include_str!("../../src/upgrade/major/release_members.sql")).await;
    db.one("drop schema ferrobase cascade; drop schema functions cascade").await;
    migrate::platform(&db.admin).await.expect("restored");
    assert_eq!(db.one(SEEN).await, "");
    let dashboard = ",dashboard_user=X/supabase_admin";
    assert_eq!(db.one(names).await, before.replace(dashboard, ""));

    // A restore that makes the functions again, without their rights, is noticed too.
    db.one("grant execute on function ferrobase.send_mail(text, text, text, text, jsonb) to public").await;
    migrate::platform(&db.admin).await.expect("once more");
    let open = "select has_function_privilege('anon', 'ferrobase.send_mail(text, text, text, text, jsonb)', 'execute')";
    assert_eq!(db.one(open).await, "f");
    db.stop().await;
}

#[tokio::test]
async fn hourly_functions_are_registered_by_the_documented_name() {
    let db = Fixture::with_platform().await;
    let registered = "select string_agg(function, ' ' order by function) from _supavisor.hourly";
    for (statement, expected) in [
        ("insert into ferrobase.hourly (function) values ('public.a'), ('public.b')", "public.a public.b"),
        ("insert into ferrobase.hourly values ('public.a') on conflict do nothing", "public.a public.b"),
        ("update ferrobase.hourly set function = 'public.c' where function = 'public.b'", "public.a public.c"),
        ("delete from ferrobase.hourly where function = 'public.a'", "public.c"),
    ] {
        query(&db.url, statement).await.expect(statement);
        assert_eq!(db.one(registered).await, expected, "{statement}");
    }
    assert_eq!(query(&db.url, "select function from ferrobase.hourly").await.expect("may read"), "public.c");
    for role in ["anon", "authenticated"] {
        for statement in ["select * from ferrobase.hourly", "insert into ferrobase.hourly values ('public.d')"] {
            let refused = query(&db.url, &format!("set role {role}; {statement}")).await.expect_err(statement);
            assert_eq!(refused.code().map(|code| code.code()), Some("42501"), "{role}: {statement}");
        }
    }
    db.stop().await;
}

/// Moves everything to where the version before had it, and logs in as its role.
async fn as_before(db: &Fixture) -> Client {
    db.one(include_str!("../../src/upgrade/major/release_members.sql")).await;
    db.one(
        "drop view ferrobase.hourly, ferrobase.uploads_under_way;
         drop function ferrobase.hourly_functions(), ferrobase.change_hourly(), ferrobase.unfinished_uploads();
         drop table _supavisor.emptied_buckets;
         do $$ declare name text; begin
           for name in select relname from pg_class where relnamespace = '_supavisor'::regnamespace and relkind = 'r' loop
             execute format('alter table _supavisor.%I set schema ferrobase', name);
           end loop;
         end $$;
         drop schema _supavisor cascade;
         create view ferrobase.uploads_under_way with (security_invoker = true) as
           select u.id::text as id, u.bucket_id, u.key, u.owner_id, greatest(u.size, u.\"offset\") as bytes, u.created_at
           from ferrobase.resumable_uploads u where u.finished_at is null
           union all
           select u.id, u.bucket_id, u.key, u.owner_id, u.in_progress_size, u.created_at
           from storage.s3_multipart_uploads u;
         grant select on ferrobase.uploads_under_way to service_role, postgres;
         alter role supabase_ferrobase_admin rename to ferrobase_admin;
         alter role ferrobase_admin login noinherit password 'p';
         update ferrobase.platform_files set checksum = 'of then';
         insert into ferrobase.project (id, complete) values ('mine', true);
         insert into ferrobase.outbox (recipient, subject, body_text, body_html) values ('a@x.example', 's', 't', 'h');
         insert into ferrobase.hourly values ('public.sweep')",
    )
    .await;
    let login = db.admin.replacen("supabase_admin:", "ferrobase_admin:", 1);
    let (user, rest) = login.split_once("//").and_then(|(_, rest)| rest.split_once('@')).expect("a login");
    assert!(user.starts_with("ferrobase_admin:"), "{user}");
    connect(&format!("postgresql://ferrobase_admin:p@{rest}")).await
}

#[tokio::test]
async fn instances_of_the_previous_version_work_until_the_last_has_stopped() {
    let db = Fixture::in_a_new_cluster().await;
    migrate::platform(&db.admin).await.expect("platform");
    let older = as_before(&db).await;
    assert_eq!(migrate::project::known(&db.admin, &db.url).await.expect("known").id.as_deref(), Some("mine"));
    migrate::platform(&db.admin).await.expect("the next version");
    assert_eq!(db.one(SEEN).await, "");
    assert_eq!(
        db.one("select string_agg(recipient, ' ') from _supavisor.outbox").await,
        "a@x.example",
        "rows are kept"
    );
    assert_eq!(db.one("select string_agg(function, ' ') from _supavisor.hourly").await, "public.sweep");
    assert_eq!(migrate::project::known(&db.admin, &db.url).await.expect("known").id.as_deref(), Some("mine"));

    // What its delivery does with mails, and its requests with uploads.
    for statement in [
        "update ferrobase.outbox set next_attempt_at = now() where id in (
           select id from ferrobase.outbox where failed_at is null order by next_attempt_at limit 5 for update skip locked)",
        "insert into ferrobase.inbox (recipient, subject, body_text, body_html) values ('a', 's', 't', 'h')",
        "update ferrobase.sms_rules set served = true where not served",
        "delete from ferrobase.outbox where id = 1",
    ] {
        assert_eq!(older.execute(statement, &[]).await.expect(statement), 1, "{statement}");
    }
    older.execute("select ferrobase.note_admin_actions('[]')", &[]).await.expect("noted");
    let upload = "set role service_role;
        insert into ferrobase.resumable_uploads (id, bucket_id, key, expires_at) values ('00000000-0000-0000-0000-000000000001', 'b', 'k', now());
        insert into ferrobase.resumable_parts (upload, number, id, size, md5) values ('00000000-0000-0000-0000-000000000001', 1, gen_random_uuid(), 1, '')
          on conflict (upload, number) do nothing;
        update ferrobase.resumable_uploads as u set writer_asked = true where u.id = '00000000-0000-0000-0000-000000000001';
        select count(*) from ferrobase.uploads_under_way";
    assert_eq!(query(&db.admin, upload).await.expect("an upload"), "1");
    for table in ["outbox", "inbox", "sms_stopped", "admin_audit"] {
        let refused = query(&db.admin, &format!("set role anon; select * from ferrobase.{table}")).await;
        assert!(refused.is_err(), "{table} is open");
    }

    drop(older);
    let gone = "select not exists (select from pg_stat_activity where usename = 'ferrobase_admin')";
    while db.one(gone).await != "t" {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    migrate::platform(&db.admin).await.expect("the next start");
    let left = "select string_agg(relname, ' ' order by relname) from pg_class where relnamespace = 'ferrobase'::regnamespace and relkind = 'v'";
    assert_eq!(db.one(left).await, "hourly uploads_under_way");
    assert_eq!(db.one("select to_regrole('ferrobase_admin') is null").await, "t");
    assert_eq!(
        query(&db.admin, "set role service_role; select count(*) from ferrobase.uploads_under_way")
            .await
            .expect("its rights"),
        "1"
    );
    db.stop().await;
}
