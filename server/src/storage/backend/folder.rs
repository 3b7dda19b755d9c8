//! Files below one folder of this machine.
//!
//! A file is written under a temporary name, synced, renamed, and its folder synced, so that a crash leaves the whole
//! file or none. Copies are hard links: a version's bytes never change. Nobody but the server's account may read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::stream;
use md5::{Digest, Md5};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::gathering::{Gathering, Room};
use super::{Listed, OpenFile, PARTS, Place, hold, listed};
use crate::storage::error::StorageError;
use crate::storage::sniff::{self, HEAD_BYTES};

/// How often a folder that was removed meanwhile is made anew.
const FOLDER_TRIES: usize = 100;
/// Bytes that are gathered while as many are written.
const WRITE_BYTES: usize = 512 * 1024;
/// Bytes after which the disk is asked to begin with them.
const SYNC_BYTES: usize = 16 << 20;
/// Bytes of all uploads that are gathered at once; as many are being written.
const GATHERED: usize = 16 << 20;
/// Bytes read at a time.
const READ_BYTES: usize = 256 * 1024;
/// Files of one page of the sweep.
const PAGE: usize = 1000;
/// Files removed in one go off the workers.
const REMOVE_PAGE: usize = 100;
/// Files that are being written.
const TEMPORARY: &str = ".new";

/// Files below one folder. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Folder {
    root: Arc<PathBuf>,
    room: Room,
}

/// A file being written; removed again unless [`FolderFile::finish`] succeeds.
pub struct FolderFile {
    folder: Folder,
    place: Place,
    gathering: Gathering,
    /// What was gathered before, on its way to the disk.
    writing: Option<Writing>,
}

/// A piece on its way: it is written and hashed at the same time, because either takes about as long as the other.
struct Writing {
    piece: Arc<Vec<u8>>,
    written: JoinHandle<std::io::Result<Written>>,
    digest: JoinHandle<Md5>,
}

/// A file so far, and the hash of its bytes.
type SoFar = (Written, Md5);

impl Writing {
    fn begin(folder: &Folder, before: Option<SoFar>, piece: Vec<u8>) -> Self {
        let piece = Arc::new(piece);
        let (written, mut digest) =
            before.map_or_else(|| (None, Md5::new()), |(written, digest)| (Some(written), digest));
        let (folder, to_write, to_hash) = (folder.clone(), Arc::clone(&piece), Arc::clone(&piece));
        Self {
            piece,
            written: tokio::task::spawn_blocking(move || {
                let mut written = written.map_or_else(|| Written::begin(&folder), Ok)?;
                written.write(&to_write)?;
                Ok(written)
            }),
            digest: tokio::task::spawn_blocking(move || {
                digest.update(&*to_hash);
                digest
            }),
        }
    }

    /// The file once the piece is written, and the piece's buffer.
    async fn end(self) -> std::io::Result<(SoFar, Vec<u8>)> {
        let (written, digest) = futures_util::join!(self.written, self.digest);
        let written = written.map_err(std::io::Error::other)??;
        let digest = digest.map_err(std::io::Error::other)?;
        Ok(((written, digest), Arc::into_inner(self.piece).unwrap_or_default()))
    }
}

/// What a file being written holds so far.
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
        if self.unsynced >= SYNC_BYTES && self.syncing.as_ref().is_none_or(JoinHandle::is_finished) {
            self.unsynced = 0;
            let file = Arc::clone(&self.temporary.file);
            // The disk works while further bytes come. The sync at the end is the one that counts, and tells of a fault.
            self.syncing = Some(tokio::task::spawn_blocking(move || drop(file.sync_data())));
        }
        Ok(())
    }
}

