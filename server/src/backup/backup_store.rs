//! Where backups are stored: a folder, or a bucket of an S3-compatible server.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::SUFFIX;
use super::error::BackupError;
use super::stop_flag::StopFlag;
use crate::config::Reader;
use crate::storage::{Bucket, Piece, S3StoreConfig, StorageError};

/// What the names of local copies of objects in a bucket begin with.
pub const COPY_PREFIX: &str = ".fetched-";
/// Prefix that marks a bucket.
const SCHEME: &str = "s3://";
/// How many blocks of an archive may wait for the upload to a bucket.
const ON_THE_WAY: usize = 8;
/// Bytes of an archive that are collected before they are passed to the upload.
const GATHERED: usize = 1 << 20;

/// Where backups are stored. Cheap to clone.
#[derive(Clone, Debug)]
pub enum BackupStore {
    Folder(PathBuf),
    /// The bucket, and its name for messages.
    Bucket(Bucket, String),
}

impl BackupStore {
    /// Parses a folder, or `s3://bucket/prefix`. The credentials come from `FERROBASE_BACKUP_S3_…`, or else from the settings of
    /// the object store.
    pub fn read(text: &str, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(rest) = text.strip_prefix(SCHEME) else { return Some(Self::Folder(PathBuf::from(text))) };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_matches('/');
        if bucket.is_empty() {
            reader.problem(format!("'{text}' does not name a bucket: expected s3://bucket/prefix"));
            return None;
        }
        let config = S3StoreConfig::of_backups(reader, bucket, prefix)?;
        match Bucket::new(&config) {
            Ok(store) => Some(Self::Bucket(store, text.trim_end_matches('/').to_owned())),
            Err(error) => {
                reader.problem(format!("'{text}': {error}"));
                None
            }
        }
    }

    /// The full path or URL of a name, as used on the command line.
    pub fn full_name(&self, name: &str) -> String {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(name);
                std::path::absolute(&path).unwrap_or(path).display().to_string()
            }
            Self::Bucket(_, text) => format!("{text}/{name}"),
        }
    }

    fn failed(&self) -> impl FnOnce(StorageError) -> BackupError + use<> {
        let place = match self {
            Self::Folder(folder) => folder.display().to_string(),
            Self::Bucket(_, text) => text.clone(),
        };
        move |error| BackupError::Store { place, reason: error.to_string() }
    }

    /// Sorted names of what is stored there.
    pub async fn names(&self) -> Result<Vec<String>, BackupError> {
        match self {
            Self::Folder(folder) => {
                let entries = match std::fs::read_dir(folder) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                    entries => entries.map_err(BackupError::io("cannot read", folder))?,
                };
                let mut names: Vec<String> =
                    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
                names.sort();
                Ok(names)
            }
            Self::Bucket(bucket, _) => {
                let lying = bucket.list().await.map_err(self.failed())?;
                Ok(lying.into_iter().map(|lying| lying.name).collect())
            }
        }
    }

    pub async fn remove(&self, names: &[String]) -> Result<(), BackupError> {
        match self {
            Self::Folder(folder) => names.iter().try_for_each(|name| {
                let path = folder.join(name);
                match std::fs::remove_file(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                    outcome => outcome.map_err(BackupError::io("cannot remove", path)),
                }
            }),
            Self::Bucket(bucket, _) if !names.is_empty() => bucket.remove(names).await.map_err(self.failed()),
            Self::Bucket(..) => Ok(()),
        }
    }

    /// A local file with the content of `name`: the stored file itself, or a copy below `room` that is removed when dropped.
    pub async fn local(&self, name: &str, room: &Path) -> Result<Local, BackupError> {
        match self {
            Self::Folder(folder) => Ok(Local { path: folder.join(name), is_copy: false }),
            Self::Bucket(bucket, _) => {
                let copy = Local { path: room.join(format!("{COPY_PREFIX}{name}")), is_copy: true };
                // Left by a killed command.
                let _ = std::fs::remove_file(&copy.path);
                match bucket.fetch(name, &copy.path).await.map_err(self.failed())? {
                    true => Ok(copy),
                    false => Err(BackupError::io("cannot read", self.full_name(name))(io::ErrorKind::NotFound.into())),
                }
            }
        }
    }

    /// Begins to write `name`.
    pub async fn begin(&self, name: &str, stop_flag: &StopFlag) -> Result<(Sink, Arrival), BackupError> {
        match self {
            Self::Folder(folder) => Ok((Sink::file(&folder.join(name))?, Arrival(None))),
            Self::Bucket(bucket, _) => {
                if let Err(error) = bucket.forget_given_up().await {
                    tracing::warn!(%error, "parts of former backups may be left in the bucket");
                }
                let (out, pieces) = mpsc::channel(ON_THE_WAY);
                let (bucket, name, failed) = (bucket.clone(), name.to_owned(), self.failed());
                let sending = tokio::spawn(async move { bucket.upload(&name, pieces).await.map_err(failed) });
                Ok((
                    Sink::Upload { out, gathered: Vec::new(), size: 0, stop_flag: stop_flag.clone() },
                    Arrival(Some(sending)),
                ))
            }
        }
    }
}

