//! `db pull`: writes the schema of a database to a new migration. Reference: supabase/cli `internal/db/pull`.
//!
//! If neither the project nor the database has migrations, this is the whole schema ([`schema_of`]). Otherwise it is the
//! difference between the migrations and the database ([`between`]).

use std::collections::BTreeSet;

use anyhow::Context;
use clap::Args;

use super::ask::defaults_to_yes;
use super::diff::{OtherEngines, between};
use super::squash::{rows_beside, schema_of};
use super::target::{Target, TargetArgs};
use super::{open, say};
use crate::cli::database::block_on;
use crate::cli::print_all;
use crate::migrate;
use crate::project::{Project, new_migration_path};

#[derive(Args)]
pub struct PullArgs {
    /// Name of the migration
    #[arg(default_value = "remote_schema")]
    name: String,
    /// Schemas to compare if there are migrations [default: all]
    #[arg(short, long, value_delimiter = ',')]
    schema: Vec<String>,
    /// Do not ask before recording the migration as applied
    #[arg(short, long, env = "SUPABASE_YES", value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
    yes: bool,
    /// Accepted for scripts: it is the only engine
    #[arg(long, hide = true, value_parser = ["migra"])]
    diff_engine: Option<String>,
    #[command(flatten)]
    others: OtherEngines,
    #[command(flatten)]
    target: TargetArgs,
}

pub fn pull(args: &PullArgs) -> anyhow::Result<()> {
    args.others.refuse()?;
    let project = open()?;
    block_on(async {
        let target = args.target.reach(Some(&project)).await?;
        target.require_schemas(&args.schema).await?;
        let history = migrate::project::history(&target.text).await?;
        let (local, remote): (BTreeSet<String>, BTreeSet<String>) =
            (project.migrations()?.versions().into_iter().collect(), history.into_keys().collect());
        in_sync(&local, &remote)?;
        let schema = if local.is_empty() {
            say(&format!("Dumping schema from {} database...", target.place));
            whole(&project, &target).await?
        } else {
            between(&project, &target.url, &args.schema).await?
        };
        anyhow::ensure!(!schema.trim().is_empty(), "No schema changes found");
        let path = new_migration_path(&project, &args.name, chrono::Utc::now());
        std::fs::create_dir_all(project.migrations_dir()).context("cannot create supabase/migrations")?;
        std::fs::write(&path, schema).with_context(|| format!("cannot write {}", path.display()))?;
        say(&format!("Schema written to {}", path.strip_prefix(&project.root).unwrap_or(&path).display()));
        if defaults_to_yes(&format!("Update {} migration history table?", target.place), args.yes) {
            let version =
                migrate::SqlFile::new(&path.file_name().unwrap_or_default().to_string_lossy(), String::new()).version;
            migrate::project::repair(&target.text, &[path], std::slice::from_ref(&version), true).await?;
            say(&format!("Repaired migration history: [{version}] => applied"));
        }
        print_all("Finished supabase db pull.\n")
    })
}

/// The whole schema, including policies and triggers on the platform's tables.
async fn whole(project: &Project, target: &Target) -> anyhow::Result<String> {
    let rows = rows_beside(&target.url, project).await?;
    if !rows.is_empty() {
        say(&format!(
            "WARN: the rows of {} are not included: add them to a migration or to supabase/seed.sql.",
            rows.join(", ")
        ));
    }
    schema_of(&target.url).await
}

/// Fails if the database's history differs from the files.
fn in_sync(local: &BTreeSet<String>, remote: &BTreeSet<String>) -> anyhow::Result<()> {
    let repair = |status: &str, versions: Vec<&String>| {
        let versions = versions.into_iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        (!versions.is_empty()).then(|| format!("ferrobase migration repair --status {status} {versions}"))
    };
    let steps =
        [repair("reverted", remote.difference(local).collect()), repair("applied", local.difference(remote).collect())];
    let steps: Vec<String> = steps.into_iter().flatten().collect();
    anyhow::ensure!(
        steps.is_empty(),
        "The remote database's migration history does not match local files in supabase/migrations directory. Make sure your \
         local git repo is up-to-date. If the error persists, try repairing the migration history table (with the same --db-url, if any): {}",
        steps.join("; ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_that_differs_from_the_files_is_reported_with_the_repair_command() {
        let versions = |all: &[&str]| all.iter().map(|version| (*version).to_owned()).collect::<BTreeSet<_>>();
        in_sync(&versions(&["1", "2"]), &versions(&["1", "2"])).expect("the same");
        let told = in_sync(&versions(&["1", "3"]), &versions(&["1", "2"])).expect_err("another").to_string();
        let steps = "ferrobase migration repair --status reverted 2; ferrobase migration repair --status applied 3";
        assert!(told.ends_with(steps), "{told}");
    }
}
