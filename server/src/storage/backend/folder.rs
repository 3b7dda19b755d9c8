//! Files below a local folder.
//!
//! A file is written under a temporary name, synced and renamed, and its folder is synced, so that after a crash the file is
//! either complete or absent. Copies are hard links, because a version's bytes never change. Only the server's account can read
//! the files.
//!
//! Work on the disk takes [`Turns`], so that a disk that stalls stops only what needs it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, IoSliceMut, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::stream;
use md5::{Digest, Md5};
use parking_lot::Mutex;
use rustix::io::{ReadWriteFlags, preadv2};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use uuid::Uuid;

use super::write_buffer::{BufferBudget, WriteBuffer};
use super::{Listed, OpenFile, PARTS, Place, hold, listed};
use crate::http::answer_file::AnswerFile;
use crate::storage::error::StorageError;
use crate::storage::sniff::{self, HEAD_BYTES};

/// How often a folder that was removed meanwhile is created again.
const FOLDER_TRIES: usize = 100;
/// Bytes collected while the previous ones are written.
const WRITE_BYTES: usize = 512 * 1024;
/// Bytes after which the disk is asked to start writing.
const SYNC_BYTES: usize = 16 << 20;
/// Bytes collected by all uploads together; the same amount may be in writing.
const GATHERED: usize = 16 << 20;
/// Bytes read at a time. With half of them a client on the same core slows a download by a fifth.
const READ_BYTES: usize = 256 * 1024;
/// Files per page of the sweep.
const PAGE: usize = 1000;
/// Files removed per blocking task.
const REMOVE_PAGE: usize = 100;
/// Extension of files being written.
const TEMPORARY: &str = ".new";
/// Threads that read the disk at once, and threads that write to it.
const AT_ONCE: usize = 64;
/// How long work on the disk waits for its turn.
const TURN_WAIT: Duration = Duration::from_secs(10);

/// Files below a folder. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Folder {
    root: Arc<PathBuf>,
    room: BufferBudget,
    reads: Turns,
    writes: Turns,
}

/// Limits how many threads are on the disk. A disk that stalls keeps its threads, also those of requests that were given up
/// meanwhile. Without a limit these would use up the worker's threads and, with what they hold, the memory. Reads and writes have
/// turns of their own, because a disk may stall for one of them only. Cheap to clone.
#[derive(Clone, Debug)]
struct Turns {
    free: Arc<Semaphore>,
    wait: Duration,
}

impl Turns {
    fn of(at_once: usize, wait: Duration) -> Self {
        Self { free: Arc::new(Semaphore::new(at_once)), wait }
    }

    /// The next turn.
    ///
    /// Errors: [`ErrorKind::TimedOut`] if others have not finished in time.
    async fn take(&self) -> std::io::Result<OwnedSemaphorePermit> {
        match timeout(self.wait, Arc::clone(&self.free).acquire_owned()).await {
            Ok(turn) => turn.map_err(std::io::Error::other),
            Err(_) => Err(std::io::Error::new(ErrorKind::TimedOut, "the disk of the files does not answer in time")),
        }
    }

    /// A turn, if one is free.
    fn take_now(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }
}

/// A file being written; removed again unless [`FolderFile::finish`] succeeds.
pub struct FolderFile {
    folder: Folder,
    place: Place,
    buffer: WriteBuffer,
    /// The previous bytes, being written.
    writing: Option<Writing>,
}

/// A write in progress. Bytes are written and hashed in parallel, because both take about as long.
struct Writing {
    piece: Arc<Vec<u8>>,
    written: JoinHandle<std::io::Result<Written>>,
    digest: JoinHandle<Md5>,
}

/// A file so far, and the hash of its bytes.
type SoFar = (Written, Md5);

impl Writing {
    async fn begin(folder: &Folder, before: Option<SoFar>, piece: Vec<u8>) -> std::io::Result<Self> {
        let turn = folder.writes.take().await?;
        let piece = Arc::new(piece);
        let (written, mut digest) =
            before.map_or_else(|| (None, Md5::new()), |(written, digest)| (Some(written), digest));
        let (folder, to_write, to_hash) = (folder.clone(), Arc::clone(&piece), Arc::clone(&piece));
        Ok(Self {
            piece,
            written: spawn_blocking(move || {
                let _turn = turn;
                let mut written = written.map_or_else(|| Written::begin(&folder), Ok)?;
                written.write(&to_write)?;
                Ok(written)
            }),
            digest: spawn_blocking(move || {
                digest.update(&*to_hash);
                digest
            }),
        })
    }