/// A file to read from.
#[derive(Debug)]
pub struct Local {
    path: PathBuf,
    is_copy: bool,
}

impl Local {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if self.is_copy {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The receiving end of a [`Sink`]. The written object exists only once [`confirm`](Self::confirm) succeeds.
#[derive(Debug)]
pub struct Arrival(Option<JoinHandle<Result<Option<u64>, BackupError>>>);

impl Arrival {
    /// Waits until the written data is stored; `written` is the outcome of writing.
    pub async fn confirm<T>(self, written: Result<T, BackupError>) -> Result<T, BackupError> {
        let Some(sending) = self.0 else { return written };
        let arrived = sending.await.map_err(|_| BackupError::Stopped)?;
        match (written, arrived) {
            (Ok(written), Ok(Some(_))) => Ok(written),
            (Ok(_), Ok(None)) => Err(BackupError::Stopped),
            // The writer knows only that its bytes are no longer accepted; the upload's error gives the reason.
            (_, Err(error)) => Err(error),
            (Err(error), Ok(_)) => Err(error),
        }
    }
}

/// Data being written under a temporary name. If it is dropped before [`close`](Self::close), nothing is left.
pub enum Sink {
    File { file: File, target: PathBuf, partial: Partial },
    Upload { out: mpsc::Sender<Piece>, gathered: Vec<u8>, size: u64, stop_flag: StopFlag },
}

/// Removes the unfinished file when dropped.
pub struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        // After the rename the file no longer has this name.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Sink {
    /// Writes to the file `target`, and removes unfinished files that killed commands left in its folder.
    pub fn file(target: &Path) -> Result<Self, BackupError> {
        let folder = target.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(BackupError::io("cannot create", folder))?;
        remove_abandoned(folder);
        let path = target.with_added_extension("partial");
        let io = || BackupError::io("cannot write", &path);
        let file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path).map_err(io())?;
        let partial = Partial(path.clone());
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| io()(error.into()))?;
        Ok(Self::File { file, target: target.to_owned(), partial })
    }

    fn hand_on(&mut self) -> io::Result<()> {
        let Self::Upload { out, gathered, size, stop_flag } = self else { return Ok(()) };
        // After a halt, the bytes may come from a thread that must not block.
        stop_flag.check()?;
        *size += gathered.len() as u64;
        let piece = Piece::Bytes(Bytes::from(std::mem::take(gathered)));
        out.blocking_send(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Renames the file to its final name once all of it is on disk. For a bucket, the [`Arrival`] says when the object exists.
    /// Returns the size in bytes.
    pub fn close(mut self) -> io::Result<u64> {
        self.hand_on()?;
        match self {
            Self::File { file, target, partial } => {
                file.sync_all()?;
                let size = file.metadata()?.len();
                std::fs::rename(&partial.0, &target)?;
                let folder = target.parent().unwrap_or(Path::new("."));
                File::open(folder).and_then(|folder| folder.sync_all())?;
                Ok(size)
            }
            Self::Upload { out, size, .. } => {
                out.blocking_send(Piece::End).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
                Ok(size)
            }
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File { file, .. } => return file.write(bytes),
            Self::Upload { gathered, .. } => gathered.extend_from_slice(bytes),
        }
        if matches!(self, Self::Upload { gathered, .. } if gathered.len() >= GATHERED) {
            self.hand_on()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Removes unfinished files of killed commands: those that nobody holds a lock on.
fn remove_abandoned(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.to_string_lossy().ends_with(&format!("{SUFFIX}.partial")) {
            continue;
        }
        let lock = |file: &File| rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
        if File::open(entry.path()).is_ok_and(|file| lock(&file).is_ok()) {
            // Another command may have removed the file first.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
