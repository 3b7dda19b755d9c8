//! Checks of the database.

use tokio_postgres::Client;

use super::Finding;
use crate::db;

/// A query of the catalogs. Each row is a finding, whose sentence is in the first column.
struct Question {
    sql: &'static str,
    /// Reported if there is no row.
    good: &'static str,
    as_finding: fn(String) -> Finding,
}

/// Extensions of Supabase that only the server itself can have, because they are compiled or keep a key in the cluster.
const COMPILED: [&str; 8] = ["vector", "postgis", "supabase_vault", "pgsodium", "pgroonga", "rum", "pg_tle", "plv8"];

/// In each query, `$1` is the list of exposed schemas.
const QUESTIONS: [Question; 12] = [
    Question {
        good: "roles",
        as_finding: Finding::Problem,
        sql: "select format('role %s is missing: run ferrobase migrate', wanted)
              from unnest(array['anon', 'authenticated', 'service_role', 'authenticator', 'supabase_auth_admin',
                                'supabase_storage_admin', 'supabase_ferrobase_admin']) as wanted
              where $1::text[] is not null and not exists (select from pg_roles where rolname = wanted)",
    },
    Question {
        good: "service_role bypasses row level security",
        as_finding: Finding::Problem,
        sql: "select 'service_role has no BYPASSRLS: a superuser has to run ''alter role service_role bypassrls'''
              from pg_roles where $1::text[] is not null and rolname = 'service_role' and not rolbypassrls",
    },
    Question {
        good: "authenticator can switch to every API role and is not a superuser",
        as_finding: Finding::Problem,
        sql: "select case when rolsuper or rolbypassrls
                       then format('authenticator must not be %s', case when rolsuper then 'a superuser' else 'BYPASSRLS' end)
                       else format('authenticator may not become %s: grant %1$s to authenticator', wanted) end
              from pg_roles, unnest(array['anon', 'authenticated', 'service_role']) as wanted
              where $1::text[] is not null and rolname = 'authenticator'
                and exists (select from pg_roles where rolname = wanted)
                and (rolsuper or rolbypassrls or not pg_has_role('authenticator', wanted, 'member'))",
    },
    Question {
        good: "the auth server may change its schema",
        as_finding: Finding::Problem,
        sql: "select format('supabase_auth_admin lacks %s', lack)
              from (select 'CREATE on this database' as lack
                    where not has_database_privilege('supabase_auth_admin', current_database(), 'create')
                    union all
                    select 'CREATE on schema auth'
                    from pg_namespace where nspname = 'auth' and not has_schema_privilege('supabase_auth_admin', oid, 'create')
                   ) as lacks
              where $1::text[] is not null and exists (select from pg_roles where rolname = 'supabase_auth_admin')",
    },
    Question {
        good: "the schema cache reloads automatically after DDL",
        as_finding: Finding::Note,
        sql: "select 'there is no event trigger pgrst_ddl_watch (it takes a superuser): after DDL of your own run ''notify pgrst, $$reload schema$$'''
              where $1::text[] is not null and not exists (select from pg_event_trigger where evtname = 'pgrst_ddl_watch' and evtenabled <> 'D')",
    },
    Question {
        good: "extensions pgcrypto and uuid-ossp",
        as_finding: Finding::Note,
        sql: "select format('extension %s is not installed', wanted)
              from unnest(array['pgcrypto', 'uuid-ossp']) as wanted
              where $1::text[] is not null and not exists (select from pg_extension where extname = wanted)",
    },
    Question {
        good: "every installed extension is served",
        as_finding: Finding::Note,
        sql: "select format('the extension %s: %s', extname, obj_description(oid, 'pg_extension'))
              from pg_extension where $1::text[] is not null and obj_description(oid, 'pg_extension') ~ 'not served by Ferrobase' order by 1",
    },
    Question {
        good: "realtime can follow the database's log",
        as_finding: Finding::Note,
        sql: "select lack || ': without it realtime has no changes of tables, no broadcasts of the database and one instance only'
              from (select format('wal_level is %s: set wal_level = logical and restart PostgreSQL', current_setting('wal_level')) as lack
                    where current_setting('wal_level') <> 'logical'
                    union all
                    select format('no role may replicate: a superuser has to run alter role %I replication', current_user)
                    where not exists (select from pg_roles where rolname in ('supabase_replication_admin', current_user)
                                                             and (rolreplication or rolsuper))
                    union all
                    select 'publication supabase_realtime does not exist: run ferrobase migrate'
                    where not exists (select from pg_publication where pubname = 'supabase_realtime')) as lacks
              where $1::text[] is not null",
    },
    Question {
        good: "every exposed table has row level security",
        as_finding: Finding::Problem,
        sql: "select format('%I.%I has no row level security, and %s may %s: alter table %1$I.%2$I enable row level security',
                            n.nspname, c.relname, string_agg(distinct r.rolname, ' and '),
                            lower(string_agg(distinct verb, ', ')))
              from pg_class c
              join pg_namespace n on n.oid = c.relnamespace
              cross join (select oid, rolname from pg_roles where rolname in ('anon', 'authenticated')) r
              cross join unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE']) as verb
              where n.nspname = any ($1) and c.relkind in ('r', 'p') and not c.relrowsecurity
                and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')
                and has_schema_privilege(r.oid, n.oid, 'usage') and has_table_privilege(r.oid, c.oid, verb)
              group by n.nspname, c.relname
              order by 1",
    },
    Question {
        good: "no exposed view bypasses row level security",
        as_finding: Finding::Note,
        sql: "select format('view %I.%I reads with its owner''s rights (alter view … set (security_invoker = on) if that is not meant)',
                            n.nspname, c.relname)
              from pg_class c join pg_namespace n on n.oid = c.relnamespace
              where n.nspname = any ($1) and c.relkind = 'v'
                and not coalesce((select option_value::boolean from pg_options_to_table(c.reloptions)
                                  where option_name = 'security_invoker'), false)
                and (has_table_privilege('anon', c.oid, 'select') or has_table_privilege('authenticated', c.oid, 'select'))
              order by 1",
    },
    Question {
        good: "every exposed security definer function sets its search path",
        as_finding: Finding::Problem,
        sql: "select format('%s runs with its owner''s rights but does not set search_path', p.oid::regprocedure)
              from pg_proc p join pg_namespace n on n.oid = p.pronamespace
              where (n.nspname = any ($1) or n.nspname = 'functions') and p.prosecdef
                and not exists (select from unnest(p.proconfig) as setting where setting like 'search_path=%')
                and (has_function_privilege('anon', p.oid, 'execute') or has_function_privilege('authenticated', p.oid, 'execute'))
              order by 1",
    },
    Question {
        good: "API roles cannot create objects",
        as_finding: Finding::Problem,
        sql: "select format('%s may create objects in schema %I: revoke create on schema %2$I from public, %1$s', r.rolname, n.nspname)
              from pg_namespace n
              cross join (select oid, rolname from pg_roles where rolname in ('anon', 'authenticated')) r
              where n.nspname = any ($1) and has_schema_privilege(r.oid, n.oid, 'create')
              order by 1",
    },
];