    /// Waits until the bytes are written. Returns the file, and the buffer for reuse.
    async fn end(self) -> std::io::Result<(SoFar, Vec<u8>)> {
        let (written, digest) = futures_util::join!(self.written, self.digest);
        let written = written.map_err(std::io::Error::other)??;
        let digest = digest.map_err(std::io::Error::other)?;
        Ok(((written, digest), Arc::into_inner(self.piece).unwrap_or_default()))
    }
}

/// The part of a file that is written so far.
struct Written {
    temporary: Temporary,
    unsynced: usize,
    syncing: Option<JoinHandle<()>>,
}

impl Written {
    fn begin(folder: &Folder) -> std::io::Result<Self> {
        Ok(Self { temporary: folder.temporary()?, unsynced: 0, syncing: None })
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        (&*self.temporary.file).write_all(bytes)?;
        self.unsynced += bytes.len();
        if self.unsynced >= SYNC_BYTES
            && self.syncing.as_ref().is_none_or(JoinHandle::is_finished)
            && let Some(turn) = self.temporary.writes.take_now()
        {
            self.unsynced = 0;
            let file = Arc::clone(&self.temporary.file);
            // The disk starts to write while more bytes arrive. Only the sync at the end counts, and it reports errors.
            self.syncing = Some(spawn_blocking(move || {
                let _turn = turn;
                drop(file.sync_data());
            }));
        }
        Ok(())
    }
}

/// A file under its temporary name.
struct Temporary {
    path: PathBuf,
    file: Arc<File>,
    renamed: bool,
    writes: Turns,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.renamed {
            return;
        }
        let path = std::mem::take(&mut self.path);
        let Some(turn) = self.writes.take_now() else {
            tracing::warn!(path = %path.display(), "an unfinished upload's file is left to the sweep: the disk is busy");
            return;
        };
        // Drop may run on a worker thread, which must not block on the disk.
        let removal = std::thread::Builder::new().spawn(move || {
            let _turn = turn;
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "an unfinished upload's file stays behind");
            }
        });
        if let Err(error) = removal {
            tracing::warn!(%error, "an unfinished upload's file stays behind");
        }
    }
}

impl Folder {
    pub fn new(root: PathBuf) -> Self {
        let [reads, writes] = [(); 2].map(|()| Turns::of(AT_ONCE, TURN_WAIT));
        Self { root: Arc::new(root), room: BufferBudget::of(GATHERED), reads, writes }
    }

    /// Closes the folder to other accounts. Older files keep their modes, but cannot be reached through the closed folder.
    pub fn close_to_others(&self) -> std::io::Result<()> {
        match fs::set_permissions(&*self.root, fs::Permissions::from_mode(0o700)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        }
    }

    fn path(&self, place: &Place) -> PathBuf {
        self.root.join(place.as_str())
    }

    pub(super) fn create(&self, place: &Place) -> FolderFile {
        FolderFile { folder: self.clone(), place: place.clone(), buffer: WriteBuffer::new(&self.room), writing: None }
    }

