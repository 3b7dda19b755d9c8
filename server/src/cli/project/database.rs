//! `db …`, `seed buckets` and `gen types` in a project's folder.

use clap::Subcommand;

use super::diff::{DiffArgs, diff};
use super::dump::{DumpArgs, dump};
use super::lint::{LintArgs, lint};
use super::running::Place;
use super::serve::{Extent, Progress, declare_buckets, fill_buckets};
use super::start::{delete_data, in_background};
use super::target::logins;
use super::{open, say, source};
use crate::app::Settings;
use crate::cli::database::block_on;
use crate::cli::types::{FormArgs, typescript};
use crate::gateway::ApiKeys;
use crate::project::Project;

#[derive(Subcommand)]
pub enum DbCommand {
    /// Delete the project's database and files, and make them anew from its migrations and seeds
    Reset {
        /// Apply migrations up to this version only
        #[arg(long, conflicts_with = "last")]
        version: Option<String>,
        /// Leave out the last so many migrations
        #[arg(long, value_name = "N")]
        last: Option<usize>,
        /// Load no seeds
        #[arg(long)]
        no_seed: bool,
        /// Accepted for scripts: it is this project's own database
        #[arg(long)]
        local: bool,
    },
    /// Write schema, data or roles as SQL
    Dump(DumpArgs),
    /// Show what the database has that the migrations have not
    Diff(DiffArgs),
    /// Look for functions that cannot work
    Lint(LintArgs),
}

#[derive(Subcommand, Clone, Copy)]
pub enum SeedTarget {
    /// Make the buckets of supabase/config.toml and upload their files
    Buckets,
}

pub fn db(command: &DbCommand) -> anyhow::Result<()> {
    match command {
        DbCommand::Reset { version, last, no_seed, local: _ } => reset(version.as_deref(), *last, !no_seed),
        DbCommand::Dump(args) => dump(args),
        DbCommand::Diff(args) => diff(args),
        DbCommand::Lint(args) => lint(args),
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

/// Makes database and files anew, and serves them.
pub fn rebuild(project: &Project, extent: &Extent) -> anyhow::Result<()> {
    Place::of(project).stop()?;
    delete_data(project)?;
    in_background(project, extent)
}

pub fn seed_buckets() -> anyhow::Result<()> {
    let project = open()?;
    let logins = logins(&project)?;
    let settings = Settings::read(&mut source(&project)?)?;
    let keys = ApiKeys::from_config(&settings.server);
    let _ = rustls::crypto::ring::default_provider().install_default();
    block_on(async {
        declare_buckets(&project, &logins.url).await?;
        fill_buckets(&project, &format!("http://{}", settings.server.listen), &keys, &Progress::Terminal).await
    })
}

/// The TypeScript types of `schemas`, or of those that the API exposes.
pub fn gen_types(schemas: Vec<String>, form: FormArgs) -> anyhow::Result<()> {
    let project = open()?;
    let logins = logins(&project)?;
    let mut schemas = schemas;
    if schemas.is_empty() {
        schemas = vec!["public".to_owned()];
        schemas.extend(project.schemas().into_iter().filter(|schema| schema != "public"));
    }
    let text = block_on(typescript(&logins.url, &form.of(schemas)))?;
    crate::cli::print_all(&text)
}
