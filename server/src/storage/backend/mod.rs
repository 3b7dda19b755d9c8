//! Where the bytes are stored: a local folder or a bucket of an S3-compatible server.
//!
//! An object's file is `bucket/key/version`, as in Supabase Storage. Every write makes a new version, so it never touches bytes that
//! somebody is reading. A file is complete and durable when [`NewFile::finish`] returns; only then may its row be committed. Parts of
//! unfinished uploads are kept apart and joined at the end.

pub mod bucket;
mod folder;
mod hold;
mod s3;
pub mod write_buffer;

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt};
use md5::{Digest, Md5};
use uuid::Uuid;

use super::config::BackendConfig;
use super::error::StorageError;
use super::key::ObjectKey;
use super::metrics;
use super::sniff::{self, HEAD_BYTES};
use folder::{Folder, FolderFile};
pub use hold::{Archiving, hold_removals};
use s3::{S3File, S3Store};

/// The store of file contents. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Store {
    Folder(Folder),
    S3(S3Store),
}

/// A file's path below the root, with segments separated by slashes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place(String);

/// Folder for parts of unfinished uploads. No bucket's folder begins with a dot.
const PARTS: &str = ".parts";

impl Place {
    pub fn object(bucket: &str, key: &ObjectKey, version: &str) -> Self {
        Self::named(bucket, key.as_str(), version)
    }

    /// The place of a row's file. Rows written by other servers may have no version.
    pub fn named(bucket: &str, key: &str, version: &str) -> Self {
        let bucket = bucket.replace(['/', '\\'], "_");
        let bucket = match bucket.trim_start_matches('.') {
            // A name of nothing but dots must not lead to our own folders.
            "" => "_",
            bucket => bucket,
        };
        let path = [bucket, key.trim_matches('/'), version];
        Self(path.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("/"))
    }

