//! Backups of the embedded PostgreSQL, the files of objects and the keys, in one encrypted archive, and the way back.
//!
//! [`make`] copies while the server works: first the cluster (`cluster`), then the files (`files`), then the keys (`keys`), into an
//! archive (`archive`) that only the owner of a private key opens (`age`). [`restore`] brings one back, and
//! [`verify`] proves one by doing so aside (`state` remembers that).
//! Why it is done so: `docs/decisions/backups.md`.

mod age;
mod archive;
mod cluster;
mod config;
mod depot;
mod dump;
mod error;
mod files;
mod halt;
pub mod keys;
mod log;
mod restore;
mod retention;
mod state;
mod verify;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

pub use age::{Identity, Recipient};
pub use archive::Manifest;
use archive::Writer;
pub use config::BackupConfig;
pub use depot::{Depot, Local};
pub use dump::{DumpTarget, major_of, make as make_dump, restore as restore_dump};
pub use error::BackupError;
use halt::Halt;
pub use log::{Follower, LogFiles, Moment, forget_slots};
pub use restore::{LogFrom, Restored, Target, restore};
pub use state::{Backup, FOLDER as STATE_FOLDER, LogState, State};
pub use verify::{Proof, verify, verify_dump};

use crate::http::prometheus::Counter;
use crate::storage::hold_removals;

/// Backups by the schedule that failed, since the start.
pub static FAILED: Counter = Counter::new();

/// How the names of archives end.
pub const SUFFIX: &str = ".tar.gz.age";

/// What belongs to a backup.
#[derive(Clone, Debug)]
pub struct Contents {
    /// Logs in as the superuser of the embedded PostgreSQL.
    pub admin_url: String,
    pub files: Files,
    /// Keys of the settings, as an `.env` file.
    pub keys: String,
}

/// Where the files of objects are.
#[derive(Clone, Debug)]
pub enum Files {
    Folder(PathBuf),
    /// Kept by somebody else, who is named; the archive is without them.
    Elsewhere(String),
}

/// A backup that was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// The archive's full name.
    pub archive: String,
    /// Bytes of the archive.
    pub size: u64,
    pub made_at: DateTime<Utc>,
    /// The continuous archive that goes on from it.
    pub chain: Option<String>,
    /// Files of objects.
    pub files: usize,
}

/// What an archive says of itself, once all of it was read.
pub async fn inspect(archive: &Path, identities: &[Identity]) -> Result<Manifest, BackupError> {
    let halt = Halt::default();
    let _given_up = halt.on_drop();
    if identities.is_empty() {
        return Err(BackupError::NoIdentity);
    }
    let (path, keys, asked) = (archive.to_owned(), identities.to_vec(), halt.clone());
    blocking(move || archive::read(&path, &keys, &asked, |_, _| Ok(()))).await
}

/// The archives in `depot`, the newest first, with the time at which each was begun.
pub async fn archives(depot: &Depot) -> Result<Vec<(DateTime<Utc>, String)>, BackupError> {
    let names = depot.names().await?;
    let mut archives: Vec<_> = names.into_iter().filter_map(|name| Some((retention::time_of(&name)?, name))).collect();
    archives.sort_by(|a, b| b.cmp(a));
    Ok(archives)
}

/// The name of an archive made now.
pub fn archive_name(now: DateTime<Utc>) -> String {
    format!("ferrobase-{}{SUFFIX}", now.format("%Y%m%dT%H%M%S%3fZ"))
}

/// Copies everything into a new archive in `depot`, encrypted to each of `recipients`. The server may work meanwhile.
///
/// Where it fails, is asked to stop or is killed, no archive is there.
pub async fn make(contents: &Contents, depot: &Depot, recipients: &[Recipient]) -> Result<Made, BackupError> {
    let name = archive_name(Utc::now());
    let archive = depot.full_name(&name);
    let halt = Halt::default();
    let _given_up = halt.on_drop();
    if recipients.is_empty() {
        return Err(BackupError::NoRecipient);
    }
    let (sink, arrival) = depot.begin(&name, &halt).await?;
    let writer = match Writer::create(sink, &archive, recipients, &halt) {
        Ok(writer) => write(contents, writer).await,
        Err(error) => Err(error),
    };
    let written = arrival.confirm(writer).await?;
    let Written { size, made_at, chain, files } = written;
    Ok(Made { archive, size, made_at, chain, files })
}

