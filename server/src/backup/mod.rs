//! Backups and restores: the embedded PostgreSQL, the files of objects and the keys, in one encrypted archive.
//!
//! [`make`] copies while the server runs: the cluster (`cluster`), then the keys (`keys`), then the files (`files`). Only the owner of a
//! private key (`age`) can open the archive (`archive`). [`restore`] restores one, and [`verify`] checks one by restoring it
//! into a scratch cluster; `state` records the outcome. `docs/decisions/backups.md` explains the design.

mod age;
mod archive;
mod backup_store;
mod cluster;
mod config;
mod counts;
mod dump;
mod dump_facts;
mod error;
mod files;
mod increment;
pub mod keys;
mod log;
mod pace;
mod program;
mod restore;
mod retention;
mod room;
mod state;
mod stop_flag;
mod turn;
mod verify;

use std::fs::File;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};

pub use age::{Identity, Recipient};
pub use archive::Manifest;
use archive::Writer;
pub use backup_store::{BackupStore, Local};
pub use config::BackupConfig;
pub use counts::count_rows;
pub use dump::{DumpTarget, major_of, make as make_dump, restore as restore_dump};
pub use error::BackupError;
use files::Names;
pub use increment::{Parent, make as make_increment};
pub use log::{Follower, LogFiles, RestorePoint, forget_slots};
pub use restore::{LogFrom, Placing, Restored, Target, restore};
pub use retention::{age_of, last_begun};
pub use state::{Backup, FOLDER as STATE_FOLDER, LogState, State};
pub use stop_flag::StopFlag;
pub use turn::Turn;
pub use verify::{LOCKS, Proof, SESSIONS, verify, verify_dump};

use crate::http::prometheus::Counter;
use crate::storage::hold_removals;

/// Scheduled backups that failed since the server started.
pub static FAILED: Counter = Counter::new();

/// File name suffix of archives.
pub const SUFFIX: &str = ".tar.gz.age";

/// How long to wait before what another backup holds is tried again.
const HOLD_RETRY: Duration = Duration::from_millis(100);

/// What a backup contains.
#[derive(Clone, Debug)]
pub struct Contents {
    /// Connection string of the database; for the embedded PostgreSQL, of its superuser.
    pub admin_url: String,
    pub files: Files,
    /// Keys among the settings, in `.env` format.
    pub keys: String,
    /// Whether incremental archives are to follow.
    pub summarizes: bool,
    /// Whether the backup pauses while the processors are busy, some minutes in all, so that requests notice less of it.
    pub gives_way: bool,
}

/// Where the files of objects are stored.
#[derive(Clone, Debug)]
pub enum Files {
    Folder(PathBuf),
    /// In a store with this name. The archive does not contain them.
    Elsewhere(String),
}

impl Files {
    /// Keeps servers from removing files while the result is held. Taken before the database is read, so that each of its rows
    /// keeps its file. Waits for an earlier backup to end.
    async fn hold(&self) -> Result<Option<File>, BackupError> {
        let Self::Folder(root) = self else { return Ok(None) };
        let folder = root.clone();
        let held = once_free("another backup, or a removal of files,", move || hold_removals(&folder));
        held.await.map_err(BackupError::io("cannot hold", root))
    }
}

/// Takes a lock once nobody else holds it. `others` says who may.
async fn once_free<T: Send + 'static>(
    others: &str,
    take: impl Fn() -> io::Result<T> + Clone + Send + 'static,
) -> io::Result<T> {
    let mut has_told = false;
    loop {
        let take = take.clone();
        let taken = tokio::task::spawn_blocking(take).await.map_err(io::Error::other)?;
        // A thread that waits for the lock could not be stopped.
        if !taken.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            return taken;
        }
        if !has_told {
            tracing::warn!("waiting until {others} has ended");
            has_told = true;
        }
        tokio::time::sleep(HOLD_RETRY).await;
    }
}

