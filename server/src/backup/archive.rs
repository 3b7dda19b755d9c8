//! The archive: a tar file, compressed with gzip and encrypted in the age format, so that `age -d | tar xz` opens it too.
//!
//! Its last entry, `manifest.json`, lists all others with size and SHA-256. A truncated backup has no manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tar::{EntryType, Header};

use super::age::{AgeError, Decryptor, Encryptor, Identity, Recipient};
use super::backup_store::Sink;
use super::dump_facts::Fact;
use super::error::BackupError;
use super::pace::Pace;
use super::stop_flag::{StopFlag, StopOnDrop};

/// The layout version that this code writes, and the newest that it reads.
pub const FORMAT: u32 = 1;
const MANIFEST: &str = "manifest.json";
/// Manifests longer than this are refused.
const MANIFEST_MAX: u64 = 1 << 30;

/// What an archive contains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    /// The point in time of the backup: everything committed before it is included.
    pub made_at: DateTime<Utc>,
    /// Version of the program that made the archive.
    pub version: String,
    /// Major version of PostgreSQL.
    pub postgres: String,
    /// Whether this is a dump of an external database rather than a copy of cluster files.
    #[serde(default)]
    pub dump: bool,
    /// The archive that this one is incremental to, in the same place. `None` for full archives.
    #[serde(default)]
    pub parent: Option<String>,
    /// The earliest moment that can be restored from this archive, if that is not `made_at`.
    #[serde(default)]
    pub ended_at: Option<DateTime<Utc>>,
    /// First and last position in the WAL.
    pub start_lsn: String,
    pub stop_lsn: String,
    /// The WAL chain that continues from this archive (see `log`).
    #[serde(default)]
    pub chain: Option<String>,
    /// Rows of each table, counted shortly before and shortly after `made_at`.
    pub rows: BTreeMap<String, [i64; 2]>,
    /// Transactions from this one on may be missing from the counts.
    pub counted_xid: String,
    /// Of a dump: how many tables, indexes, sequences and views a restore makes in one transaction; 0 if an earlier version has made it.
    #[serde(default)]
    pub relations: i64,
    /// Of a dump: what `roles.sql` and `after.sql` restore.
    #[serde(default)]
    pub facts: BTreeSet<Fact>,
    /// Where the files of objects are kept, if not in this archive.
    pub files_elsewhere: Option<String>,
    pub entries: BTreeMap<String, Content>,
}

impl Manifest {
    /// The setting `max_locks_per_transaction` that a PostgreSQL with this many sessions needs to restore a dump. It has as many locks as
    /// both multiplied; a few are for other things than relations.
    pub fn locks_needed(&self, sessions: i64) -> i64 {
        (self.relations / sessions.max(1) + 1) * 5 / 4
    }
}

/// The expected content of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    pub size: u64,
    pub sha256: String,
}

/// An archive being written. If it is dropped before [`finish`](Self::finish), no file is left.
pub struct Writer {
    /// Dropped before the other fields, so that they write nothing more while they are dropped.
    _given_up: StopOnDrop,
    tar: tar::Builder<Packed>,
    manifest: Manifest,
    /// The name used in errors.
    target: PathBuf,
    stop_flag: StopFlag,
    /// If other work comes first.
    pace: Option<Pace>,
}

/// A gzip stream of several members, so that the compression level can change for data that does not compress.
struct Packed(Option<GzEncoder<Encryptor<BufWriter<Sink>>>>);

impl Packed {
    fn level(&mut self, level: Compression) -> io::Result<()> {
        let Some(gzip) = self.0.take() else { return Ok(()) };
        self.0 = Some(GzEncoder::new(gzip.finish()?, level));
        Ok(())
    }
}

impl Write for Packed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_mut().map_or(Err(io::ErrorKind::BrokenPipe.into()), |gzip| gzip.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Counts and hashes the bytes that pass through.
struct Hashed<'a, R> {
    inner: R,
    digest: Sha256,
    size: u64,
    stop_flag: StopFlag,
    pace: Option<&'a mut Pace>,
}

