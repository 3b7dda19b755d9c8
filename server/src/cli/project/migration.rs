//! `migration new|list|up|down|repair`; `squash` has a file of its own.

use std::collections::BTreeSet;

use clap::{Subcommand, ValueEnum};

use super::ask::answers_yes;
use super::database::rebuild;
use super::serve::Extent;
use super::squash::squash;
use super::target::logins;
use super::{new_migration, open, say};
use crate::cli::database::block_on;
use crate::migrate;
use crate::project::Project;

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
    /// Take back the last migrations: the database is made anew without them, and its data are lost
    Down {
        /// Take back so many [default: 1]
        #[arg(long, value_name = "N", conflicts_with = "version")]
        last: Option<usize>,
        /// The last migration to stay
        version: Option<String>,
        /// Do not ask
        #[arg(short, long, env = "SUPABASE_YES", value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
        yes: bool,
        /// Accepted for scripts: it is this project's own database
        #[arg(long)]
        local: bool,
    },
    /// Put one file in place of all migrations, with the schema that they come to
    Squash {
        /// Accepted for scripts: it is this project's own database
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
    if let MigrationCommand::Squash { .. } = command {
        return squash(&project);
    }
    let logins = logins(&project)?;
    let files = project.migrations()?;
    let local: BTreeSet<String> = files.versions().into_iter().collect();
    if let MigrationCommand::Down { last, version, yes, .. } = command {
        let known = block_on(async { Ok(migrate::project::known(&logins.admin_url, &logins.url).await?) })?;
        let applied: Vec<&String> = known.history.keys().collect();
        return down(&project, &local, &applied, last, version.as_deref(), yes);
    }
    block_on(async {
        let known = migrate::project::known(&logins.admin_url, &logins.url).await?;
        match command {
            MigrationCommand::New { .. } | MigrationCommand::Down { .. } | MigrationCommand::Squash { .. } => Ok(()),
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

/// Makes the database anew with the applied migrations up to the one that stays.
fn down(
    project: &Project,
    local: &BTreeSet<String>,
    applied: &[&String],
    last: Option<usize>,
    version: Option<&str>,
    is_confirmed: bool,
) -> anyhow::Result<()> {
    let kept = match (version, last.unwrap_or(1)) {
        (Some(version), _) => match applied.iter().position(|known| known.as_str() == version) {
            Some(place) => place + 1,
            None => anyhow::bail!("the database has no migration of version {version}"),
        },
        (None, 0) => anyhow::bail!("--last must be greater than 0"),
        (None, last) if last >= applied.len() => anyhow::bail!(
            "--last must be smaller than total applied migrations: {}; 'ferrobase db reset' makes the whole database anew",
            applied.len()
        ),
        (None, last) => applied.len() - last,
    };
    let (staying, reverted) = applied.split_at(kept);
    let Some(until) = staying.last() else { anyhow::bail!("no migration would stay") };
    if reverted.is_empty() {
        say("Local database is up to date.");
        return Ok(());
    }
    if let Some(missing) = staying.iter().find(|version| !local.contains(version.as_str())) {
        anyhow::bail!(
            "migration {missing} is applied, but its file is gone: the database cannot be made anew from the files"
        );
    }
    say("Do you want to revert the following migrations?");
    reverted.iter().for_each(|version| say(&format!(" • {version}")));
    say("WARNING: you will lose all data in this database.");
    anyhow::ensure!(is_confirmed || answers_yes()?, "nothing was reverted: confirm at the terminal, or with --yes");
    say(&format!("Resetting database to version: {until}"));
    rebuild(project, &Extent { until: Some((*until).clone()), has_seeds: true })
}

/// `20240131120000` as `2024-01-31 12:00:00`; other versions as they are.
fn as_time(version: &str) -> String {
    chrono::NaiveDateTime::parse_from_str(version, "%Y%m%d%H%M%S")
        .map_or_else(|_| version.to_owned(), |time| time.format("%Y-%m-%d %H:%M:%S").to_string())
}
