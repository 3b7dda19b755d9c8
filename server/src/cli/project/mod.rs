//! Commands for a folder that contains `supabase/`, with the Supabase CLI's names.

mod advisors;
mod ask;
mod database;
mod diff;
mod docker;
mod dump;
mod ephemeral;
mod extras;
mod functions;
mod generate;
mod global;
mod import;
mod init;
mod inspect;
mod lint;
mod migration;
mod objects;
mod pending;
mod pgtap;
mod programs;
mod pull;
mod push;
mod query;
mod running;
mod serve;
mod signing_key;
mod squash;
mod start;
mod tap;
mod target;
mod test;
mod token;

use std::collections::BTreeMap;

pub use database::{DbCommand, SeedTarget};
pub use functions::FunctionsCommand;
pub use generate::GenCommand;
pub use global::{GlobalArgs, HOSTED, HostedArgs, refuse_hosted};
pub use import::ImportArgs;
pub use init::InitArgs;
pub use inspect::InspectCommand;
pub use migration::MigrationCommand;
pub use objects::{CopyArgs, ListArgs, MoveArgs, RemoveArgs, copy, list, remove, rename};
pub use programs::{Programs, folders as program_folders};
pub use start::{StartArgs, StatusArgs, StopArgs};
pub use test::TestArgs;

use crate::app::Settings;
use crate::config::{Problems, Source};
use crate::project::Project;

pub use database::{db, seed_buckets};
pub use functions::functions;
pub use generate::generate;
pub use import::import;
pub use init::{init, new_migration};
pub use inspect::inspect;
pub use migration::migration;
pub use start::{start, status, stop};
pub use test::test;

/// Settings that a project's server takes from the environment in addition to its configuration. Others, such as `DATABASE_URL`
/// or `SITE_URL`, probably belong to the application.
const PASSED: [&str; 5] = ["FERROBASE_", "GOTRUE_", "PGRST_", "PG_BIN_DIR", "RUST_LOG"];

/// Of these, settings that name a location. A copy has its own.
const OF_ONE_PLACE: [&str; 6] = [
    "FERROBASE_LISTEN",
    "FERROBASE_INBOX_LISTEN",
    "FERROBASE_INBOX_SMTP_LISTEN",
    "FERROBASE_ADMIN_LISTEN",
    "FERROBASE_DB_PORT",
    "FERROBASE_DATA_DIR",
];

/// The project of the current folder. Warnings about its configuration go to stderr.
fn open() -> anyhow::Result<Project> {
    let project = find()?;
    for warning in &project.warnings {
        say(&format!("WARN: {warning}"));
    }
    Ok(project)
}

fn find() -> anyhow::Result<Project> {
    Ok(Project::find(&global::start_folder()?, environment())?)
}

/// Variables of this process that are text.
fn environment() -> BTreeMap<String, String> {
    std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect()
}

/// The settings of the project's server.
fn source(project: &Project) -> anyhow::Result<Source> {
    let mut pairs: BTreeMap<String, String> = project.settings()?.into_iter().collect();
    for (name, value) in std::env::vars_os() {
        if let (Ok(name), Ok(value)) = (name.into_string(), value.into_string())
            && !(project.is_copy() && OF_ONE_PLACE.contains(&name.as_str()))
            && PASSED.iter().any(|prefix| name.starts_with(prefix))
            && ![serve::PROGRESS_FILE, ephemeral::MARK].contains(&name.as_str())
        {
            pairs.insert(name, value);
        }
    }
    Ok(Source::from_pairs(pairs))
}

/// Reads the settings of the project's server. Errors name the keys of `config.toml`.
fn settings(project: &Project) -> anyhow::Result<(Source, Settings)> {
    let mut source = source(project)?;
    let settings = Settings::read(&mut source).map_err(|Problems(problems)| {
        let is_given = |name: &str| std::env::var_os(name).is_some();
        Problems(problems.iter().map(|problem| project.explain(problem, is_given)).collect())
    })?;
    Ok((source, settings))
}

/// Prints progress to stderr, because scripts read stdout.
fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}
