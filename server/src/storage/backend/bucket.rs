//! An S3 bucket for backups. The caller chooses the names below the prefix of the settings.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

use super::Place;
use super::s3::S3Store;
use crate::storage::config::S3StoreConfig;
use crate::storage::error::StorageError;

/// Multipart uploads older than this were abandoned by a killed command.
const GIVEN_UP: Duration = Duration::from_secs(24 * 60 * 60);
/// After this many parts, parts get larger, so that the maximum number of parts is enough for some terabytes.
const GROWING_AFTER: u64 = 1000;

/// Input of an upload.
#[derive(Debug)]
pub enum Piece {
    Bytes(Bytes),
    /// The end of the data. Without it, no object is created.
    End,
}

/// An object in a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketEntry {
    pub name: String,
    pub size: u64,
}

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Bucket(S3Store);

impl Bucket {
    pub fn new(config: &S3StoreConfig) -> anyhow::Result<Self> {
        Ok(Self(S3Store::new(config)?))
    }

    /// Creates an object from the received pieces. Returns its size, or `None` if the end did not arrive and no object was
    /// created.
    pub async fn upload(&self, name: &str, mut pieces: mpsc::Receiver<Piece>) -> Result<Option<u64>, StorageError> {
        let (mut gathered, mut size, mut number) = (Vec::new(), 0, 0);
        let mut parts = None;
        loop {
            let part_size = self.0.part_size() * (1 + number / GROWING_AFTER);
            match pieces.recv().await {
                None => return Ok(None),
                Some(Piece::End) => break,
                Some(Piece::Bytes(bytes)) => gathered.extend_from_slice(&bytes),
            }
            if gathered.len() as u64 >= part_size {
                let begun = match parts.take() {
                    Some(parts) => parts,
                    None => self.0.begin(&named(name)).await?,
                };
                let begun = parts.insert(begun);
                size += gathered.len() as u64;
                number += 1;
                begun.put(std::mem::take(&mut gathered).into()).await?;
            }
        }
        size += gathered.len() as u64;
        match parts {
            None => self.0.put_short(&named(name), gathered.into()).await?,
            Some(mut parts) => {
                if !gathered.is_empty() {
                    parts.put(gathered.into()).await?;
                }
                parts.complete().await?;
            }
        }
        Ok(Some(size))
    }

    pub async fn put(&self, name: &str, bytes: Bytes) -> Result<(), StorageError> {
        self.0.put_short(&named(name), bytes).await
    }

    /// Copies an object into a new file; false if it does not exist.
    pub async fn fetch(&self, name: &str, to: &Path) -> Result<bool, StorageError> {
        let Some(mut found) = self.0.open(&named(name), None).await? else { return Ok(false) };
        let mut file = tokio::fs::File::create_new(to).await?;
        let mut size = 0;
        while let Some(bytes) = found.bytes.next().await {
            let bytes = bytes?;
            size += bytes.len() as u64;
            file.write_all(&bytes).await?;
        }
        file.flush().await?;
        if size == found.size { Ok(true) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()) }
    }

    /// All objects below the prefix, by name.
    pub async fn list(&self) -> Result<Vec<BucketEntry>, StorageError> {
        let mut found = self.0.everything().await?;
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Removes objects. Missing ones are ignored.
    pub async fn remove(&self, names: &[String]) -> Result<(), StorageError> {
        let places: Vec<Place> = names.iter().map(|name| named(name)).collect();
        self.0.remove(&places).await.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Aborts multipart uploads that killed commands have left.
    pub async fn forget_given_up(&self) -> Result<(), StorageError> {
        self.0.abort_old_uploads(GIVEN_UP).await
    }
}

fn named(name: &str) -> Place {
    Place(name.to_owned())
}
