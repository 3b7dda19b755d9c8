//! `db …` and `seed buckets` in a project's folder.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::advisors::{AdvisorsArgs, advisors};
use super::ask::answers_yes;
use super::diff::{DiffArgs, diff};
use super::dump::{DumpArgs, dump};
use super::lint::{LintArgs, lint};
use super::pgtap::{TestDbArgs, test_db};
use super::pull::{PullArgs, pull};
use super::push::{PushArgs, push};
use super::query::{QueryArgs, query};
use super::running::Place;
use super::serve::{Extent, Present, Progress, declare_buckets, fill_buckets};
use super::start::{delete_data, in_background, start_plainly};
use super::target::{TargetArgs, logins, store_secrets};
use super::{open, say, settings};
use crate::cli::database::block_on;
use crate::gateway::ApiKeys;
use crate::migrate;
use crate::project::Project;

#[derive(Subcommand)]
pub enum DbCommand {
    /// Delete the project's database and files, and recreate them from migrations and seeds; empty another database and load them there
    Reset {
        /// Apply migrations up to this version only
        #[arg(long, conflicts_with = "last")]
        version: Option<String>,
        /// Leave out this many of the last migrations
        #[arg(long, value_name = "N")]
        last: Option<usize>,
        /// Load no seeds
        #[arg(long)]
        no_seed: bool,
        /// Do not ask before another database is emptied
        #[arg(short, long, env = "SUPABASE_YES", value_parser = clap::builder::FalseyValueParser::new(), action = clap::ArgAction::SetTrue)]
        yes: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Start the project, as 'ferrobase start' does: the database does not run without the APIs
    Start {
        /// Refused: 'ferrobase import --dump' loads a dump
        #[arg(long, hide = true, value_name = "FILE")]
        from_backup: Option<PathBuf>,
    },
    /// Run the pgTAP tests, as 'ferrobase test db' does
    #[command(hide = true)]
    Test(TestDbArgs),
    /// Run SQL and print the rows
    Query(QueryArgs),
    /// Write schema, data or roles as SQL
    Dump(DumpArgs),
    /// Show what the database has in addition to the migrations
    Diff(DiffArgs),
    /// Check functions for errors
    Lint(LintArgs),
    /// Check tables, policies, views and functions for security and performance problems
    Advisors(AdvisorsArgs),
    /// Apply pending migrations to another database
    Push(PushArgs),
    /// Write the schema of another database to a new migration
    Pull(PullArgs),
}

#[derive(Subcommand, Clone, Copy)]
pub enum SeedTarget {
    /// Create the buckets of supabase/config.toml and upload their files
    Buckets {
        /// Accepted for scripts: the project's own storage is used
        #[arg(long)]
        local: bool,
        /// There are no linked projects here
        #[arg(long, hide = true, conflicts_with = "local")]
        linked: bool,
    },
}

// Options of a command that rewrites the files and the history of this folder's database.
#[derive(Args)]
pub struct ElsewhereArgs {
    #[arg(long, hide = true, value_name = "URL")]
    db_url: Option<String>,
    #[arg(long, hide = true)]
    linked: bool,
}

impl ElsewhereArgs {
    pub fn refuse_history(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.db_url.is_none() && !self.linked,
            "only the history of this folder's own database follows: correct another one with 'ferrobase migration repair --db-url'"
        );
        Ok(())
    }
}

pub fn db(command: &DbCommand) -> anyhow::Result<ExitCode> {
    let done = match command {
        DbCommand::Reset { version, last, no_seed, yes, target } => {
            reset(version.as_deref(), *last, !no_seed, *yes, target)
        }
        DbCommand::Start { from_backup } => {
            anyhow::ensure!(
                from_backup.is_none(),
                "a dump is loaded by 'ferrobase import --dump FILE' into the started project"
            );
            start_plainly()
        }
        DbCommand::Test(args) => return test_db(args),
        DbCommand::Query(args) => query(args),
        DbCommand::Dump(args) => dump(args),
        DbCommand::Diff(args) => diff(args),
        DbCommand::Lint(args) => lint(args),
        DbCommand::Advisors(args) => advisors(args),
        DbCommand::Push(args) => push(args),
        DbCommand::Pull(args) => pull(args),
    };
    done.map(|()| ExitCode::SUCCESS)
}

