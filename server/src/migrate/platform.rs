//! The platform's own SQL: roles, schemas, storage, outbox. Its files can run on any state, so a changed file
//! is simply run again.

use std::time::Duration;

use super::ledger::Ledger;
use super::runner::{Applied, Plan, Set, Unit, WhenChanged, unwatched};
use super::session::Session;
use super::{MigrateError, files};

/// The roles that the server needs. If some are missing, the database comes from another cluster.
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
    // Roles belong to the cluster, but our lock to one database, so two databases of one cluster may collide.
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
    error.to_string().contains("tuple concurrently") || error.has_state("23505") || error.has_state("42710")
}

async fn once(url: &str) -> Result<Applied, MigrateError> {
    let files = files::platform()?;
    let session = Session::connect_alone_for_platform(url).await?;
    let set = Set { files: &files, ledger: Ledger::Platform, when_changed: WhenChanged::RunAgain, unit: Unit::File };
    let mut plan = Plan::of(&session, set).await?;
    let roles = session
        .client
        .query_one("select count(*) from pg_catalog.pg_roles where rolname = any ($1)", &[&ROLES.as_slice()])
        .await?;
    if roles.get::<_, i64>(0) < ROLES.len() as i64 {
        plan.run_all();
    }
    let applied = plan.carry_out(&session, &unwatched).await?;
    session.reset().await?;
    grant_create(&session).await?;
    if !applied.files.is_empty() {
        // No event trigger has noticed the changes.
        session.tell_api().await?;
    }
    Ok(applied)
}

/// The auth and storage servers add extensions and schemas of their own. A database made from a template does not
/// inherit this grant, so it is checked every time. `doctor` reports it if the owner may not grant it.
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
                   execute pg_catalog.format('grant create on database %I to %I', current_database(), admin);
                 end if;
               end loop;
             exception when insufficient_privilege then
               raise warning 'the right to create schemas could not be granted';
             end $$",
        )
        .await?;
    Ok(())
}