impl<'a, R: Read> Hashed<'a, R> {
    fn new(inner: R, stop_flag: &StopFlag, pace: Option<&'a mut Pace>) -> Self {
        Self { inner, digest: Sha256::new(), size: 0, stop_flag: stop_flag.clone(), pace }
    }

    fn content(self) -> Content {
        Content { size: self.size, sha256: hex::encode(self.digest.finalize()) }
    }
}

impl<R: Read> Read for Hashed<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stop_flag.check()?;
        if let Some(pace) = &mut self.pace {
            pace.keep(&self.stop_flag)?;
        }
        let length = self.inner.read(into)?;
        self.digest.update(&into[..length]);
        self.size += length as u64;
        Ok(length)
    }
}

impl Writer {
    /// Begins an archive; errors call it `target`.
    pub fn create(
        sink: Sink,
        target: &str,
        recipients: &[Recipient],
        stop_flag: &StopFlag,
    ) -> Result<Self, BackupError> {
        if recipients.is_empty() {
            return Err(BackupError::NoRecipient);
        }
        let target = PathBuf::from(target);
        let sealed = Encryptor::new(BufWriter::with_capacity(1 << 20, sink), recipients)
            .map_err(BackupError::io("cannot write", &target))?;
        let tar = tar::Builder::new(Packed(Some(GzEncoder::new(sealed, Compression::fast()))));
        let manifest =
            Manifest { format: FORMAT, version: env!("CARGO_PKG_VERSION").to_owned(), ..Manifest::default() };
        Ok(Self { _given_up: stop_flag.on_drop(), tar, manifest, target, stop_flag: stop_flag.clone(), pace: None })
    }

    /// Has the archive written slowly while the processors are busy.
    pub fn give_way(&mut self) {
        self.pace = Some(Pace::new());
    }

    pub fn stop_flag(&self) -> &StopFlag {
        &self.stop_flag
    }

    pub fn manifest(&mut self) -> &mut Manifest {
        &mut self.manifest
    }

    /// Stores everything from here on uncompressed. Pictures and documents are compressed already.
    pub fn stop_compressing(&mut self) -> Result<(), BackupError> {
        self.tar.get_mut().level(Compression::none()).map_err(BackupError::io("cannot write", &self.target))
    }

    pub fn folder(&mut self, path: &str) -> Result<(), BackupError> {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Directory);
        header.set_mode(0o700);
        header.set_size(0);
        self.tar
            .append_data(&mut header, format!("{path}/"), io::empty())
            .map_err(BackupError::io("cannot write", &self.target))
    }

    pub fn bytes(&mut self, path: &str, bytes: &[u8]) -> Result<(), BackupError> {
        self.entry(path, bytes.len() as u64, bytes).map_err(BackupError::io("cannot write", &self.target))
    }

    /// Adds a file with its current length; returns false if the file no longer exists. A file that grows while it is read is cut
    /// at that length, one that shrinks is padded. Replaying the WAL restores the correct content.
    pub fn file(&mut self, path: &str, from: &Path) -> Result<bool, BackupError> {
        let file = match File::open(from) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(BackupError::io("cannot read", from)(error)),
        };
        let size = file.metadata().map_err(BackupError::io("cannot read", from))?.len();
        let padded = BufReader::with_capacity(256 * 1024, file).take(size).chain(io::repeat(0)).take(size);
        self.entry(path, size, padded).map_err(BackupError::io("cannot write", &self.target))?;
        Ok(true)
    }

    /// Adds `content`, which must be exactly `size` bytes long.
    pub fn stream(&mut self, path: &str, size: u64, content: impl Read) -> Result<(), BackupError> {
        self.entry(path, size, content).map_err(BackupError::io("cannot copy", path))?;
        let is_whole = self.manifest.entries.get(path).is_some_and(|content| content.size == size);
        if is_whole { Ok(()) } else { Err(BackupError::io("cannot copy", path)(io::ErrorKind::UnexpectedEof.into())) }
    }

    fn entry(&mut self, path: &str, size: u64, content: impl Read) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o600);
        header.set_size(size);
        let mut content = Hashed::new(content, &self.stop_flag, self.pace.as_mut());
        self.tar.append_data(&mut header, path, &mut content)?;
        self.manifest.entries.insert(path.to_owned(), content.content());
        Ok(())
    }

    /// Writes the manifest and closes the sink. Returns the archive's size in bytes.
    pub fn finish(mut self) -> Result<u64, BackupError> {
        let target = self.target.clone();
        let io = || BackupError::io("cannot write", &target);
        let manifest = serde_json::to_vec(&self.manifest).map_err(|error| io()(error.into()))?;
        self.tar.get_mut().level(Compression::fast()).map_err(io())?;
        self.entry(MANIFEST, manifest.len() as u64, manifest.as_slice()).map_err(io())?;
        let packed = self.tar.into_inner().map_err(io())?;
        let gzip = packed.0.ok_or_else(|| io()(io::ErrorKind::BrokenPipe.into()))?;
        let buffered = gzip.finish().and_then(Encryptor::finish).map_err(io())?;
        let sink = buffered.into_inner().map_err(|error| io()(error.into_error()))?;
        sink.close().map_err(io())
    }
}