    pub(super) async fn open(
        &self,
        place: &Place,
        range: Option<(u64, u64)>,
    ) -> Result<Option<OpenFile>, StorageError> {
        let path = self.path(place);
        let opened = blocking(&self.reads, move || {
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if is_absent(&error) => return Ok(None),
                Err(error) => return Err(error),
            };
            let known = file.metadata()?;
            if !known.is_file() {
                return Ok(None);
            }
            let (first, end) = range.map_or((0, known.len()), |(first, last)| (first, last + 1));
            if end > known.len() {
                return Err(std::io::Error::new(ErrorKind::UnexpectedEof, "the file is shorter than its row says"));
            }
            // Most files fit into the first piece and are read at once.
            let piece = read_piece(&file, first, end)?;
            Ok(Some((AnswerFile::from(file), known.len(), first, end, piece)))
        })
        .await?;
        let Some((file, size, first, end, piece)) = opened else { return Ok(None) };
        let next = first + piece.len() as u64;
        let (buffers, reads) = (ReadBuffers::default(), self.reads.clone());
        let rest = stream::try_unfold((Arc::new(file), next), move |(file, at)| {
            let (buffers, reads) = (buffers.clone(), reads.clone());
            async move {
                if at >= end {
                    return Ok(None);
                }
                let piece = match buffers.read_cached(&file, at, end) {
                    Some(piece) => piece,
                    None => {
                        let reader = Arc::clone(&file);
                        blocking(&reads, move || read_piece(&reader, at, end)).await?
                    }
                };
                let next = at + piece.len() as u64;
                Ok(Some((piece, (file, next))))
            }
        });
        let bytes = stream::StreamExt::chain(stream::iter([Ok(piece)]), rest);
        Ok(Some(OpenFile { size, bytes: Box::pin(bytes) }))
    }

    pub(super) async fn copy(&self, from: &Place, to: &Place) -> Result<bool, StorageError> {
        let (folder, source, place) = (self.clone(), self.path(from), to.clone());
        let copied = blocking(&self.writes, move || {
            let target = folder.path(&place);
            let linked = folder.put_into_folder(&target, |target| fs::hard_link(&source, target));
            match linked {
                Ok(()) => Ok(true),
                Err(error) if is_absent(&error) && !source.exists() => Ok(false),
                Err(error) if is_conflict(&error) => Err(error),
                // Not every file system supports links.
                Err(_) => {
                    let temporary = folder.temporary()?;
                    std::io::copy(&mut File::open(&source)?, &mut &*temporary.file)?;
                    folder.land(temporary, &target).map(|()| true)
                }
            }
        })
        .await;
        copied.map_err(|error| refused(error, to))
    }

    pub(super) async fn assemble(&self, parts: &[Place], to: &Place) -> Result<&'static str, StorageError> {
        let (folder, place) = (self.clone(), to.clone());
        let sources: Vec<PathBuf> = parts.iter().map(|part| self.path(part)).collect();
        let assembled = blocking(&self.writes, move || {
            let target = folder.path(&place);
            let head = sources.first().map_or(Ok(Bytes::new()), |first| {
                let file = File::open(first)?;
                let length = file.metadata()?.len().min(HEAD_BYTES as u64);
                read_piece(&file, 0, length)
            })?;
            if let [only] = sources.as_slice() {
                // An existing file was left by an interrupted attempt; while removals are held, it has not been removed.
                folder.put_into_folder(&target, |target| match fs::hard_link(only, target) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                        fs::remove_file(target).and_then(|()| fs::hard_link(only, target))
                    }
                    linked => linked,
                })?;
            } else {
                let temporary = folder.temporary()?;
                for source in &sources {
                    std::io::copy(&mut File::open(source)?, &mut &*temporary.file)?;
                }
                folder.land(temporary, &target)?;
            }
            Ok(sniff::detect(&head))
        })
        .await;
        assembled.map_err(|error| refused(error, to))
    }

    pub(super) async fn remove(&self, places: &[Place]) -> Vec<(Place, StorageError)> {
        let mut left = Vec::new();
        for page in places.chunks(REMOVE_PAGE) {
            let (folder, owned) = (self.clone(), page.to_vec());
            let removed = blocking(&self.writes, move || {
                let held = hold::Held::of(&folder.root);
                // Parts are not objects, so no point in time needs them.
                let stays = |place: &Place| match held {
                    hold::Held::Since(_) if place.as_str().starts_with(PARTS) => false,
                    _ => held.keeps(&folder.path(place)),
                };
                Ok(owned
                    .into_iter()
                    // The sweep removes the remaining ones later.
                    .filter(|place| !stays(place))
                    .filter_map(|place| folder.remove_one(&place).err().map(|error| (place, error.into())))
                    .collect::<Vec<_>>())
            });
            left.extend(removed.await.unwrap_or_else(|error| {
                let why = error.to_string();
                page.iter().map(|place| (place.clone(), StorageError::Internal(why.clone()))).collect()
            }));
        }
        left
    }

    fn remove_one(&self, place: &Place) -> std::io::Result<()> {
        let path = self.path(place);
        match fs::remove_file(&path) {
            Ok(()) => {
                if let Some(folder) = path.parent() {
                    // Fails if other versions or keys are below, which is intended.
                    let _ = fs::remove_dir(folder);
                }
                Ok(())
            }
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Lists one folder at a time and passes each page on as soon as it is full.
    pub(super) async fn walk(
        &self,
        min_age: Duration,
        mut take: impl AsyncFnMut(Vec<Listed>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let mut folders = vec![self.root.as_ref().clone()];
        let mut page = Vec::new();
        while let Some(folder) = folders.pop() {
            let root = self.clone();
            let (below, files) = blocking(&self.writes, move || root.look_into(&folder, min_age)).await?;
            folders.extend(below);
            for file in files {
                page.push(file);
                if page.len() == PAGE {
                    take(std::mem::take(&mut page)).await?;
                }
            }
        }
        if page.is_empty() { Ok(()) } else { take(page).await }
    }

    /// The subfolders of a folder, and its files that are old enough. Removes old temporary files.
    fn look_into(&self, folder: &Path, min_age: Duration) -> std::io::Result<(Vec<PathBuf>, Vec<Listed>)> {
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return Ok((folders, files)),
            Err(error) => return Err(error),
        };
        let temporary = folder == self.root.join(TEMPORARY);
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            let path = entry.path();
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            // It may have been removed. A copy shares its source's mtime but has a ctime of its own.
            let Ok(known) = entry.metadata() else { continue };
            let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(known.ctime().unsigned_abs());
            let age = SystemTime::now().duration_since(changed).unwrap_or_default();
            if !kind.is_file() || age < min_age {
                continue;
            }
            if temporary {
                let _ = fs::remove_file(&path);
            } else if let Some(file) = path.strip_prefix(&*self.root).ok().and_then(Path::to_str) {
                files.extend(listed(file, age));
            }
        }
        Ok((folders, files))
    }

    fn temporary(&self) -> std::io::Result<Temporary> {
        let folder = self.root.join(TEMPORARY);
        let path = folder.join(Uuid::new_v4().to_string());
        let open = || OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        let file = match open() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.make_folders(&folder)?;
                open()?
            }
            outcome => outcome?,
        };
        Ok(Temporary { path, file: Arc::new(file), renamed: false, writes: self.writes.clone() })
    }

    /// Syncs a file and renames it.
    fn land(&self, mut temporary: Temporary, target: &Path) -> std::io::Result<()> {
        temporary.file.sync_all()?;
        self.put_into_folder(target, |target| fs::rename(&temporary.path, target))?;
        temporary.renamed = true;
        Ok(())
    }

    /// Creates the target's folder, calls `put`, and syncs the folder. If the removal of the key's last version removes the
    /// folder in between, creates it again.
    fn put_into_folder(&self, target: &Path, put: impl Fn(&Path) -> std::io::Result<()>) -> std::io::Result<()> {
        let folder = target.parent().ok_or_else(|| std::io::Error::from(ErrorKind::InvalidInput))?;
        let mut tries = 0;
        loop {
            tries += 1;
            let done = self.make_folders(folder).and_then(|()| put(target));
            match done {
                Err(error) if error.kind() == ErrorKind::NotFound && tries < FOLDER_TRIES => {}
                outcome => break outcome?,
            }
        }
        sync_folder(folder)
    }

    /// Creates a folder below the root with its parents, each durable before it is used.
    fn make_folders(&self, folder: &Path) -> std::io::Result<()> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Ok(()) => folder.parent().map_or(Ok(()), sync_folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if fs::metadata(folder).is_ok_and(|known| !known.is_dir()) {
                    return Err(ErrorKind::NotADirectory.into());
                }
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let above = folder.parent().ok_or(error)?;
                self.make_folders(above)?;
                match DirBuilder::new().mode(0o700).create(folder) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                    outcome => outcome,
                }?;
                sync_folder(above)
            }
            Err(error) => Err(error),
        }
    }
}