/// An archive's bytes, the moment that it holds, the chain that goes on from it, and how many files of objects it has.
struct Written {
    size: u64,
    made_at: DateTime<Utc>,
    chain: Option<String>,
    files: usize,
}

async fn write(contents: &Contents, mut writer: Writer) -> Result<Written, BackupError> {
    let root = contents.files.clone();
    // Before the database is read, so that no row of it loses its file.
    let hold = blocking(move || match root {
        Files::Folder(root) => hold_removals(&root).map_err(BackupError::io("cannot hold", &root)),
        Files::Elsewhere(_) => Ok(None),
    })
    .await?;
    let running = cluster::Running::start(&contents.admin_url).await?;
    let data_dir = running.data_dir.clone();
    writer.manifest().postgres.clone_from(&running.major);
    writer.manifest().start_lsn.clone_from(&running.start_lsn);
    let chain = running.chain.clone();
    writer.manifest().chain.clone_from(&chain);
    let mut writer = blocking(move || cluster::copy_files(&data_dir, &mut writer).map(|()| writer)).await?;
    let (before, xid) = running.count_rows().await?;
    let (data_dir, start_file) = (running.data_dir.clone(), running.start_file.clone());
    // What is committed by now is in the log before its end.
    let made_at = Utc::now();
    let stopped = running.stop().await?;
    let after = stopped.count_rows().await?;
    let rows = before.into_iter().filter_map(|(table, rows)| {
        let later = *after.get(&table)?;
        Some((table, [rows, later]))
    });
    let manifest = writer.manifest();
    manifest.rows = rows.collect();
    manifest.counted_xid = xid;
    manifest.made_at = made_at;
    manifest.stop_lsn.clone_from(&stopped.stop_lsn);
    let (kept, keys) = (contents.files.clone(), contents.keys.clone());
    let (size, files) = blocking(move || {
        cluster::copy_log(&data_dir, &start_file, &stopped, &mut writer)?;
        for name in ["admin.password", "owner.password"] {
            writer.file(name, &data_dir.with_file_name(name))?;
        }
        writer.bytes(keys::ENTRY, keys.as_bytes())?;
        let before = writer.manifest().entries.len();
        match kept {
            Files::Folder(root) => {
                writer.stop_compressing()?;
                files::copy(&root, &mut writer)?;
            }
            Files::Elsewhere(place) => writer.manifest().files_elsewhere = Some(place),
        }
        let files = writer.manifest().entries.len() - before;
        Ok((writer.finish()?, files))
    })
    .await?;
    drop(hold);
    Ok(Written { size, made_at, chain, files })
}

/// Removes what is more than `keep` archives in `depot`; the last proved one stays. Yields the names of what was removed.
pub async fn retain(depot: &Depot, keep: Option<NonZeroUsize>, data_dir: &Path) -> Result<Vec<String>, BackupError> {
    let Some(keep) = keep else { return Ok(Vec::new()) };
    let names = depot.names().await?;
    let proved = State::read(data_dir).proved.map(|proved| proved.archive);
    let proved = names.iter().find(|name| proved.as_ref() == Some(&depot.full_name(name)));
    let old = retention::too_old(&names, keep, proved.map(String::as_str));
    depot.remove(&old).await?;
    // Pieces of the log that the oldest archive begins after are of no use without an older one.
    let oldest = names.iter().filter(|name| !old.contains(name)).filter_map(|name| retention::time_of(name)).min();
    if let Some(oldest) = oldest {
        depot.remove(&log::too_old(&names, oldest)).await?;
    }
    Ok(old.iter().map(|name| depot.full_name(name)).collect())
}

/// Runs work on files where it keeps nobody waiting.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| BackupError::Stopped)?
}