/// An entry while the archive is read.
pub enum Item<'a> {
    Folder,
    File(&'a mut dyn Read),
}

/// Reads an archive from end to end, passes each entry to `take`, and compares all entries with the manifest.
///
/// What `take` received is verified only once this returns `Ok`.
pub fn read(
    archive: &Path,
    identities: &[Identity],
    stop_flag: &StopFlag,
    mut take: impl FnMut(&str, Item<'_>) -> Result<(), BackupError>,
) -> Result<Manifest, BackupError> {
    let damaged = |reason: String| BackupError::Damaged { archive: archive.to_owned(), reason };
    let broken = |error: io::Error| match error.kind() {
        io::ErrorKind::ConnectionAborted => BackupError::Stopped,
        _ => damaged(error.to_string()),
    };
    let file = File::open(archive).map_err(BackupError::io("cannot read", archive))?;
    let opened =
        Decryptor::new(BufReader::with_capacity(1 << 20, file), identities).map_err(|reason| match reason {
            AgeError::Header => damaged(reason.to_string()),
            reason => BackupError::Closed { archive: archive.to_owned(), reason },
        })?;
    let mut tar = tar::Archive::new(MultiGzDecoder::new(BufReader::new(opened)));
    let mut found = BTreeMap::new();
    let mut manifest: Option<Manifest> = None;
    for entry in tar.entries().map_err(broken)? {
        let entry = entry.map_err(broken)?;
        let path = entry.path().map_err(broken)?.to_string_lossy().trim_end_matches('/').to_owned();
        // Our archives have no such names. One that does could write outside the target folder.
        if path.starts_with('/') || path.split('/').any(|part| part == "..") {
            return Err(damaged(format!("'{path}' is not a valid entry name")));
        }
        if entry.header().entry_type().is_dir() {
            take(&path, Item::Folder)?;
            continue;
        }
        let mut content = Hashed::new(entry, stop_flag, None);
        if path == MANIFEST {
            let mut text = Vec::new();
            (&mut content).take(MANIFEST_MAX).read_to_end(&mut text).map_err(broken)?;
            manifest = Some(serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?);
            continue;
        }
        take(&path, Item::File(&mut content)).map_err(|error| match error {
            // Decryption errors arrive through the reader.
            BackupError::Io { source, .. } if source.kind() == io::ErrorKind::InvalidData => broken(source),
            error => error,
        })?;
        io::copy(&mut content, &mut io::sink()).map_err(broken)?;
        found.insert(path, content.content());
    }
    // Read to the end of the stream: trailing data after the archive's end is an error too.
    io::copy(&mut tar.into_inner(), &mut io::sink()).map_err(broken)?;
    let manifest = manifest.ok_or_else(|| damaged("it has no list of what it holds".to_owned()))?;
    if manifest.format > FORMAT {
        return Err(BackupError::Newer { archive: archive.to_owned(), format: manifest.format });
    }
    let differing = manifest.entries.iter().find(|(path, content)| found.get(*path) != Some(*content));
    if let Some((path, _)) = differing {
        return Err(damaged(format!("'{path}' differs from what was backed up")));
    }
    if found.len() != manifest.entries.len() {
        return Err(damaged("it holds more than its list says".to_owned()));
    }
    Ok(manifest)
}