/// All findings about the database at `url`, which must log in as its owner.
pub async fn examine(url: &str, schemas: &[String]) -> anyhow::Result<Vec<Finding>> {
    let (client, connection) =
        db::connect(&url.parse()?).await.map_err(|error| anyhow::anyhow!("cannot connect to the database: {error}"))?;
    let connection = tokio::spawn(connection);
    let mut findings = vec![version(&client).await?, rights(&client).await?];
    let are_there: bool = client
        .query_one("select count(*) = 2 from pg_roles where rolname in ('anon', 'authenticated')", &[])
        .await?
        .get(0);
    // Without the API roles, there are no privileges to check.
    for question in if are_there { &QUESTIONS[..] } else { &QUESTIONS[..1] } {
        let rows = client.query(question.sql, &[&schemas]).await?;
        if rows.is_empty() {
            findings.push(Finding::Good(question.good.to_owned()));
        }
        findings.extend(rows.iter().map(|row| (question.as_finding)(row.get(0))));
    }
    findings.extend(extensions(&client).await?);
    findings.extend(mail(&client).await?);
    connection.abort();
    Ok(findings)
}

async fn version(client: &Client) -> Result<Finding, tokio_postgres::Error> {
    let row = client
        .query_one("select current_setting('server_version'), current_setting('server_version_num')::int", &[])
        .await?;
    let (text, number): (String, i32) = (row.get(0), row.get(1));
    let text = format!("PostgreSQL {text}");
    Ok(if number < 150_000 {
        Finding::Problem(format!("{text} is too old: 15 or newer is needed"))
    } else {
        Finding::Good(text)
    })
}

