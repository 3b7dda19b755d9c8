//! `migration new|list|up|repair`.

use std::collections::BTreeSet;

use clap::{Subcommand, ValueEnum};

use super::database::logins;
use super::{new_migration, open, say};
use crate::cli::database::block_on;
use crate::migrate;

#[derive(Subcommand)]
pub enum MigrationCommand {
    /// Make an empty migration, or one with what comes on standard input
    New { name: String },
    /// Show which migrations the files and the database hold
    List,
    /// Apply the migrations that the database lacks
    Up {
        /// Also those that are older than the newest applied one
        #[arg(long)]
        include_all: bool,
        /// Accepted for scripts
        #[arg(long)]
        local: bool,
    },
    /// Correct the history without running anything
    Repair {
        versions: Vec<String>,
        #[arg(long)]
        status: HistoryStatus,
        /// Accepted for scripts
        #[arg(long)]
        local: bool,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub enum HistoryStatus {
    Applied,
    Reverted,
}

pub fn migration(command: MigrationCommand) -> anyhow::Result<()> {
    let project = open()?;
    if let MigrationCommand::New { name } = command {
        return new_migration(&project, &name);
    }
    let logins = logins(&project)?;
    let files = project.migrations()?;
    let version = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.split('_').next().unwrap_or_default().to_owned()
    };
    let local: BTreeSet<String> = files.paths.iter().map(version).collect();
    block_on(async {
        let known = migrate::project::known(&logins.admin_url, &logins.url).await?;
        match command {
            MigrationCommand::New { .. } => Ok(()),
            MigrationCommand::List => {
                let all: BTreeSet<&String> = local.iter().chain(known.history.keys()).collect();
                let mut text = String::from("\n   Local          | Remote         | Time (UTC)          \n");
                text.push_str("  ----------------|----------------|---------------------\n");
                for version in all {
                    let here = if local.contains(version) { version.as_str() } else { "" };
                    let there = if known.history.contains_key(version) { version.as_str() } else { "" };
                    text.push_str(&format!("   {here:<14} | {there:<14} | {:<19} \n", as_time(version)));
                }
                crate::cli::print_all(&text)
            }
            MigrationCommand::Up { include_all, .. } => {
                let gone: Vec<&String> = known.history.keys().filter(|version| !local.contains(*version)).collect();
                if !gone.is_empty() {
                    let list = gone.iter().map(|version| version.as_str()).collect::<Vec<_>>().join(" ");
                    anyhow::bail!(
                        "Remote migration versions not found in local migrations directory. Make sure your local git repo is \
                         up-to-date, or repair the history: ferrobase migration repair --status reverted {list}"
                    );
                }
                let newest = known.history.keys().next_back();
                let late: Vec<&String> = local
                    .iter()
                    .filter(|version| {
                        !known.history.contains_key(*version) && newest.is_some_and(|newest| *version < newest)
                    })
                    .collect();
                if !late.is_empty() && !include_all {
                    let list = late.iter().map(|version| version.as_str()).collect::<Vec<_>>().join(", ");
                    anyhow::bail!(
                        "Found local migration files to be inserted before the last migration on remote database. Rerun the \
                         command with --include-all flag to apply these migrations: {list}"
                    );
                }
                let applied = migrate::project::migrations(&logins.url, &files.paths, None, &|line| say(line)).await?;
                say(if applied.is_empty() {
                    "Local database is up to date."
                } else {
                    "Local database is up to date with its files."
                });
                Ok(())
            }
            MigrationCommand::Repair { versions, status, .. } => {
                let is_applied = matches!(status, HistoryStatus::Applied);
                if let Some(missing) = versions.iter().find(|version| is_applied && !local.contains(*version)) {
                    anyhow::bail!("there is no migration of version {missing}");
                }
                migrate::project::repair(&logins.url, &files.paths, &versions, is_applied).await?;
                let named = if versions.is_empty() { "all".to_owned() } else { versions.join(" ") };
                say(&format!("Repaired migration history: {named}"));
                Ok(())
            }
        }
    })
}

/// `20240131120000` as `2024-01-31 12:00:00`; other versions as they are.
fn as_time(version: &str) -> String {
    chrono::NaiveDateTime::parse_from_str(version, "%Y%m%d%H%M%S")
        .map_or_else(|_| version.to_owned(), |time| time.format("%Y-%m-%d %H:%M:%S").to_string())
}
