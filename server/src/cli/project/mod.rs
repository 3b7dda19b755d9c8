//! Commands for a folder that contains `supabase/`, with the Supabase CLI's names.

mod ask;
mod database;
mod diff;
mod docker;
mod dump;
mod ephemeral;
mod functions;
mod import;
mod init;
mod inspect;
mod lint;
mod migration;
mod pgtap;
mod programs;
mod running;
mod serve;
mod squash;
mod start;
mod tap;
mod target;
mod test;
mod token;

use std::collections::BTreeMap;

pub use database::{DbCommand, SeedTarget};
pub use functions::FunctionsCommand;
pub use import::ImportArgs;
pub use inspect::InspectCommand;
pub use migration::MigrationCommand;
pub use programs::Programs;
pub use start::{StartArgs, StatusArgs, StopArgs};
pub use test::TestArgs;
pub use token::TokenArgs;

use crate::config::Source;
use crate::project::Project;

pub use database::{db, gen_types, seed_buckets};
pub use functions::functions;
pub use import::import;
pub use init::new_migration;
pub use inspect::inspect;
pub use migration::migration;
pub use start::{start, status, stop};
pub use test::test;
pub use token::bearer_jwt;

/// Settings that a project's server takes from the environment beside its own configuration. Others, such as
/// `DATABASE_URL` or `SITE_URL`, are likely to be the application's.
const PASSED: [&str; 5] = ["FERROBASE_", "GOTRUE_", "PGRST_", "PG_BIN_DIR", "RUST_LOG"];

/// Those among them that name a place, of which a copy has its own.
const OF_ONE_PLACE: [&str; 5] =
    ["FERROBASE_LISTEN", "FERROBASE_INBOX_LISTEN", "FERROBASE_ADMIN_LISTEN", "FERROBASE_DB_PORT", "FERROBASE_DATA_DIR"];

/// The project of the current folder; what its configuration asks for in vain is told on standard error.
fn open() -> anyhow::Result<Project> {
    let project = find()?;
    for warning in &project.warnings {
        say(&format!("WARN: {warning}"));
    }
    Ok(project)
}

fn find() -> anyhow::Result<Project> {
    let environment: BTreeMap<String, String> =
        std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))).collect();
    Ok(Project::find(&std::env::current_dir()?, environment)?)
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

/// Progress, on standard error: scripts read standard output.
fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}
