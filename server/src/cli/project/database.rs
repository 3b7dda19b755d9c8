//! `db …` and `seed buckets` in a project's folder.

use clap::Subcommand;

use super::advisors::{AdvisorsArgs, advisors};
use super::diff::{DiffArgs, diff};
use super::dump::{DumpArgs, dump};
use super::lint::{LintArgs, lint};
use super::pull::{PullArgs, pull};
use super::push::{PushArgs, push};
use super::running::Place;
use super::serve::{Extent, Progress, declare_buckets, fill_buckets};
use super::start::{delete_data, in_background};
use super::target::logins;
use super::{open, say, settings};
use crate::cli::database::block_on;
use crate::gateway::ApiKeys;
use crate::project::Project;

#[derive(Subcommand)]
pub enum DbCommand {
    /// Delete the project's database and files, and recreate them from migrations and seeds
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
        /// Accepted for scripts: the project's own database is always used
        #[arg(long)]
        local: bool,
    },
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
    Buckets,
}

pub fn db(command: &DbCommand) -> anyhow::Result<()> {
    match command {
        DbCommand::Reset { version, last, no_seed, local: _ } => reset(version.as_deref(), *last, !no_seed),
        DbCommand::Dump(args) => dump(args),
        DbCommand::Diff(args) => diff(args),
        DbCommand::Lint(args) => lint(args),
        DbCommand::Advisors(args) => advisors(args),
        DbCommand::Push(args) => push(args),
        DbCommand::Pull(args) => pull(args),
    }
}

fn reset(version: Option<&str>, last: Option<usize>, has_seeds: bool) -> anyhow::Result<()> {
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
    say("Resetting local database...");
    rebuild(&project, &Extent { until, has_seeds })?;
    say(&format!("Finished supabase db reset on branch {}.", project.branch()));
    Ok(())
}

/// Recreates database and files, and serves them.
pub fn rebuild(project: &Project, extent: &Extent) -> anyhow::Result<()> {
    Place::of(project).stop()?;
    delete_data(project)?;
    in_background(project, extent)
}

pub fn seed_buckets() -> anyhow::Result<()> {
    let project = open()?;
    let logins = logins(&project)?;
    let (_, settings) = settings(&project)?;
    let keys = ApiKeys::from_config(&settings.server);
    let _ = rustls::crypto::ring::default_provider().install_default();
    block_on(async {
        declare_buckets(&project, &logins.url).await?;
        fill_buckets(&project, &format!("http://{}", settings.server.listen), &keys, &Progress::Terminal).await
    })
}
