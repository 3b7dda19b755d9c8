//! The platform's own SQL: roles, schemas, storage, outbox. Its files can run on any state, so a changed file
//! is simply run again.
//!
//! On the embedded PostgreSQL, what it makes for projects in schema `ferrobase` belongs to an extension, so that dumps leave it out
//! (`docs/decisions/names-of-our-own.md`).

use std::time::Duration;

use super::ledger::Ledger;
use super::runner::{Applied, Plan, Set, Unit, WhenChanged, unwatched};
use super::session::Session;
use super::{MigrateError, files};

/// The roles that the server needs. If some are missing, the database comes from another cluster.
pub(super) const ROLES: [&str; 7] = [
    "anon",
    "authenticated",
    "service_role",
    "authenticator",
    "supabase_auth_admin",
    "supabase_storage_admin",
    "supabase_ferrobase_admin",
];

/// Removes what an earlier version needed once none of its instances is connected any more.
const FORMER_NAMES: &str = include_str!("former_names.sql");

/// Makes what projects call members of an extension.
const MEMBERS: &str = include_str!("members.sql");

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
    let found = session
        .client
        .query_one(
            "select (select count(*) from pg_catalog.pg_roles where rolname = any ($1)),
                    pg_catalog.to_regnamespace('functions') is not null
                      and coalesce(not pg_catalog.has_function_privilege('public', pg_catalog.to_regprocedure(
                        'ferrobase.send_mail(text, text, text, text, jsonb)'), 'execute'), false)",
            &[&ROLES.as_slice()],
        )
        .await?;
    // The ledger of a restored dump records functions that the dump leaves out, or rights to them.
    if found.get::<_, i64>(0) < ROLES.len() as i64 || !found.get::<_, bool>(1) {
        plan.run_all();
    }
    let applied = plan.carry_out(&session, &unwatched).await?;
    session.reset().await?;
    grant_create(&session).await?;
    session.client.batch_execute(FORMER_NAMES).await?;
    session.client.batch_execute(MEMBERS).await?;
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