/// A finished backup.
#[derive(Clone, Debug)]
pub struct Made {
    /// The archive's name in its place.
    pub name: String,
    /// The archive's full name.
    pub archive: String,
    /// Size of the archive in bytes.
    pub size: u64,
    pub made_at: DateTime<Utc>,
    /// The WAL chain that continues from it.
    pub chain: Option<String>,
    /// Number of files of objects.
    pub files: usize,
    /// When the full archive was started that it goes back to, or is.
    pub full_at: DateTime<Utc>,
    /// PostgreSQL's list of its files, to which an incremental archive can refer.
    list: Option<Vec<u8>>,
    /// The files of objects that are in it or in its parents, if an incremental archive can follow.
    names: Names,
}

impl Made {
    /// Whether it holds only what has changed since another archive.
    pub fn is_incremental(&self) -> bool {
        retention::is_incremental(&self.name)
    }
}

/// Reads a whole archive and returns its manifest.
pub async fn inspect(archive: &Path, identities: &[Identity]) -> Result<Manifest, BackupError> {
    let stop_flag = StopFlag::default();
    let _given_up = stop_flag.on_drop();
    if identities.is_empty() {
        return Err(BackupError::NoIdentity);
    }
    let (path, keys, asked) = (archive.to_owned(), identities.to_vec(), stop_flag.clone());
    blocking(move || archive::read(&path, &keys, &asked, |_, _| Ok(()))).await
}

/// What a place holds.
pub struct Catalog {
    /// The archives, newest first, each with the time at which it was started.
    pub archives: Vec<(DateTime<Utc>, String)>,
    /// The last verified one.
    pub proved: Option<(DateTime<Utc>, String)>,
    /// Whether the last archive that the state says was made there is there no longer.
    pub lacks_last: bool,
}

impl Catalog {
    /// Lists `backup_store`, where a data folder with this state keeps its backups.
    pub async fn read(backup_store: &BackupStore, state: &State) -> Result<Self, BackupError> {
        let names = backup_store.names().await?;
        let proved = proved_of(&names, state.proved.as_ref());
        let made = state.made_in(backup_store);
        let lacks_last = made.is_some_and(|made| !names.iter().any(|name| name == made.name()));
        let mut archives: Vec<_> =
            names.into_iter().filter_map(|name| Some((retention::time_of(&name)?, name))).collect();
        archives.sort_by(|a, b| b.cmp(a));
        Ok(Self { archives, proved, lacks_last })
    }

    /// When the last archive was started, except those of a clock that was well ahead of `now`.
    pub fn last_begun(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        last_begun(self.archives.iter().map(|(begun, _)| *begun), now)
    }
}

/// Warns if the last archive of `data_dir` is gone from `backup_store`: the next one would then fill the disk below.
pub async fn warn_if_gone(backup_store: &BackupStore, data_dir: &Path) {
    // An unreadable place is told by the backup.
    if Catalog::read(backup_store, &State::read(data_dir)).await.is_ok_and(|catalog| catalog.lacks_last) {
        tracing::warn!("the last backup is no longer where it was made: is its disk mounted?");
    }
}

/// The name of an archive started at `now`.
pub fn archive_name(now: DateTime<Utc>) -> String {
    format!("ferrobase-{}{SUFFIX}", now.format("%Y%m%dT%H%M%S%3fZ"))
}

/// Copies everything into a new archive in `backup_store`, encrypted to each of `recipients`. The server may run meanwhile.
///
/// If it fails, is stopped or is killed, no archive is left.
pub async fn make(
    contents: &Contents,
    backup_store: &BackupStore,
    recipients: &[Recipient],
) -> Result<Made, BackupError> {
    let begun = Utc::now();
    create(backup_store, &archive_name(begun), begun, recipients, |writer| write(contents, writer)).await
}

/// What was written into an archive.
struct Written {
    size: u64,
    made_at: DateTime<Utc>,
    chain: Option<String>,
    files: usize,
    list: Option<Vec<u8>>,
    names: Names,
}