/// A file under its temporary name.
struct Temporary {
    path: PathBuf,
    file: Arc<File>,
    renamed: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.renamed {
            return;
        }
        let path = std::mem::take(&mut self.path);
        // Dropping happens on a worker thread too, which must not wait for a disk.
        let removal = std::thread::Builder::new().spawn(move || {
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
        Self { root: Arc::new(root), room: Room::of(GATHERED) }
    }

    /// Closes the folder to other accounts. Files written before this was done stay as readable as they were, but
    /// behind a door that is shut.
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
        FolderFile { folder: self.clone(), place: place.clone(), gathering: Gathering::new(&self.room), writing: None }
    }

    pub(super) async fn open(
        &self,
        place: &Place,
        range: Option<(u64, u64)>,
    ) -> Result<Option<OpenFile>, StorageError> {
        let path = self.path(place);
        let opened = blocking(move || {
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
            // Most files fit into the first piece: they are read in one go.
            let piece = read_piece(&file, first, end)?;
            Ok(Some((file, known.len(), first, end, piece)))
        })
        .await?;
        let Some((file, size, first, end, piece)) = opened else { return Ok(None) };
        let next = first + piece.len() as u64;
        let rest = stream::try_unfold((Arc::new(file), next), move |(file, at)| async move {
            if at >= end {
                return Ok(None);
            }
            let reader = Arc::clone(&file);
            let piece = blocking(move || read_piece(&reader, at, end)).await?;
            let next = at + piece.len() as u64;
            Ok(Some((piece, (file, next))))
        });
        let bytes = stream::StreamExt::chain(stream::iter([Ok(piece)]), rest);
        Ok(Some(OpenFile { size, bytes: Box::pin(bytes) }))
    }

