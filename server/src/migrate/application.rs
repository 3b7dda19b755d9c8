//! The application's own schema, and any folder of migrations: numbered files once, definitions whenever they change.
//!
//! A numbered file holds tables and data and is never edited. Definitions (functions, views, triggers, policies, rights) can run on
//! any state: when one of them or the tables have changed, all run again in one transaction.

use super::files::{Source, Superseded};
use super::ledger::Ledger;
use super::runner::{Applied, Plan, Set, Unit, WhenChanged, unwatched};
use super::session::Session;
use super::{MigrateError, SqlFile};

/// Applies the files of `source` that `supabase_migrations.schema_migrations` does not list, in name order. Then runs the
/// definitions if they or the tables have changed.
///
/// Fails if an applied file was changed. Tells the API to reload its schema cache.
pub async fn dir(url: &str, source: &Source) -> Result<Applied, MigrateError> {
    let (files, definitions) = (source.read()?, source.definitions()?);
    if files.is_empty() {
        return Ok(Applied::default());
    }
    let session = Session::connect_alone(url).await?;
    if let Some(superseded) = source.superseded()? {
        take_over(&session, &files, &superseded).await?;
    }
    let numbered =
        Set { files: &files, ledger: Ledger::Migrations, when_changed: WhenChanged::Refuse, unit: Unit::File };
    let mut applied = Plan::of(&session, numbered).await?.carry_out(&session, &unwatched).await?;
    if !definitions.is_empty() {
        let defined = define(&session, &definitions, !applied.files.is_empty()).await?;
        applied.files.extend(defined.files);
        applied.unchanged += defined.unchanged;
    }
    if !applied.files.is_empty() {
        session.tell_api().await?;
    }
    Ok(applied)
}

/// Runs the definitions if one of them has changed, or the tables have.
async fn define(session: &Session, files: &[SqlFile], tables_changed: bool) -> Result<Applied, MigrateError> {
    let set = Set { files, ledger: Ledger::Definitions, when_changed: WhenChanged::RunAgain, unit: Unit::Set };
    let mut plan = Plan::of(session, set).await?;
    if tables_changed {
        plan.run_all();
    }
    plan.carry_out(session, &unwatched).await
}

/// Replaces the records of the earlier files by those of the current ones, which create the same schema. A database
/// that lacks only unreleased files runs them first.
async fn take_over(session: &Session, files: &[SqlFile], superseded: &Superseded) -> Result<(), MigrateError> {
    let known = Ledger::Migrations.entries(session).await?;
    let (applied, missing): (Vec<_>, Vec<_>) = superseded.files.iter().partition(|(checksum, file)| {
        known.get(&file.version).is_some_and(|entry| entry.checksum.as_ref() == Some(checksum))
    });
    let Some((_, last)) = applied.last() else { return Ok(()) };
    let is_unreleased = |file: &SqlFile| superseded.unreleased.iter().any(|later| later.file == file.file);
    if !missing.iter().all(|(_, file)| is_unreleased(file)) {
        return Err(MigrateError::OldHistory { file: last.file.clone() });
    }
    let rest = Set {
        files: &superseded.unreleased,
        ledger: Ledger::Migrations,
        when_changed: WhenChanged::Refuse,
        unit: Unit::File,
    };
    Plan::of(session, rest).await?.carry_out(session, &unwatched).await?;

    let client = &session.client;
    let versions: Vec<&str> = superseded.files.iter().map(|(_, file)| file.version.as_str()).collect();
    session.reset().await?;
    client.batch_execute("begin").await?;
    let delete = "delete from supabase_migrations.schema_migrations where version = any ($1)";
    client.execute(delete, &[&versions]).await?;
    for file in files.iter().filter(|file| superseded.files.iter().any(|(_, old)| old.file == file.file)) {
        Ledger::Migrations.record(session, file).await?;
    }
    client.batch_execute("commit").await?;
    tracing::info!(files = versions.len(), "took over a database created by earlier application files");
    Ok(())
}