impl FolderFile {
    pub(super) async fn write(&mut self, bytes: Bytes) -> Result<(), StorageError> {
        if !self.buffer.take(&bytes, WRITE_BYTES) {
            return Ok(());
        }
        let piece = self.buffer.give();
        let before = match self.writing.take() {
            None => None,
            Some(writing) => {
                let (so_far, buffer) = writing.end().await?;
                self.buffer.give_back(buffer);
                Some(so_far)
            }
        };
        self.writing = Some(Writing::begin(&self.folder, before, piece).await?);
        Ok(())
    }

    /// The file's place, and the hash of its bytes.
    pub(super) async fn finish(self) -> Result<(Place, [u8; 16]), StorageError> {
        let Self { folder, place, mut buffer, writing } = self;
        let before = match writing {
            None => None,
            Some(writing) => Some(writing.end().await?.0),
        };
        let target = folder.path(&place);
        let rest = buffer.give();
        let writes = folder.writes.clone();
        let landed = blocking(&writes, move || {
            let (mut written, mut digest) = match before {
                None => (Written::begin(&folder)?, Md5::new()),
                Some(so_far) => so_far,
            };
            digest.update(&rest);
            written.write(&rest)?;
            folder.land(written.temporary, &target)?;
            Ok(digest.finalize().into())
        })
        .await;
        match landed {
            Ok(md5) => Ok((place, md5)),
            Err(error) => Err(refused(error, &place)),
        }
    }
}

fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

fn read_piece(file: &File, first: u64, end: u64) -> std::io::Result<Bytes> {
    let length = usize::try_from(end - first).map_or(READ_BYTES, |left| left.min(READ_BYTES));
    let mut buffer = vec![0; length];
    file.read_exact_at(&mut buffer, first)?;
    Ok(buffer.into())
}

/// The buffers of one download. Each is used again as soon as its piece is sent.
#[derive(Clone, Debug, Default)]
struct ReadBuffers(Arc<Mutex<Vec<Vec<u8>>>>);

impl ReadBuffers {
    /// The next piece of a file if the kernel has it in memory, so that reading it needs no other thread. None where the disk has
    /// to be asked, and where the file system cannot tell.
    fn read_cached(&self, file: &File, first: u64, end: u64) -> Option<Bytes> {
        let length = usize::try_from(end - first).map_or(READ_BYTES, |left| left.min(READ_BYTES));
        let mut buffer = self.0.lock().pop().unwrap_or_else(|| vec![0; READ_BYTES]);
        let read = preadv2(file, &mut [IoSliceMut::new(buffer.get_mut(..length)?)], first, ReadWriteFlags::NOWAIT);
        let length = read.ok().filter(|read| *read > 0);
        let piece = ReadBuffer { buffer, length: length.unwrap_or(0), home: self.clone() };
        length.map(|_| Bytes::from_owner(piece))
    }
}

/// A filled buffer, which goes back when its bytes are sent.
struct ReadBuffer {
    buffer: Vec<u8>,
    length: usize,
    home: ReadBuffers,
}

impl AsRef<[u8]> for ReadBuffer {
    fn as_ref(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        self.home.0.lock().push(std::mem::take(&mut self.buffer));
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    // A key below a version: there is a file where a folder is expected.
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn is_conflict(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::IsADirectory | ErrorKind::InvalidFilename)
}

/// A name that conflicts with an existing file, such as a key below another object's version.
fn refused(error: std::io::Error, place: &Place) -> StorageError {
    if is_conflict(&error) {
        let mut segments: Vec<&str> = place.as_str().split('/').collect();
        segments.pop();
        return StorageError::InvalidKey(segments.get(1..).map(|key| key.join("/")).unwrap_or_default());
    }
    error.into()
}

/// Runs work on the disk off the worker threads. Its turn ends with the work, which continues even if nobody waits for it.
async fn blocking<T: Send + 'static>(
    turns: &Turns,
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    let turn = turns.take().await?;
    let working = spawn_blocking(move || {
        let _turn = turn;
        work()
    });
    working.await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::TryStreamExt;

    fn scratch() -> (PathBuf, Folder) {
        let root = std::env::temp_dir().join(format!("folder-{}", Uuid::new_v4()));
        (root.clone(), Folder::new(root))
    }

    /// Writes a file in pieces, as it arrives from the network. Returns its hash.
    async fn put(folder: &Folder, place: &Place, bytes: &[u8]) -> Result<[u8; 16], StorageError> {
        let mut file = folder.create(place);
        for piece in bytes.chunks(100_003) {
            file.write(Bytes::copy_from_slice(piece)).await?;
        }
        file.finish().await.map(|(_, md5)| md5)
    }