    pub fn part(upload: &str, part: Uuid) -> Self {
        Self(format!("{PARTS}/{upload}/{part}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The version, if the row has one.
    pub fn last_segment(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Whether no segment leads out of the root. Keys cannot, but names in rows written by others could.
    fn is_inside(&self) -> bool {
        self.0.split('/').all(|segment| segment != "." && segment != ".." && !segment.contains('\0'))
    }
}

/// A stream of a file's bytes, or of a range.
pub struct OpenFile {
    /// Size of the whole file in bytes.
    pub size: u64,
    pub bytes: Pin<Box<dyn Stream<Item = std::io::Result<Bytes>>>>,
}

/// A file in the store, as the sweep sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub place: Place,
    /// The version in its name.
    pub version: Uuid,
    /// For a part, its upload.
    pub upload: Option<String>,
    pub age: Duration,
}

/// A file being written. If it is dropped before [`NewFile::finish`], nothing is left.
pub struct NewFile {
    writer: Writer,
    size: u64,
    /// The first bytes, for detecting the media type.
    head: Vec<u8>,
}

enum Writer {
    Folder(FolderFile),
    S3(Box<S3File>, Md5),
}

/// A complete and durable file that no row names yet.
#[derive(Clone, Debug)]
pub struct StoredFile {
    pub place: Place,
    pub size: u64,
    pub md5: [u8; 16],
    /// The media type detected from the bytes.
    pub detected: &'static str,
}

impl StoredFile {
    /// The ETag, including quotes.
    pub fn etag(&self) -> String {
        format!("\"{}\"", hex::encode(self.md5))
    }
}

impl Store {
    /// Opens the configured store.
    ///
    /// Errors: the client of an S3 store cannot be built.
    pub fn of(config: &BackendConfig) -> anyhow::Result<Self> {
        match config {
            BackendConfig::Folder(path) => {
                let folder = Folder::new(path.clone());
                if let Err(error) = folder.close_to_others() {
                    tracing::warn!(folder = %path.display(), %error, "the folder of files stays open to other accounts");
                }
                Ok(Self::Folder(folder))
            }
            BackendConfig::S3(config) => Ok(Self::S3(S3Store::new(config)?)),
        }
    }

    /// Begins a file.
    pub fn create(&self, place: &Place) -> Result<NewFile, StorageError> {
        inside(place)?;
        let writer = match self {
            Self::Folder(folder) => Writer::Folder(folder.create(place)),
            Self::S3(store) => Writer::S3(Box::new(store.create(place)), Md5::new()),
        };
        Ok(NewFile { writer, size: 0, head: Vec::new() })
    }

    /// The bytes from `first` to `last`, or all; `None` if the file does not exist. Both positions must be within the file.
    pub async fn open(&self, place: &Place, range: Option<(u64, u64)>) -> Result<Option<OpenFile>, StorageError> {
        inside(place)?;
        let opened = match self {
            Self::Folder(folder) => folder.open(place, range).await,
            Self::S3(store) => store.open(place, range).await,
        };
        Ok(opened?.map(|file| OpenFile { bytes: Box::pin(file.bytes.inspect_ok(metrics::sent)), ..file }))
    }

    /// Copies a file; false if it does not exist.
    pub async fn copy(&self, from: &Place, to: &Place) -> Result<bool, StorageError> {
        inside(from)?;
        inside(to)?;
        match self {
            Self::Folder(folder) => folder.copy(from, to).await,
            Self::S3(store) => store.copy(from, to).await,
        }
    }

    /// Joins parts, with their sizes, into one file, in order. Returns the media type detected from the first part.
    pub async fn assemble(&self, parts: &[(Place, u64)], to: &Place) -> Result<&'static str, StorageError> {
        inside(to)?;
        match self {
            Self::Folder(folder) => {
                let places: Vec<Place> = parts.iter().map(|(part, _)| part.clone()).collect();
                folder.assemble(&places, to).await
            }
            Self::S3(store) => store.assemble(parts, to).await,
        }
    }

    /// Removes files, ignoring missing ones. Returns those that remain, and why.
    pub async fn remove(&self, places: &[Place]) -> Vec<(Place, StorageError)> {
        let (safe, unsafe_ones): (Vec<Place>, Vec<Place>) = places.iter().cloned().partition(Place::is_inside);
        let mut left = match self {
            Self::Folder(folder) => folder.remove(&safe).await,
            Self::S3(store) => store.remove(&safe).await,
        };
        left.extend(unsafe_ones.into_iter().map(|place| {
            let refused = StorageError::InvalidKey(place.0.clone());
            (place, refused)
        }));
        left
    }

    /// Removes files that no row names any more. Files that cannot be removed are left to the sweep.
    pub async fn discard(&self, places: impl IntoIterator<Item = Place>) {
        let places: Vec<Place> = places.into_iter().collect();
        for (place, error) in self.remove(&places).await {
            tracing::warn!(file = place.as_str(), %error, "a file without a row stays behind");
        }
    }

    /// How long to wait before a file of this age is checked for its row again. S3 reports the start of a multipart upload as the
    /// object's time, so an object of this age may have been completed only a moment ago.
    pub fn settling(&self, min_age: Duration) -> Duration {
        match self {
            Self::Folder(_) => Duration::ZERO,
            Self::S3(_) => min_age / 12,
        }
    }

    /// Calls `take` with each page of files older than `min_age`, until it fails.
    pub async fn walk(
        &self,
        min_age: Duration,
        take: impl AsyncFnMut(Vec<Listed>) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        match self {
            Self::Folder(folder) => folder.walk(min_age, take).await,
            Self::S3(store) => store.walk(min_age, take).await,
        }
    }
}

/// The error for a file that is not as long as its row says.
pub fn wrong_size() -> StorageError {
    StorageError::File(std::io::Error::other("the file has another size than its row says"))
}

fn inside(place: &Place) -> Result<(), StorageError> {
    if place.is_inside() { Ok(()) } else { Err(StorageError::InvalidKey(place.as_str().to_owned())) }
}

/// The file at a path of the store, if the path is one of ours.
fn listed(path: &str, age: Duration) -> Option<Listed> {
    let mut segments = path.rsplit('/');
    let version = Uuid::parse_str(segments.next()?).ok()?;
    let upload = path.strip_prefix(PARTS).and_then(|rest| rest.split('/').nth(1)).map(str::to_owned);
    Some(Listed { place: Place(path.to_owned()), version, upload, age })
}

impl NewFile {
    /// Bytes written so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    pub async fn write(&mut self, bytes: Bytes) -> Result<(), StorageError> {
        self.size += bytes.len() as u64;
        metrics::RECEIVED.add(bytes.len() as u64);
        let wanted = HEAD_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..wanted]);
        match &mut self.writer {
            Writer::Folder(file) => file.write(bytes).await,
            Writer::S3(file, digest) => {
                digest.update(&bytes);
                file.write(bytes).await
            }
        }
    }

    /// Makes the file durable under its name.
    pub async fn finish(self) -> Result<StoredFile, StorageError> {
        metrics::FILES.increment();
        let (place, md5) = match self.writer {
            Writer::Folder(file) => file.finish().await?,
            Writer::S3(file, digest) => {
                let md5: [u8; 16] = digest.finalize().into();
                (file.finish(&md5).await?, md5)
            }
        };
        Ok(StoredFile { place, size: self.size, md5, detected: sniff::detect(&self.head) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_below_the_root() {
        let key = ObjectKey::parse("/a//b/").expect("key");
        assert_eq!(Place::object("docs", &key, "v").as_str(), "docs/a//b/v");
        assert_eq!(Place::named("../etc", "passwd", "").as_str(), "_etc/passwd");
        assert_eq!(Place::named("...", ".parts/a", "v").as_str(), "_/.parts/a/v");
        assert!(Place::named("docs", "a/b", "v").is_inside());
        assert!(!Place::named("docs", "../b", "v").is_inside());
        assert!(!Place::named("docs", "b", "..").is_inside());
    }

    #[test]
    fn the_sweep_recognizes_versions_and_parts() {
        let (version, upload) = (Uuid::new_v4(), Uuid::new_v4());
        let file = listed(&format!("docs/a/{version}"), Duration::ZERO).expect("a version");
        assert_eq!((file.version, file.upload), (version, None));
        let part = Place::part(&upload.to_string(), version);
        let file = listed(part.as_str(), Duration::ZERO).expect("a part");
        assert_eq!((file.version, file.upload), (version, Some(upload.to_string())));
        assert_eq!(listed("docs/notes.txt", Duration::ZERO), None);
    }
}