    pub(super) async fn copy(&self, from: &Place, to: &Place) -> Result<bool, StorageError> {
        let (folder, source, place) = (self.clone(), self.path(from), to.clone());
        let copied = blocking(move || {
            let target = folder.path(&place);
            let linked = folder.put_into_folder(&target, |target| fs::hard_link(&source, target));
            match linked {
                Ok(()) => Ok(true),
                Err(error) if is_absent(&error) && !source.exists() => Ok(false),
                Err(error) if is_conflict(&error) => Err(error),
                // Not every file system has links.
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
        let assembled = blocking(move || {
            let target = folder.path(&place);
            let head = sources.first().map_or(Ok(Bytes::new()), |first| {
                let file = File::open(first)?;
                let length = file.metadata()?.len().min(HEAD_BYTES as u64);
                read_piece(&file, 0, length)
            })?;
            if let [only] = sources.as_slice() {
                // What is there was left by an attempt that was cut off; while removals are held it is not removed before.
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
            let removed = blocking(move || {
                let held = hold::Held::of(&folder.root);
                // Parts are no objects: no moment needs them.
                let stays = |place: &Place| match held {
                    hold::Held::Since(_) if place.as_str().starts_with(PARTS) => false,
                    _ => held.keeps(&folder.path(place)),
                };
                Ok(owned
                    .into_iter()
                    // The sweep comes for what stays.
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
                    // Fails while other versions or keys live below; that is as it should be.
                    let _ = fs::remove_dir(folder);
                }
                Ok(())
            }
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Folders are listed one at a time; a page is handed on as soon as it is full.
    pub(super) async fn walk(
        &self,
        min_age: Duration,
        mut take: impl AsyncFnMut(Vec<Listed>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let mut folders = vec![self.root.as_ref().clone()];
        let mut page = Vec::new();
        while let Some(folder) = folders.pop() {
            let root = self.clone();
            let (below, files) = blocking(move || root.look_into(&folder, min_age)).await?;
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

    /// The folders in a folder, and its files that are old enough. Old temporary files are removed on the way.
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
            // It may have gone since. A copy shares the time of its bytes with its source, but not that of its link.
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
        Ok(Temporary { path, file: Arc::new(file), renamed: false })
    }

    /// Syncs a file and gives it its name.
    fn land(&self, mut temporary: Temporary, target: &Path) -> std::io::Result<()> {
        temporary.file.sync_all()?;
        self.put_into_folder(target, |target| fs::rename(&temporary.path, target))?;
        temporary.renamed = true;
        Ok(())
    }

    /// Makes the target's folder, puts something into it, and syncs it. A removal of the key's last version may take
    /// the folder away in between; then it is made again.
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

    /// Makes a folder below the root and those above it, each durable before anything is put into it.
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
        if !self.gathering.take(&bytes, WRITE_BYTES) {
            return Ok(());
        }
        let piece = self.gathering.give();
        let before = match self.writing.take() {
            None => None,
            Some(writing) => {
                let (so_far, buffer) = writing.end().await?;
                self.gathering.give_back(buffer);
                Some(so_far)
            }
        };
        self.writing = Some(Writing::begin(&self.folder, before, piece));
        Ok(())
    }

    /// Where the file is, and the hash of its bytes.
    pub(super) async fn finish(self) -> Result<(Place, [u8; 16]), StorageError> {
        let Self { folder, place, mut gathering, writing } = self;
        let before = match writing {
            None => None,
            Some(writing) => Some(writing.end().await?.0),
        };
        let target = folder.path(&place);
        let rest = gathering.give();
        let landed = blocking(move || {
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

fn is_absent(error: &std::io::Error) -> bool {
    // A key below a version: there is a file where a folder is looked for.
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn is_conflict(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::IsADirectory | ErrorKind::InvalidFilename)
}

/// A name that the file system cannot take beside those it has, as a key below another object's version.
fn refused(error: std::io::Error, place: &Place) -> StorageError {
    if is_conflict(&error) {
        let mut segments: Vec<&str> = place.as_str().split('/').collect();
        segments.pop();
        return StorageError::InvalidKey(segments.get(1..).map(|key| key.join("/")).unwrap_or_default());
    }
    error.into()
}

/// Runs what may wait for a disk off the workers.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> std::io::Result<T> + Send + 'static) -> std::io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::TryStreamExt;

    fn scratch() -> (PathBuf, Folder) {
        let root = std::env::temp_dir().join(format!("folder-{}", Uuid::new_v4()));
        (root.clone(), Folder::new(root))
    }

    /// Writes a file as it comes over a line, in pieces; yields its hash.
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
    async fn a_folder_that_a_removal_takes_away_is_made_again() {
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
    async fn files_and_folders_are_the_servers_alone() {
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
    async fn what_is_dropped_half_way_leaves_nothing() {
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

    #[actix_web::test]
    async fn a_range_of_a_large_file_is_that_range() {
        let (root, folder) = scratch();
        let bytes: Vec<u8> = (0..2_000_000_u32).map(|n| (n % 251) as u8).collect();
        let place = place("a");
        let md5 = put(&folder, &place, &bytes).await.expect("file");
        assert_eq!(md5, <[u8; 16]>::from(Md5::digest(&bytes)), "hashed beside its writing, in the order of its pieces");
        assert_eq!(read(&folder, &place, None).await.as_deref(), Some(&bytes[..]));
        assert_eq!(read(&folder, &place, Some((3, 1_500_000))).await.as_deref(), Some(&bytes[3..=1_500_000]));
        assert!(folder.open(&place, Some((0, 2_000_000))).await.is_err());
        fs::remove_dir_all(&root).expect("clean");
    }

    #[actix_web::test]
    async fn copies_outlive_their_source_and_parts_become_one_file() {
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
        // Asked again after an attempt that was cut off, of which a backup that holds removals keeps the file.
        let _held = hold::hold_removals(&root).expect("held");
        for parts in [&parts[..], &parts[1..]] {
            assert!(folder.remove(std::slice::from_ref(&third)).await.is_empty());
            folder.assemble(parts, &third).await.expect("once more");
        }
        assert_eq!(read(&folder, &third, None).await.as_deref(), Some(&b"1.7"[..]));
        fs::remove_dir_all(&root).expect("clean");
    }

    /// Found by a key below a version: the answer was a 500.
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
    async fn only_old_version_files_are_looked_at() {
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
