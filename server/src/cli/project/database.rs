//! `db …` and `seed buckets` in a project's folder.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::advisors::{AdvisorsArgs, advisors};
use super::diff::{DiffArgs, diff};
use super::dump::{DumpArgs, dump};
use super::lint::{LintArgs, lint};
use super::pgtap::{TestDbArgs, test_db};
use super::pull::{PullArgs, pull};
use super::push::{PushArgs, push};
use super::query::{QueryArgs, query};
use super::running::Place;
use super::serve::{Extent, Progress, declare_buckets, fill_buckets};
use super::start::{delete_data, in_background, start_plainly};
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
        #[command(flatten)]
        elsewhere: ElsewhereArgs,
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

// Options of commands that recreate a database, which is only possible for the project's own one.
#[derive(Args)]
pub struct ElsewhereArgs {
    #[arg(long, hide = true, value_name = "URL")]
    db_url: Option<String>,
    #[arg(long, hide = true)]
    linked: bool,
}

impl ElsewhereArgs {
    pub fn refuse(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.db_url.is_none() && !self.linked,
            "only this folder's own database can be made anew: for another one, drop its objects by hand, and apply the migrations \
             with 'ferrobase db push --db-url'"
        );
        Ok(())
    }

    /// For a command that rewrites the files and the history of this folder's database.
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
        DbCommand::Reset { version, last, no_seed, local: _, elsewhere } => {
            elsewhere.refuse()?;
            reset(version.as_deref(), *last, !no_seed)
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

pub fn seed_buckets(is_linked: bool) -> anyhow::Result<()> {
    anyhow::ensure!(!is_linked, "there is no linked project: only this folder's own storage can be filled");
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