    async fn read(folder: &Folder, place: &Place, range: Option<(u64, u64)>) -> Option<Vec<u8>> {
        let file = folder.open(place, range).await.expect("open")?;
        let pieces: Vec<Bytes> = file.bytes.try_collect().await.expect("read");
        Some(pieces.concat())
    }

    fn place(key: &str) -> Place {
        Place::named("documents", key, &Uuid::new_v4().to_string())
    }

    #[actix_web::test]
    async fn a_folder_removed_during_a_write_is_created_again() {
        let (root, folder) = scratch();
        let rounds = |folder: Folder| async move {
            for _ in 0..100 {
                let place = place("person/letter.pdf");
                put(&folder, &place, b"%PDF-1.7").await.expect("a new version");
                assert_eq!(read(&folder, &place, None).await.as_deref(), Some(&b"%PDF-1.7"[..]));
                assert!(folder.remove(&[place]).await.is_empty());
            }
        };
        let tasks: Vec<_> = (0..4).map(|_| actix_web::rt::spawn(rounds(folder.clone()))).collect();
        for task in tasks {
            task.await.expect("no version was lost");
        }
        fs::remove_dir_all(&root).expect("clean");
    }

    #[actix_web::test]
    async fn only_the_server_can_read_files_and_folders() {
        let (root, folder) = scratch();
        let file = place("a/b");
        put(&folder, &file, b"x").await.expect("file");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&folder.path(&file)), 0o600);
        for path in [&*root, &root.join("documents"), &root.join("documents/a/b")] {
            assert_eq!(mode(path), 0o700, "{}", path.display());
        }
        fs::remove_dir_all(&root).expect("clean");
    }

    #[actix_web::test]
    async fn an_unfinished_file_leaves_nothing() {
        let (root, folder) = scratch();
        let place = place("a");
        let mut file = folder.create(&place);
        file.write(vec![7; WRITE_BYTES + 1].into()).await.expect("write");
        let count_of = async |wanted: usize| {
            for _ in 0..500 {
                if fs::read_dir(root.join(TEMPORARY)).is_ok_and(|entries| entries.count() == wanted) {
                    return true;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            false
        };
        assert!(count_of(1).await, "it is written under another name");
        drop(file);
        assert!(count_of(0).await, "and gone");
        assert!(read(&folder, &place, None).await.is_none());
        fs::remove_dir_all(&root).expect("clean");
    }

    /// Opening a named pipe blocks like a disk that stalls.
    #[actix_web::test]
    async fn a_stalled_disk_holds_few_threads_and_the_rest_goes_on() {
        let (root, mut folder) = scratch();
        folder.reads = Turns::of(3, Duration::from_millis(300));
        let (whole, stalled) = (place("a"), place("b"));
        put(&folder, &whole, b"%PDF-1").await.expect("file");
        let pipe = folder.path(&stalled);
        fs::create_dir_all(pipe.parent().expect("a folder")).expect("a folder");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).expect("a pipe");
        // Ten requests are given up while they wait.
        for _ in 0..10 {
            let opened = timeout(Duration::from_millis(10), folder.open(&stalled, None)).await;
            assert!(opened.is_err(), "it stalls");
        }
        let left = folder.reads.free.available_permits();
        let read_meanwhile = timeout(Duration::from_secs(10), folder.open(&whole, None)).await;
        let written_meanwhile = timeout(Duration::from_secs(10), put(&folder, &place("c"), b"x")).await;
        // The disk answers again, before a failed assertion would wait for it.
        let other_end = OpenOptions::new().read(true).write(true).open(&pipe).expect("the other end");
        assert_eq!(left, 0, "three threads are on the disk");
        let refused = read_meanwhile.expect("in time").err().expect("no turn is free");
        assert_eq!(refused.true_status(), 503, "{refused:?}");
        written_meanwhile.expect("in time").expect("writes have turns of their own");
        let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
        while folder.reads.free.available_permits() < 3 {
            assert!(tokio::time::Instant::now() < deadline, "the turns do not end");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(read(&folder, &whole, None).await.as_deref(), Some(&b"%PDF-1"[..]));
        drop(other_end);
        fs::remove_dir_all(&root).expect("clean");
    }

    #[actix_web::test]
    async fn a_range_of_a_large_file_is_exact() {
        let (root, folder) = scratch();
        let bytes: Vec<u8> = (0..2_000_000_u32).map(|n| (n % 251) as u8).collect();
        let place = place("a");
        let md5 = put(&folder, &place, &bytes).await.expect("file");
        assert_eq!(
            md5,
            <[u8; 16]>::from(Md5::digest(&bytes)),
            "hashed while it is written, in the order of its pieces"
        );
        let stored = File::open(folder.path(&place)).expect("there");
        for is_cached in [true, false] {
            if !is_cached {
                rustix::fs::fadvise(&stored, 0, None, rustix::fs::Advice::DontNeed).expect("the kernel forgets it");
            }
            assert_eq!(read(&folder, &place, None).await.as_deref(), Some(&bytes[..]), "{is_cached}");
            let part = read(&folder, &place, Some((3, 1_500_000))).await;
            assert_eq!(part.as_deref(), Some(&bytes[3..=1_500_000]), "{is_cached}");
        }
        assert!(folder.open(&place, Some((0, 2_000_000))).await.is_err());
        fs::remove_dir_all(&root).expect("clean");
    }

    #[actix_web::test]
    async fn copies_outlive_their_source_and_parts_are_joined() {
        let (root, folder) = scratch();
        let (first, second, third) = (place("a"), place("b/c"), place("d"));
        put(&folder, &first, b"%PDF-1").await.expect("file");
        assert!(folder.copy(&first, &second).await.expect("copy"));
        assert!(folder.remove(std::slice::from_ref(&first)).await.is_empty());
        assert_eq!(read(&folder, &second, None).await.as_deref(), Some(&b"%PDF-1"[..]));
        assert!(!folder.copy(&first, &third).await.expect("no source"));
        let parts = [Place::part("u", Uuid::new_v4()), Place::part("u", Uuid::new_v4())];
        put(&folder, &parts[0], b"%PDF-").await.expect("part");
        put(&folder, &parts[1], b"1.7").await.expect("part");
        assert_eq!(folder.assemble(&parts, &third).await.expect("whole"), "application/pdf");
        assert_eq!(read(&folder, &third, None).await.as_deref(), Some(&b"%PDF-1.7"[..]));
        // A second attempt after an interrupted one, whose file was kept because a backup holds removals.
        let _held = hold::hold_removals(&root).expect("held");
        for parts in [&parts[..], &parts[1..]] {
            assert!(folder.remove(std::slice::from_ref(&third)).await.is_empty());
            folder.assemble(parts, &third).await.expect("once more");
        }
        assert_eq!(read(&folder, &third, None).await.as_deref(), Some(&b"1.7"[..]));
        fs::remove_dir_all(&root).expect("clean");
    }

    /// Regression: the answer was a 500.
    #[actix_web::test]
    async fn a_key_below_a_version_is_an_invalid_key() {
        let (root, folder) = scratch();
        let first = place("a");
        put(&folder, &first, b"x").await.expect("file");
        let version = first.as_str().rsplit('/').next().expect("version").to_owned();
        let below = place(&format!("a/{version}/x"));
        let refused = put(&folder, &below, b"y").await.expect_err("refused");
        assert_eq!(refused.to_string(), format!("Invalid key: a/{version}/x"));
        assert!(read(&folder, &below, None).await.is_none());
        fs::remove_dir_all(&root).expect("clean");
    }

    #[actix_web::test]
    async fn the_sweep_sees_only_old_version_files() {
        let (root, folder) = scratch();
        let file = place("some/key");
        put(&folder, &file, b"x").await.expect("file");
        fs::write(root.join("documents/notes.txt"), "x").expect("file");
        let found = |age: Duration| {
            let folder = folder.clone();
            async move {
                let mut all = Vec::new();
                let walked = folder.walk(age, async |page| {
                    all.extend(page.into_iter().map(|file: Listed| file.place));
                    Ok(())
                });
                walked.await.expect("walk");
                all
            }
        };
        assert_eq!(found(Duration::ZERO).await, [file]);
        assert!(found(Duration::from_secs(60)).await.is_empty());
        fs::remove_dir_all(&root).expect("clean");
    }
}
