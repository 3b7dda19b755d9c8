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
mod error;
mod files;
pub mod keys;
mod restore;
mod retention;
mod state;
mod verify;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

pub use age::{Identity, Recipient};
use archive::{Halt, Writer};
pub use archive::{Manifest, SUFFIX};
pub use config::BackupConfig;
pub use error::BackupError;
pub use restore::{Restored, Target, restore};
pub use state::{Backup, FOLDER as STATE_FOLDER, State};
pub use verify::{Proof, verify};

use crate::http::prometheus::Counter;
use crate::storage::hold_removals;

/// Backups by the schedule that failed, since the start.
pub static FAILED: Counter = Counter::new();

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
    pub archive: PathBuf,
    /// Bytes of the archive.
    pub size: u64,
    pub made_at: DateTime<Utc>,
    /// Files of objects.
    pub files: usize,
}

/// The name of an archive made now.
pub fn archive_name(now: DateTime<Utc>) -> String {
    format!("ferrobase-{}{SUFFIX}", now.format("%Y%m%dT%H%M%S%3fZ"))
}

/// Copies everything into a new archive in `folder`, encrypted to each of `recipients`. The server may work meanwhile.
///
/// Where it fails, is asked to stop or is killed, no archive is there.
pub async fn make(contents: &Contents, folder: &Path, recipients: &[Recipient]) -> Result<Made, BackupError> {
    let archive = folder.join(archive_name(Utc::now()));
    let halt = Halt::default();
    let _given_up = halt.on_drop();
    let mut writer = Writer::create(&archive, recipients, &halt)?;
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
    Ok(Made { archive, size, made_at, files })
}

/// Removes what is more than `keep` archives in `folder`; the last proved one stays.
pub fn retain(folder: &Path, keep: Option<NonZeroUsize>, data_dir: &Path) -> Result<Vec<PathBuf>, BackupError> {
    let proved = State::read(data_dir).proved.map(|proved| PathBuf::from(proved.archive));
    keep.map_or(Ok(Vec::new()), |keep| retention::keep_newest(folder, keep, proved.as_deref()))
}

/// Runs work on files where it keeps nobody waiting.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| BackupError::Stopped)?
}
