//! Uploads a body into the store: in memory while it is short, otherwise spooled and sent in parts.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;

use bytes::Bytes;
use md5::{Digest, Md5};
use reqwest::Method;
use tokio::task::JoinHandle;

use super::request::{self, Asked, Body};
use super::{Place, S3Store};
use crate::storage::backend::write_buffer::WriteBuffer;
use crate::storage::error::StorageError;
use crate::storage::s3::xml;

/// Bytes collected before the body is spooled. Shorter bodies stay in memory.
const IN_MEMORY: usize = 512 << 10;
/// Bytes hashed at a time.
const PIECE: u64 = 256 << 10;

/// A body being received. If it is dropped before [`S3File::finish`], nothing is left.
pub struct S3File {
    store: S3Store,
    place: Place,
    waiting: WriteBuffer,
    spool: Option<Arc<File>>,
    /// Bytes in the spool.
    spooled: u64,
    parts: Option<Parts>,
    /// Bytes covered by parts that were started.
    given: u64,
}

impl S3File {
    pub(super) fn new(store: S3Store, place: Place) -> Self {
        let waiting = WriteBuffer::new(&store.room);
        Self { store, place, waiting, spool: None, spooled: 0, parts: None, given: 0 }
    }

    pub async fn write(&mut self, bytes: Bytes) -> Result<(), StorageError> {
        if self.waiting.take(&bytes, IN_MEMORY) {
            self.spill().await?;
        }
        let part_size = self.store.stores.part_size();
        // One byte more, because a body of exactly one part needs no multipart upload.
        while self.spooled > self.given + part_size {
            self.give(part_size).await?;
        }
        Ok(())
    }

    /// Moves the buffered bytes to the spool.
    async fn spill(&mut self) -> Result<(), StorageError> {
        let (spool, waiting) = (self.spool.take(), self.waiting.give());
        let folder = self.store.stores.spool().clone();
        let spilled = tokio::task::spawn_blocking(move || {
            let spool = match spool {
                Some(spool) => spool,
                None => {
                    if fs::metadata(&folder).is_err() {
                        DirBuilder::new().mode(0o700).recursive(true).create(&folder)?;
                    }
                    // The file has no name, so it disappears in any case.
                    Arc::new(tempfile::tempfile_in(&folder)?)
                }
            };
            (&*spool).write_all(&waiting)?;
            let length = waiting.len() as u64;
            Ok::<_, std::io::Error>((spool, waiting, length))
        });
        let spilled = spilled.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        let (spool, waiting, length) = spilled?;
        self.spool = Some(spool);
        self.waiting.give_back(waiting);
        self.spooled += length;
        Ok(())
    }

    /// Sends the next bytes of the spool as a part.
    async fn give(&mut self, length: u64) -> Result<(), StorageError> {
        let Some(spool) = self.spool.clone() else { return Ok(()) };
        let parts = match self.parts.take() {
            Some(parts) => parts,
            None => self.store.begin_parts(&self.store.stores.key(&self.place)).await?,
        };
        let parts = self.parts.insert(parts);
        let body = Body::Spooled { file: spool, first: self.given, length };
        self.given += length;
        parts.send(body).await
    }

    /// Completes the object; `md5` is the hash of the whole body.
    pub async fn finish(mut self, md5: &[u8; 16]) -> Result<Place, StorageError> {
        let key = self.store.stores.key(&self.place);
        if self.spool.is_some() && !self.waiting.is_empty() {
            self.spill().await?;
        }
        if self.parts.is_some() {
            self.give(self.spooled - self.given).await?;
            if let Some(parts) = self.parts.take() {
                parts.complete().await?;
            }
            return Ok(self.place);
        }
        let body = match self.spool.take() {
            Some(file) => Body::Spooled { file, first: 0, length: self.spooled },
            None => Body::Whole(self.waiting.give().into()),
        };
        let asked = Asked::new(Method::PUT, &key).header("content-md5", request::content_md5(md5));
        self.store.stores.answer(&asked, &body).await?;
        Ok(self.place)
    }
}

/// A multipart upload. If it is dropped before [`Parts::complete`], the upload is aborted.
pub struct Parts {
    store: S3Store,
    key: String,
    id: String,
    number: usize,
    /// Number and ETag of the stored parts.
    there: Vec<(usize, String)>,
    under_way: VecDeque<JoinHandle<Result<(usize, String), StorageError>>>,
    completed: bool,
}

impl S3Store {
    pub async fn begin(&self, place: &Place) -> Result<Parts, StorageError> {
        self.begin_parts(&self.stores.key(place)).await
    }

    pub fn part_size(&self) -> u64 {
        self.stores.part_size()
    }

    pub(super) async fn begin_parts(&self, key: &str) -> Result<Parts, StorageError> {
        let asked = Asked::new(Method::POST, key).parameter("uploads", "");
        let answer = self.stores.answer(&asked, &Body::Empty).await?;
        let (_, said) = xml::read(&answer, "InitiateMultipartUploadResult", "none").map_err(request::unreadable)?;
        let id = xml::text_of(&said, "UploadId").filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| StorageError::Unavailable("the file store names no upload".to_owned()))?.to_owned();
        self.under_way.lock().insert(id.clone());
        Ok(Parts {
            store: self.clone(),
            key: key.to_owned(),
            id,
            number: 0,
            there: Vec::new(),
            under_way: VecDeque::new(),
            completed: false,
        })
    }

    /// Aborts a multipart upload.
    pub(super) async fn abort_parts(&self, key: &str, id: &str) -> Result<(), StorageError> {
        let asked = Asked::new(Method::DELETE, key).parameter("uploadId", id);
        let (response, _held) = self.stores.send(&asked, &Body::Empty).await?;
        let gone = response.status().is_success() || response.status().as_u16() == 404;
        if gone { Ok(()) } else { Err(self.stores.refusal(response).await) }
    }
}

