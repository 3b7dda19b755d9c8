//! Why a backup could not be made, read or restored. Each message is one line that says what to do.

use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, SecondsFormat, Utc};

use super::age::AgeError;
use crate::embedded_pg::EmbeddedError;

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(
        "nobody could open the backup, because it has no public key: 'ferrobase backup key FILE' makes a pair; set \
         FERROBASE_BACKUP_RECIPIENT to its public key"
    )]
    NoRecipient,
    #[error(
        "no private key was given: name its file by --identity or FERROBASE_BACKUP_IDENTITY_FILE (the one that 'ferrobase \
         backup key' has written)"
    )]
    NoIdentity,
    #[error("the private key in {} cannot be used: {reason}", .file.display())]
    Identity { file: PathBuf, reason: AgeError },
    #[error("{} cannot be opened: {reason}", .archive.display())]
    Closed { archive: PathBuf, reason: AgeError },
    #[error("{} is damaged ({reason}): use another backup; nothing was changed", .archive.display())]
    Damaged { archive: PathBuf, reason: String },
    #[error("{} was made by a newer ferrobase (its format is {format}): use that version", .archive.display())]
    Newer { archive: PathBuf, format: u32 },
    #[error(
        "{} is a backup of PostgreSQL {archived}, and these binaries are PostgreSQL {binaries}: set PG_BIN_DIR to the \
         binaries of version {archived}",
        .archive.display()
    )]
    OtherMajorVersion { archive: PathBuf, archived: String, binaries: String },
    #[error(
        "{} already holds {what}: restore into an empty FERROBASE_DATA_DIR, or pass --replace to replace it",
        .dir.display()
    )]
    NotEmpty { dir: PathBuf, what: &'static str },
    #[error("the disk that holds {} is full ({free_mib} MiB free): free some space, or choose another folder", .dir.display())]
    DiskFull { dir: PathBuf, free_mib: u64 },
    #[error(
        "the disk of the database ({}) is filling up ({free_mib} MiB free) while its log is kept for the backup, so it was given up: free some \
         space there, and check that the destination of backups accepts data",
        .dir.display()
    )]
    NoRoom { dir: PathBuf, free_mib: u64 },
    #[error(
        "the database keeps files outside of its folder (tablespaces), which a backup does not take: move its tables to \
         pg_default"
    )]
    Tablespaces,
    #[error(
        "the database removed {file} of its log of changes before it was copied: try again when fewer writes happen"
    )]
    LogGone { file: String },
    #[error("the files of the database are in {}, which this command cannot read: run it on that machine as the user that runs the server", .dir.display())]
    Elsewhere { dir: PathBuf },
    #[error(
        "{} was made while no log of changes was archived (FERROBASE_BACKUP_LOG_EVERY), so there is nothing to go on with after \
         it: restore it without --to",
        .archive.display()
    )]
    NoLog { archive: PathBuf },
    #[error("{} holds {made_at}, which is later than the requested time: use an older one", .archive.display())]
    TooEarly { archive: PathBuf, made_at: DateTime<Utc> },
    #[error(
        "the archived log of changes ends {}: restore to that time, or --to latest",
        .at.map_or("with the backup".to_owned(), |at| format!("at {}", at.to_rfc3339_opts(SecondsFormat::Millis, true)))
    )]
    LogEnds { at: Option<DateTime<Utc>> },
    #[error(
        "a piece of the log of changes is missing before {before}: {}",
        .after.map_or("use a later backup".to_owned(), |at| format!(
            "--to {} is possible, or use a later backup", at.to_rfc3339_opts(SecondsFormat::Millis, true)
        ))
    )]
    LogGap { after: Option<DateTime<Utc>>, before: String },
    #[error(
        "the clock was set back from {} to {} while the log of changes was archived, so it is uncertain what belongs to this moment: \
         restore to one before the clock was ahead, from a later backup, or to 'latest'",
        .from.to_rfc3339_opts(SecondsFormat::Millis, true),
        .to.to_rfc3339_opts(SecondsFormat::Millis, true)
    )]
    LogClock { from: DateTime<Utc>, to: DateTime<Utc> },
    #[error(
        "the log of changes was not archived for too long and the database has removed it: points in time start again"
    )]
    LogLost,
    #[error("this PostgreSQL cannot make incremental backups: version 17 or later is needed")]
    NoIncrements,
    #[error("{name}, which this archive continues from, is missing in the same place: put it there")]
    NoParent { name: String },
    #[error("{} only holds the changes since another archive, which its name must state: give it its former name", .archive.display())]
    Renamed { archive: PathBuf },
    #[error("the archive continues others, and combining them needs pg_combinebackup: {0}")]
    NoCombine(String),
    #[error("{name} failed: {said}")]
    Program { name: &'static str, said: String },
    #[error(
        "{} is a dump of an external database: set DATABASE_URL to the database to restore it to",
        .archive.display()
    )]
    IsDump { archive: PathBuf },
    #[error(
        "{} is a copy of the embedded PostgreSQL's files, which cannot be put into the database of DATABASE_URL: restore it without \
         that setting",
        .archive.display()
    )]
    NoDump { archive: PathBuf },
    #[error("the database already has {tables} tables: create an empty one and restore into that")]
    DatabaseNotEmpty { tables: i64 },
    #[error(
        "the database cannot lock the {relations} tables, indexes, sequences and views of the dump at once, as restoring it in one \
         transaction does: there, 'alter system set max_locks_per_transaction = {needed}', restart PostgreSQL, and try again"
    )]
    TooFewLocks { relations: i64, needed: i64 },
    #[error("{place}: {reason}")]
    Store { place: String, reason: String },
    #[error("the database refused: {0}")]
    Database(String),
    #[error("stopped before it was finished; nothing was left behind")]
    Stopped,
    #[error(
        "stopped before it was finished; the database is unchanged, and files of objects that were put in place already are \
         removed by a server that finds no rows for them"
    )]
    StoppedAmongFiles,
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    #[error("{action} {}: {source}", .path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

impl From<tokio_postgres::Error> for BackupError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.as_db_error().map_or_else(
            || error.to_string(),
            |db| db.hint().map_or_else(|| db.message().to_owned(), |hint| format!("{} ({hint})", db.message())),
        ))
    }
}

impl BackupError {
    /// Wraps an I/O error with the action and the path. A full disk gets its own message.
    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::disk_full(&path),
            // Our own writer returns this error when it was asked to stop.
            io::ErrorKind::ConnectionAborted => Self::Stopped,
            _ => Self::Io { action, path, source },
        }
    }

    fn disk_full(path: &Path) -> Self {
        // The file itself may no longer exist.
        let dir = path.ancestors().find(|dir| dir.is_dir()).unwrap_or(path);
        let free = rustix::fs::statvfs(dir).map_or(0, |stat| stat.f_bavail.saturating_mul(stat.f_frsize));
        Self::DiskFull { dir: dir.to_owned(), free_mib: free >> 20 }
    }
}