/// What the owner may do. A superuser may do anything; other owners need two privileges for the first migration.
async fn rights(client: &Client) -> Result<Finding, tokio_postgres::Error> {
    let row = client
        .query_one(
            "select rolname, rolsuper, rolcreaterole, has_database_privilege(current_database(), 'create')
             from pg_catalog.pg_roles where rolname = current_user",
            &[],
        )
        .await?;
    let (name, superuser, createrole, create): (String, bool, bool, bool) =
        (row.get(0), row.get(1), row.get(2), row.get(3));
    let lacking: Vec<&str> = [("CREATEROLE", createrole), ("CREATE on this database", create)]
        .into_iter()
        .filter_map(|(right, there)| (!there && !superuser).then_some(right))
        .collect();
    Ok(if lacking.is_empty() {
        Finding::Good(format!("{name} may set up the platform{}", if superuser { " (superuser)" } else { "" }))
    } else {
        Finding::Problem(format!("{name} lacks {}", lacking.join(" and ")))
    })
}

/// On a server without our files: whose objects were created without the extension, and which extensions it cannot have.
async fn extensions(client: &Client) -> Result<Vec<Finding>, tokio_postgres::Error> {
    let foreign = "select to_regclass('_supavisor.extensions') is not null
                          and not exists (select from pg_available_extensions where comment like '%Ferrobase%')";
    if !client.query_one(foreign, &[]).await?.get::<_, bool>(0) {
        return Ok(Vec::new());
    }
    let told = "select format('the extension %s is not on this server: its objects were created in schema %s, and PostgreSQL does not list it',
                              name, schema)
                from _supavisor.extensions order by name";
    let mut findings: Vec<Finding> =
        client.query(told, &[]).await?.iter().map(|row| Finding::Note(row.get(0))).collect();
    let lacking =
        "select string_agg(wanted, ', ' order by place) from unnest($1::text[]) with ordinality as list (wanted, place)
                   where not exists (select from pg_available_extensions where name = wanted)";
    findings.push(match client.query_one(lacking, &[&COMPILED.as_slice()]).await?.get::<_, Option<String>>(0) {
        Some(names) => Finding::Note(format!(
            "this server cannot provide the extensions {names}: a migration that creates one is refused"
        )),
        None => Finding::Good("the server has Supabase's compiled extensions".to_owned()),
    });
    Ok(findings)
}

/// Mails and texts that will not be delivered any more.
async fn mail(client: &Client) -> Result<Option<Finding>, tokio_postgres::Error> {
    let there: bool = client.query_one("select to_regclass('_supavisor.outbox') is not null", &[]).await?.get(0);
    if !there {
        return Ok(None);
    }
    let row = client
        .query_one(
            "select count(*) filter (where failed_at is not null),
                    count(*) filter (where failed_at is null and attempts > 0),
                    coalesce(max(last_error), '') from _supavisor.outbox",
            &[],
        )
        .await?;
    let (failed, waiting, error): (i64, i64, String) = (row.get(0), row.get(1), row.get(2));
    Ok(Some(match (failed, waiting) {
        (0, 0) => Finding::Good("no mail is stuck".to_owned()),
        (0, _) => Finding::Note(format!("{waiting} message(s) wait for a retry: {error}")),
        _ => Finding::Problem(format!("{failed} message(s) could not be delivered (see _supavisor.outbox): {error}")),
    }))
}
