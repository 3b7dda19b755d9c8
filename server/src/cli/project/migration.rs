//! `migration new|list|up|down|repair|fetch`; `squash` has a file of its own.

use std::collections::BTreeSet;

use anyhow::Context;
use clap::{Subcommand, ValueEnum};

use super::ask::{answers_yes, defaults_to_yes};
use super::database::{ElsewhereArgs, rebuild, rebuild_remote};
use super::pending::pending;
use super::serve::Extent;
use super::squash::squash;
use super::target::{TargetArgs, store_secrets};
use super::{new_migration, open, say};
use crate::cli::database::block_on;
use crate::migrate;
use crate::project::Project;

#[derive(Subcommand)]
pub enum MigrationCommand {
    /// Create an empty migration, or one with the content of standard input
    New { name: String },
    /// List the migrations in the files and in the database
    List(TargetArgs),
    /// Apply the migrations that the database lacks
    Up {
        /// Also apply those older than the newest applied one
        #[arg(long)]
        include_all: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Undo the last migrations: the database is recreated without them, and its data is lost
    Down {
        /// How many to undo [default: 1]
        #[arg(long, value_name = "N", conflicts_with = "version")]
        last: Option<usize>,
        /// The last migration to keep
        version: Option<String>,
        /// Do not ask
        #[arg(short, long, env = "SUPABASE_YES", value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
        yes: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Replace the migrations by one file with the resulting schema
    Squash {
        /// Replace those up to this version only
        #[arg(long)]
        version: Option<String>,
        /// Accepted for scripts: the project's own database is always used
        #[arg(long)]
        local: bool,
        #[command(flatten)]
        elsewhere: ElsewhereArgs,
    },
    /// Write the migrations recorded in a database to files
    Fetch {
        /// Do not ask before replacing files
        #[arg(short, long, env = "SUPABASE_YES", value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
        yes: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Correct the migration history without running anything
    Repair {
        /// The versions to correct [default: the whole history]
        versions: Vec<String>,
        #[arg(long)]
        status: HistoryStatus,
        /// Do not ask before the whole history is replaced
        #[arg(short, long, env = "SUPABASE_YES", value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
        yes: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub enum HistoryStatus {
    Applied,
    Reverted,
}

pub fn migration(command: MigrationCommand) -> anyhow::Result<()> {
    let project = open()?;
    match command {
        MigrationCommand::New { name } => new_migration(&project, &name),
        MigrationCommand::List(target) => list(&project, &target),
        MigrationCommand::Up { include_all, target } => up(&project, &target, include_all),
        MigrationCommand::Down { last, version, yes, target } => down(&project, &target, last, version.as_deref(), yes),
        MigrationCommand::Squash { version, local: _, elsewhere } => {
            elsewhere.refuse_history()?;
            squash(&project, version.as_deref())
        }
        MigrationCommand::Fetch { yes, target } => fetch(&project, &target, yes),
        MigrationCommand::Repair { versions, status, yes, target } => repair(&project, &target, &versions, status, yes),
    }
}

fn list(project: &Project, target: &TargetArgs) -> anyhow::Result<()> {
    let local: BTreeSet<String> = project.migrations()?.versions().into_iter().collect();
    let history = block_on(async { Ok(migrate::project::history(&target.text(project)?.0).await?) })?;
    let all: BTreeSet<&String> = local.iter().chain(history.keys()).collect();
    let mut text = String::from("\n   Local          | Remote         | Time (UTC)          \n");
    text.push_str("  ----------------|----------------|---------------------\n");
    for version in all {
        let here = if local.contains(version) { version.as_str() } else { "" };
        let there = if history.contains_key(version) { version.as_str() } else { "" };
        text.push_str(&format!("   {here:<14} | {there:<14} | {:<19} \n", as_time(version)));
    }
    crate::cli::print_all(&text)
}

fn up(project: &Project, target: &TargetArgs, include_all: bool) -> anyhow::Result<()> {
    let (url, place) = target.text(project)?;
    let files = project.migrations()?;
    let name = if place == "local" { "Local" } else { "Remote" };
    block_on(async {
        pending(&files, &migrate::project::history(&url).await?, include_all)?;
        store_secrets(project, &url).await?;
        let applied = migrate::project::migrations(&url, &files.paths, None, &|line| say(line)).await?;
        let more = if applied.is_empty() { "" } else { " with its files" };
        say(&format!("{name} database is up to date{more}."));
        Ok(())
    })
}

/// Without versions, the whole history is replaced: by that of the files, or by none.
fn repair(
    project: &Project,
    target: &TargetArgs,
    versions: &[String],
    status: HistoryStatus,
    is_confirmed: bool,
) -> anyhow::Result<()> {
    let files = project.migrations()?;
    let (local, is_applied) = (files.versions(), matches!(status, HistoryStatus::Applied));
    if let Some(missing) = versions.iter().find(|version| is_applied && !local.contains(*version)) {
        anyhow::bail!("there is no migration of version {missing}");
    }
    let (url, _) = target.text(project)?;
    if versions.is_empty() {
        say("Do you want to repair the entire migration history table to match local migration files?");
        anyhow::ensure!(is_confirmed || answers_yes()?, "nothing was repaired: confirm at the terminal, or with --yes");
    }
    block_on(async { Ok(migrate::project::repair(&url, &files.paths, versions, is_applied).await?) })?;
    let named = if versions.is_empty() { "all".to_owned() } else { versions.join(" ") };
    say(&format!("Repaired migration history: {named}"));
    Ok(())
}

/// Writes the recorded statements, a file per version.
fn fetch(project: &Project, target: &TargetArgs, is_confirmed: bool) -> anyhow::Result<()> {
    let folder = project.migrations_dir();
    let recorded = block_on(async {
        let target = target.reach(Some(project)).await?;
        let there = "select to_regclass('supabase_migrations.schema_migrations') is not null";
        anyhow::ensure!(
            target.client.query_one(there, &[]).await?.get::<_, bool>(0),
            "the {} database has no history of migrations (supabase_migrations.schema_migrations)",
            target.place
        );
        let history = "select version, coalesce(name, ''), coalesce(statements, '{}')
                       from supabase_migrations.schema_migrations order by version";
        Ok(target.client.query(history, &[]).await?)
    })?;
    let mut texts = Vec::new();
    for row in &recorded {
        let (version, name, statements): (String, String, Vec<String>) = (row.get(0), row.get(1), row.get(2));
        texts.push((recorded_name(&version, &name)?, statements));
    }
    let is_used = std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
    let question = "Do you want to overwrite existing files in supabase/migrations directory?";
    anyhow::ensure!(!is_used || defaults_to_yes(question, is_confirmed), "nothing was written");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (file, statements) in texts {
        if statements.is_empty() {
            say(&format!("WARN: no statements of {file} were recorded: the file is empty"));
        }
        let ended = |statement: &String| match statement {
            // The data of a `copy`.
            _ if statement.ends_with(migrate::END_OF_DATA) => format!("{statement}\n"),
            _ => format!("{statement};\n"),
        };
        let text: String = statements.iter().map(ended).collect();
        std::fs::write(folder.join(&file), text).with_context(|| format!("cannot write supabase/migrations/{file}"))?;
        say(&format!("Fetched supabase/migrations/{file}"));
    }
    Ok(())
}

/// The file name of a migration. Version and name come from a database and must not lead out of the folder.
fn recorded_name(version: &str, name: &str) -> anyhow::Result<String> {
    let is_number = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = !name.contains(['/', '\\']) && !name.chars().any(char::is_control);
    anyhow::ensure!(
        is_number && is_plain,
        "the history contains a migration whose name cannot be a file: {version:?} {name:?}"
    );
    Ok(format!("{version}_{name}.sql"))
}

/// Recreates the database with the applied migrations up to the one that is kept.
fn down(
    project: &Project,
    target: &TargetArgs,
    last: Option<usize>,
    version: Option<&str>,
    is_confirmed: bool,
) -> anyhow::Result<()> {
    let (url, place) = target.text(project)?;
    let history = block_on(async { Ok(migrate::project::history(&url).await?) })?;
    let local = project.migrations()?.versions();
    let applied: Vec<&String> = history.keys().collect();
    let kept = match (version, last.unwrap_or(1)) {
        (Some(version), _) => match applied.iter().position(|known| known.as_str() == version) {
            Some(place) => place + 1,
            None => anyhow::bail!("the database has no migration of version {version}"),
        },
        (None, 0) => anyhow::bail!("--last must be greater than 0"),
        (None, last) if last >= applied.len() => anyhow::bail!(
            "--last must be smaller than total applied migrations: {}; 'ferrobase db reset' recreates the whole database",
            applied.len()
        ),
        (None, last) => applied.len() - last,
    };
    let (staying, reverted) = applied.split_at(kept);
    let Some(until) = staying.last() else { anyhow::bail!("no migration would remain") };
    if reverted.is_empty() {
        say(if place == "local" { "Local database is up to date." } else { "Remote database is up to date." });
        return Ok(());
    }
    if let Some(missing) = staying.iter().find(|version| !local.contains(**version)) {
        anyhow::bail!(
            "migration {missing} is applied, but its file is missing: the database cannot be recreated from the files"
        );
    }
    say("Do you want to revert the following migrations?");
    reverted.iter().for_each(|version| say(&format!(" • {version}")));
    say("WARNING: you will lose all data in this database.");
    anyhow::ensure!(is_confirmed || answers_yes()?, "nothing was reverted: confirm at the terminal, or with --yes");
    say(&format!("Resetting database to version: {until}"));
    let extent = Extent { until: Some((*until).clone()), has_seeds: true };
    if target.is_local() { rebuild(project, &extent) } else { rebuild_remote(project, target, &extent) }
}

/// `20240131120000` as `2024-01-31 12:00:00`; other versions unchanged.
fn as_time(version: &str) -> String {
    chrono::NaiveDateTime::parse_from_str(version, "%Y%m%d%H%M%S")
        .map_or_else(|_| version.to_owned(), |time| time.format("%Y-%m-%d %H:%M:%S").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_names_cannot_contain_folders() {
        assert_eq!(recorded_name("20240101000000", "a b").expect("a name"), "20240101000000_a b.sql");
        for (version, name) in [("../1", "x"), ("1", "../../x"), ("", "x"), ("1", "a\nb"), ("1", "a\\b")] {
            assert!(recorded_name(version, name).is_err(), "{version} {name}");
        }
    }
}