/// Creates the archive `name` in `backup_store` and has `write` fill and finish it. `full_at` is when the full archive was started that it
/// goes back to.
async fn create<F>(
    backup_store: &BackupStore,
    name: &str,
    full_at: DateTime<Utc>,
    recipients: &[Recipient],
    write: impl FnOnce(Writer) -> F,
) -> Result<Made, BackupError>
where
    F: Future<Output = Result<Written, BackupError>>,
{
    if recipients.is_empty() {
        return Err(BackupError::NoRecipient);
    }
    let archive = backup_store.full_name(name);
    let stop_flag = StopFlag::default();
    let _given_up = stop_flag.on_drop();
    let (sink, arrival) = backup_store.begin(name, &stop_flag).await?;
    let written = match Writer::create(sink, &archive, recipients, &stop_flag) {
        Ok(writer) => write(writer).await,
        Err(error) => Err(error),
    };
    if written.is_err() {
        // Whatever still works for it ends, too, as an upload waits for it.
        stop_flag.set();
    }
    let Written { size, made_at, chain, files, list, names } = arrival.confirm(written).await?;
    Ok(Made { name: name.to_owned(), archive, size, made_at, chain, files, full_at, list, names })
}

async fn write(contents: &Contents, writer: Writer) -> Result<Written, BackupError> {
    let hold = contents.files.hold().await?;
    let source = cluster::Source::open(&contents.admin_url, contents.summarizes).await?;
    let db = source.data_dir.clone();
    let written = room::kept(&db, copy(contents, source, writer)).await?;
    drop(hold);
    Ok(written)
}

async fn copy(contents: &Contents, source: cluster::Source, mut writer: Writer) -> Result<Written, BackupError> {
    let running = cluster::Running::start(source).await?;
    if contents.gives_way {
        writer.give_way();
    }
    let (data_dir, system) = (running.source.data_dir.clone(), running.source.system.clone());
    let chain = running.source.chain.clone();
    let manifest = writer.manifest();
    manifest.postgres.clone_from(&running.source.major);
    manifest.start_lsn.clone_from(&running.start_lsn);
    manifest.chain.clone_from(&chain);
    let folder = data_dir.clone();
    let mut writer = blocking(move || cluster::copy_files(&folder, &mut writer).map(|()| writer)).await?;
    let (before, xid) = running.source.count_rows().await?;
    let start_file = running.start_file.clone();
    // Everything committed by now is in the WAL before its end position.
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
    let summarizes = contents.summarizes;
    let (writer, list) = blocking(move || {
        cluster::copy_log(&data_dir, &start_file, &stopped, &mut writer)?;
        // A segment's name begins with the timeline.
        let timeline = start_file.get(..8).and_then(|text| u32::from_str_radix(text, 16).ok()).unwrap_or(1);
        let list = summarizes.then(|| increment::list(writer.manifest(), &system, timeline));
        for name in cluster::PASSWORDS {
            writer.file(name, &data_dir.with_file_name(name))?;
        }
        Ok((writer, list))
    })
    .await?;
    let known = summarizes.then(Names::default);
    let (size, files, names) = finish(writer, contents, known).await?;
    Ok(Written { size, made_at, chain, files, list, names })
}

/// Adds the keys and the files of objects, which come last in every archive, and finishes it. Returns its size in bytes and how many
/// files it has. With `known`, the files that its parents hold are left out, and the result says which are held now.
async fn finish(
    mut writer: Writer,
    contents: &Contents,
    known: Option<Names>,
) -> Result<(u64, usize, Names), BackupError> {
    let (kept, keys) = (contents.files.clone(), contents.keys.clone());
    blocking(move || {
        writer.bytes(keys::ENTRY, keys.as_bytes())?;
        let before = writer.manifest().entries.len();
        let names = match kept {
            Files::Folder(root) => {
                writer.stop_compressing()?;
                files::copy(&root, known.as_ref(), &mut writer)?
            }
            Files::Elsewhere(place) => {
                writer.manifest().files_elsewhere = Some(place);
                Names::default()
            }
        };
        let files = writer.manifest().entries.len() - before;
        Ok((writer.finish()?, files, names))
    })
    .await
}

/// The names of the archives in `backup_store` that restoring `name` needs, the full one first; `name` is the last.
pub async fn lineage(backup_store: &BackupStore, name: &str) -> Result<Vec<String>, BackupError> {
    retention::lineage(&backup_store.names().await?, name)
}

