//! Demo data: loaded only into a database without accounts of its own; loading it again has no effect.

use super::MigrateError;
use super::files::Source;
use super::ledger::Ledger;
use super::runner::{Plan, Set, Unit, WhenChanged, unwatched};
use super::session::Session;

/// What a call of [`seed`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seeded {
    /// These files were run.
    Loaded(Vec<String>),
    /// The same files had been loaded before; nothing was touched.
    AlreadyLoaded,
}

/// Loads the files of `source` in one transaction and records the users that they create.
///
/// Unchanged files that were loaded before are skipped, whatever the database contains now. Otherwise a
/// database with users that no seed created is refused: demo data must not be mixed with real data.
pub async fn seed(url: &str, source: &Source) -> Result<Seeded, MigrateError> {
    let files = source.read()?;
    if files.is_empty() {
        return Ok(Seeded::Loaded(Vec::new()));
    }
    let session = Session::connect_alone(url).await?;
    let set = Set { files: &files, ledger: Ledger::DemoSeed, when_changed: WhenChanged::RunAgain, unit: Unit::Set };
    let plan = Plan::of(&session, set).await?;
    if plan.is_empty() {
        return Ok(Seeded::AlreadyLoaded);
    }
    refuse_foreign_users(&session).await?;
    Ok(Seeded::Loaded(plan.carry_out(&session, &unwatched).await?.files))
}

/// Whether accounts made by a seed exist; their passwords are public knowledge.
pub async fn has_demo_accounts(url: &str) -> Result<bool, MigrateError> {
    let session = Session::connect(url).await?;
    if !has_users_table(&session).await? {
        return Ok(false);
    }
    let row = session
        .client
        .query_one("select exists (select from auth.users join _supavisor.seeded_users on user_id = id)", &[])
        .await?;
    Ok(row.get(0))
}

async fn has_users_table(session: &Session) -> Result<bool, MigrateError> {
    Ok(session
        .client
        .query_one(
            "select to_regclass('auth.users') is not null and to_regclass('_supavisor.seeded_users') is not null",
            &[],
        )
        .await?
        .get(0))
}

async fn refuse_foreign_users(session: &Session) -> Result<(), MigrateError> {
    if !has_users_table(session).await? {
        return Ok(());
    }
    let row = session
        .client
        .query_one(
            "select count(*), coalesce(min(coalesce(email, phone, id::text)), '') from auth.users
             where id not in (select user_id from _supavisor.seeded_users)",
            &[],
        )
        .await?;
    match row.get::<_, i64>(0) {
        0 => Ok(()),
        count => Err(MigrateError::ForeignUsers { count, example: row.get(1) }),
    }
}
