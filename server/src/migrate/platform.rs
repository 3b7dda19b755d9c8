//! The platform's own SQL: roles, schemas, storage, outbox. Its files can run again on any state, so one whose
//! text has changed since it last ran is simply run again.

use std::time::Duration;

use super::session::{Record, Session};
use super::{Applied, MigrateError, files};

/// Roles without which the server cannot work; missing ones mean that this database came from another cluster.
const ROLES: [&str; 7] = [
    "anon",
    "authenticated",
    "service_role",
    "authenticator",
    "supabase_auth_admin",
    "supabase_storage_admin",
    "ferrobase_admin",
];

/// Brings roles, schemas and functions of the platform up to date, as the owner whom `url` logs in.
pub async fn platform(url: &str) -> Result<Applied, MigrateError> {
    // Roles belong to the cluster while our lock belongs to one database: two databases of one cluster may meet.
    let mut attempt = 1;
    loop {
        match once(url).await {
            Err(error) if attempt < 10 && is_race(&error) => {
                attempt += 1;
                tokio::time::sleep(Duration::from_millis(50 * attempt)).await;
            }
            outcome => return outcome,
        }
    }
}

fn is_race(error: &MigrateError) -> bool {
    let text = error.to_string();
    text.contains("tuple concurrently") || text.contains("(23505)") || text.contains("(42710)")
}

async fn once(url: &str) -> Result<Applied, MigrateError> {
    let session = Session::connect_alone(url).await?;
    let client = &session.client;
    client
        .batch_execute(
            "set client_min_messages = warning;
             create schema if not exists ferrobase;
             create table if not exists ferrobase.platform_files (
               name text primary key, checksum text not null, applied_at timestamptz not null default now());
             create table if not exists ferrobase.seeded_users (user_id uuid primary key);
             create table if not exists ferrobase.seed_files (
               name text primary key, checksum text not null, applied_at timestamptz not null default now())",
        )
        .await?;
    let roles = client
        .query_one("select count(*) from pg_catalog.pg_roles where rolname = any ($1)", &[&ROLES.as_slice()])
        .await?
        .get::<_, i64>(0);
    if roles < ROLES.len() as i64 {
        client.execute("delete from ferrobase.platform_files", &[]).await?;
    }
    let known: Vec<(String, String)> = client
        .query("select name, checksum from ferrobase.platform_files", &[])
        .await?
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    let mut applied = Applied::default();
    for file in files::platform()? {
        let checksum = file.checksum();
        if known.iter().any(|(name, sum)| *name == file.file && *sum == checksum) {
            applied.unchanged += 1;
            continue;
        }
        let record = Record {
            sql: "insert into ferrobase.platform_files (name, checksum) values ($1, $2)
                  on conflict (name) do update set checksum = excluded.checksum, applied_at = now()",
            values: &[&file.file, &checksum],
        };
        session.run(&file, &record).await?;
        applied.files.push(file.file);
    }
    session.reset().await?;
    grant_create(&session).await?;
    Ok(applied)
}

/// The auth and storage servers add extensions and schemas of their own. A database made from a template does not
/// inherit this grant, so it is looked at every time; an owner who may not give it is told by `doctor`.
async fn grant_create(session: &Session) -> Result<(), MigrateError> {
    session
        .client
        .batch_execute(
            "do $$
             declare
               admin text;
             begin
               foreach admin in array array['supabase_auth_admin', 'supabase_storage_admin'] loop
                 if not pg_catalog.has_database_privilege(admin, current_database(), 'create') then
                   execute format('grant create on database %I to %I', current_database(), admin);
                 end if;
               end loop;
             exception when insufficient_privilege then
               raise warning 'the right to create schemas could not be granted';
             end $$",
        )
        .await?;
    Ok(())
}
