//! `db reset`, `seed buckets` and `gen types` in a project's folder.

use clap::Subcommand;

use super::running::Place;
use super::serve::{Extent, Progress, declare_buckets, fill_buckets};
use super::start::{delete_data, in_background};
use super::{open, say, source};
use crate::app::Settings;
use crate::cli::database::block_on;
use crate::cli::types::typescript;
use crate::embedded_pg;
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
}

#[derive(Subcommand, Clone, Copy)]
pub enum SeedTarget {
    /// Make the buckets of supabase/config.toml and upload their files
    Buckets,
}

pub fn db(command: &DbCommand) -> anyhow::Result<()> {
    let DbCommand::Reset { version, last, no_seed, local: _ } = command;
    let project = open()?;
    let files = project.migrations()?;
    let versions: Vec<String> = files
        .paths
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().split('_').next()?.to_owned()))
        .collect();
    let until = match (version, last) {
        (Some(version), _) => {
            anyhow::ensure!(versions.contains(version), "there is no migration of version {version}");
            Some(version.clone())
        }
        (None, Some(last)) => match versions.len().checked_sub(*last) {
            Some(0) => Some(String::new()),
            Some(kept) => versions.get(kept - 1).cloned(),
            None => anyhow::bail!("there are only {} migrations", versions.len()),
        },
        (None, None) => None,
    };
    Place::of(&project).stop()?;
    say("Resetting local database...");
    delete_data(&project)?;
    in_background(&project, &Extent { until, has_seeds: !no_seed })?;
    say(&format!("Finished supabase db reset on branch {}.", branch(&project)));
    Ok(())
}

/// The branch that is checked out; `main` where there is no repository.
fn branch(project: &Project) -> String {
    let head = project.root.ancestors().map(|folder| folder.join(".git/HEAD")).find(|head| head.is_file());
    let text = head.and_then(|head| std::fs::read_to_string(head).ok()).unwrap_or_default();
    text.trim().strip_prefix("ref: refs/heads/").map_or_else(|| "main".to_owned(), str::to_owned)
}

/// The logins of the project's running database.
pub fn logins(project: &Project) -> anyhow::Result<embedded_pg::Logins> {
    let logins = Place::of(project).process().and_then(|_| embedded_pg::logins_of(&project.data_dir()));
    logins.ok_or_else(|| anyhow::anyhow!("the project is not running: start it with 'ferrobase start'"))
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
pub fn gen_types(schemas: Vec<String>) -> anyhow::Result<()> {
    let project = open()?;
    let logins = logins(&project)?;
    let mut schemas = schemas;
    if schemas.is_empty() {
        schemas = vec!["public".to_owned()];
        schemas.extend(project.schemas().into_iter().filter(|schema| schema != "public"));
    }
    let text = block_on(typescript(&logins.url, &schemas))?;
    crate::cli::print_all(&text)
}