/// Notes beside the archive `name` that it was verified, for all servers that use `backup_store`. A renamed one gets no note, because it
/// is never removed.
pub async fn note_proved(backup_store: &BackupStore, name: &str) -> Result<(), BackupError> {
    if !retention::is_archive(name) {
        return Ok(());
    }
    let note = retention::note_name(name);
    let stop_flag = StopFlag::default();
    let _given_up = stop_flag.on_drop();
    let (mut sink, arrival) = backup_store.begin(&note, &stop_flag).await?;
    let path = backup_store.full_name(&note);
    let written = blocking(move || {
        let text = format!("verified at {}\n", Utc::now().to_rfc3339());
        sink.write_all(text.as_bytes()).and_then(|()| sink.close()).map_err(BackupError::io("cannot write", path))
    });
    arrival.confirm(written.await).await.map(drop)
}

/// The newest of the archives `names` that is known to be verified, and when it was started: by a note beside it or as `known`, also if a
/// copy of it was verified, or it through a link (its name tells when it was started, to the millisecond).
fn proved_of(names: &[String], known: Option<&Backup>) -> Option<(DateTime<Utc>, String)> {
    let known = known.map(Backup::name).filter(|known| names.iter().any(|name| name == known));
    let name = retention::proved(names).max(known)?;
    Some((retention::time_of(name)?, name.to_owned()))
}

/// Keeps `made`, the newest `keep` archives in `backup_store` and the last verified one. Returns the names of the removed archives.
pub async fn retain(
    backup_store: &BackupStore,
    keep: Option<NonZeroUsize>,
    made: &Made,
    data_dir: &Path,
) -> Result<Vec<String>, BackupError> {
    let names = match backup_store.names().await {
        // Whoever removes nothing may be allowed to write only.
        Err(error) if keep.is_none() => {
            tracing::debug!(%error, "whether an archive was verified elsewhere is not known");
            return Ok(Vec::new());
        }
        names => names?,
    };
    let known = State::read(data_dir).proved;
    let proved = proved_of(&names, known.as_ref());
    // Verified elsewhere.
    if let Some((begun, name)) =
        proved.as_ref().filter(|(_, name)| known.is_none_or(|known| known.name() < name.as_str()))
    {
        State::record_proved(data_dir, Backup::new(&backup_store.full_name(name), *begun))?;
    }
    let Some(keep) = keep else { return Ok(Vec::new()) };
    let proved = proved.as_ref().map(|(_, name)| name.as_str());
    let old = retention::too_old(&names, keep, &made.name, proved, Utc::now());
    backup_store.remove(&old).await?;
    backup_store.remove(&retention::notes_without_archive(&names, &old)).await?;
    // WAL from before the oldest archive is useless without an older archive.
    let oldest = names.iter().filter(|name| !old.contains(name)).filter_map(|name| retention::time_of(name)).min();
    if let Some(oldest) = oldest {
        backup_store.remove(&log::too_old(&names, oldest)).await?;
    }
    Ok(old.iter().map(|name| backup_store.full_name(name)).collect())
}

/// Runs blocking file work on a thread for it.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| BackupError::Stopped)?
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A command that was told to stop waited for the backup that held the files.
    #[test]
    fn waiting_for_another_backup_can_be_given_up() {
        let root = tempfile::tempdir().expect("a folder");
        let other = hold_removals(root.path()).expect("held");
        let files = Files::Folder(root.path().to_owned());
        let (tell, ended) = mpsc::channel();
        let waiting = files.clone();
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        std::thread::spawn(move || {
            let wait = async { tokio::time::timeout(HOLD_RETRY * 2, waiting.hold()).await.is_err() };
            let has_waited = runtime().block_on(wait);
            // The runtime is gone, too.
            tell.send(has_waited).expect("a listener");
        });
        assert_eq!(ended.recv_timeout(Duration::from_secs(20)), Ok(true));
        drop(other);
        assert!(runtime().block_on(files.hold()).expect("held").is_some());
    }
}