fn reset(
    version: Option<&str>,
    last: Option<usize>,
    has_seeds: bool,
    is_confirmed: bool,
    target: &TargetArgs,
) -> anyhow::Result<()> {
    let project = open()?;
    let versions = project.migrations()?.versions();
    let until = match (version, last) {
        (Some(version), _) => {
            anyhow::ensure!(
                versions.iter().any(|known| known == version),
                "there is no migration of version {version}"
            );
            Some(version.to_owned())
        }
        (None, Some(last)) => match versions.len().checked_sub(last) {
            Some(0) => Some(String::new()),
            Some(kept) => versions.get(kept - 1).cloned(),
            None => anyhow::bail!("there are only {} migrations", versions.len()),
        },
        (None, None) => None,
    };
    let extent = Extent { until, has_seeds };
    if !target.is_local() {
        say("Do you want to reset the remote database? All its data will be lost, except for buckets and files.");
        anyhow::ensure!(is_confirmed || answers_yes()?, "nothing was reset: confirm at the terminal, or with --yes");
        return rebuild_remote(&project, target, &extent);
    }
    say("Resetting local database...");
    rebuild(&project, &extent)?;
    say(&format!("Finished supabase db reset on branch {}.", project.branch()));
    Ok(())
}

/// Recreates database and files, and serves them.
pub fn rebuild(project: &Project, extent: &Extent) -> anyhow::Result<()> {
    settings(project)?;
    require_files(project, extent)?;
    let place = Place::of(project);
    let starting = place.starting()?;
    place.stop()?;
    delete_data(project)?;
    in_background(project, extent, &starting)
}

/// Reads the files that a new database is made from, so that an error in them is found before the old one is deleted.
fn require_files(project: &Project, extent: &Extent) -> anyhow::Result<()> {
    let migrations = if project.has_migrations_enabled() { project.migrations()?.paths } else { Vec::new() };
    let seeds = if extent.has_seeds { project.seeds()?.0 } else { Vec::new() };
    let roles = Some(project.folder().join("roles.sql")).filter(|path| path.is_file());
    let others: Vec<PathBuf> = roles.into_iter().chain(seeds.into_iter().map(|seed| seed.path)).collect();
    Ok(migrate::project::require_readable(&migrations, &others)?)
}

/// Empties another database, and loads the project into it. Its server goes on serving.
pub fn rebuild_remote(project: &Project, target: &TargetArgs, extent: &Extent) -> anyhow::Result<()> {
    let (url, place) = target.text(project)?;
    require_files(project, extent)?;
    say(&format!("Resetting {place} database..."));
    let tell = |line: &str| say(line);
    block_on(async {
        migrate::project::clear(&url).await?;
        store_secrets(project, &url).await?;
        if project.has_migrations_enabled() {
            migrate::project::migrations(&url, &project.migrations()?.paths, extent.until.as_deref(), &tell).await?;
        }
        if extent.has_seeds && project.has_seeds_enabled() {
            let (files, unmatched) = project.seeds()?;
            unmatched.iter().for_each(|pattern| say(&format!("WARN: no files matched pattern: {pattern}")));
            let files: Vec<_> = files.into_iter().map(|seed| (seed.name, seed.path)).collect();
            migrate::project::seeds(&url, &files, &tell).await?;
        }
        Ok(())
    })
}

pub fn seed_buckets(is_linked: bool) -> anyhow::Result<()> {
    anyhow::ensure!(!is_linked, "there is no linked project: only this folder's own storage can be filled");
    let project = open()?;
    let logins = logins(&project)?;
    let (_, settings) = settings(&project)?;
    let keys = ApiKeys::from_config(&settings.server);
    let _ = rustls::crypto::ring::default_provider().install_default();
    block_on(async {
        declare_buckets(&project, &logins.url).await?;
        let api = format!("http://{}", settings.server.listen);
        fill_buckets(&project, &api, &keys, Present::Replace, &Progress::Terminal).await
    })
}