impl Parts {
    fn next(&mut self) -> (usize, Asked) {
        self.number += 1;
        let asked = Asked::new(Method::PUT, &self.key)
            .parameter("partNumber", self.number.to_string())
            .parameter("uploadId", &self.id);
        (self.number, asked)
    }

    /// Waits for earlier parts if enough are in progress.
    async fn turn(&mut self) -> Result<(), StorageError> {
        while self.under_way.len() >= self.store.stores.queue_size() {
            self.wait().await?;
        }
        Ok(())
    }

    /// Sends a part.
    pub async fn send(&mut self, body: Body) -> Result<(), StorageError> {
        self.turn().await?;
        let (number, asked) = self.next();
        let store = self.store.clone();
        self.under_way.push_back(tokio::spawn(async move {
            let sum = content_md5_of(&body).await?;
            let asked = asked.header("content-md5", sum);
            let (response, _held) = store.stores.send(&asked, &body).await?;
            if !response.status().is_success() {
                return Err(store.stores.refusal(response).await);
            }
            let etag = super::header(&response, "etag");
            Ok((number, etag.ok_or_else(|| StorageError::Unavailable("the file store tells no ETag".to_owned()))?))
        }));
        Ok(())
    }

    pub async fn put(&mut self, bytes: Bytes) -> Result<(), StorageError> {
        self.send(Body::Whole(bytes)).await
    }

    /// Adds a part by copying `length` bytes of an existing object.
    pub async fn copy(&mut self, from: &str, range: Option<(u64, u64)>, length: u64) -> Result<(), StorageError> {
        self.turn().await?;
        let (number, asked) = self.next();
        let mut asked =
            asked.header("x-amz-copy-source", self.store.copy_source(from)).within(self.store.stores.time_for(length));
        if let Some((first, last)) = range {
            asked = asked.header("x-amz-copy-source-range", format!("bytes={first}-{last}"));
        }
        let store = self.store.clone();
        self.under_way.push_back(tokio::spawn(async move {
            let answer = store.stores.answer(&asked, &Body::Empty).await?;
            let (_, said) = xml::read(&answer, "CopyPartResult", "none").map_err(request::unreadable)?;
            Ok((number, xml::text_of(&said, "ETag").unwrap_or_default().to_owned()))
        }));
        Ok(())
    }

    async fn wait(&mut self) -> Result<(), StorageError> {
        let Some(task) = self.under_way.pop_front() else { return Ok(()) };
        let sent = task.await.unwrap_or_else(|error| Err(StorageError::Internal(error.to_string())))?;
        self.there.push(sent);
        Ok(())
    }

    pub async fn complete(mut self) -> Result<(), StorageError> {
        while !self.under_way.is_empty() {
            self.wait().await?;
        }
        self.there.sort();
        let mut body = xml::Xml::new("CompleteMultipartUpload");
        for (number, etag) in &self.there {
            body.group("Part", |xml| {
                xml.element("PartNumber", number.to_string()).element("ETag", etag);
            });
        }
        let asked = Asked::new(Method::POST, &self.key)
            .parameter("uploadId", &self.id)
            .within(self.store.stores.time_for(self.number as u64 * self.store.stores.part_size() / 64));
        match self.store.stores.answer(&asked, &Body::Whole(body.into_text().into())).await {
            Ok(_) => {}
            // Retried after its answer was lost: if the parts are gone, the object exists.
            Err(StorageError::NoSuchKey | StorageError::Internal(_))
                if self.store.known(&self.key).await?.is_some() => {}
            Err(error) => return Err(error),
        }
        self.completed = true;
        Ok(())
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.store.under_way.lock().remove(&self.id);
        if self.completed {
            return;
        }
        self.under_way.iter().for_each(JoinHandle::abort);
        let (store, key, id) = (self.store.clone(), std::mem::take(&mut self.key), std::mem::take(&mut self.id));
        // If the runtime has ended, the sweep aborts the upload later.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if let Err(error) = store.abort_parts(&key, &id).await {
                tracing::warn!(key, %error, "the parts of an unfinished upload stay in the store until the sweep");
            }
        });
    }
}

/// The hash of a body for the `Content-MD5` header.
async fn content_md5_of(body: &Body) -> Result<String, StorageError> {
    let (file, first, length) = match body {
        Body::Empty => return Ok(request::content_md5(&Md5::digest(b""))),
        Body::Whole(bytes) => return Ok(request::content_md5(&Md5::digest(bytes))),
        Body::Spooled { file, first, length } => (Arc::clone(file), *first, *length),
    };
    let (mut file, mut digest, mut at) = (file, Md5::new(), first);
    while at < first + length {
        let (same, piece) = request::read_piece(file, at, (first + length).min(at + PIECE)).await?;
        digest.update(&piece);
        (file, at) = (same, at + piece.len() as u64);
    }
    Ok(request::content_md5(&digest.finalize()))
}
